/*
 * The DirectX devices of a Windows host: directx-device-discovery.dll.
 *
 * C callers use the functions; C++ callers (C++17) may use the classes of namespace
 * DeviceDiscovery below, which hold no more than what the functions answer.
 *
 *  - Text is wide, ends with a zero and belongs to the instance: copy it before the
 *    instance's next call. What is not known of a device is empty text.
 *  - Devices and files count from 0.
 *  - A function fails on a null or destroyed instance, on a number out of range, and
 *    before the first discovery; it never crashes. DeviceDiscovery_GetLastErrorMessage
 *    then says why.
 *  - Instances are independent. One may be used from several threads, one at a time.
 *  - Destroy every instance before unloading the library.
 */
#ifndef DIRECTX_DEVICE_DISCOVERY_H
#define DIRECTX_DEVICE_DISCOVERY_H

#include <wchar.h>

/* What DeviceDiscovery_DiscoverDevices takes for its filter. */
enum DeviceDiscovery_Filter {
    DeviceDiscovery_AllDevices = 0,
    DeviceDiscovery_DisplaySupported = 1,
    DeviceDiscovery_ComputeSupported = 2,
    DeviceDiscovery_DisplayOnly = 3,
    DeviceDiscovery_ComputeOnly = 4,
    DeviceDiscovery_DisplayAndCompute = 5
};

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version. */
const wchar_t* GetDiscoveryLibraryVersion(void);

/* Whether the library tells of its work on standard error; at first it does not. */
void EnableDiscoveryLogging(void);
void DisableDiscoveryLogging(void);

/* A new instance, to be destroyed. Destroying null or the same one again does nothing. */
void* CreateDeviceDiscoveryInstance(void);
void DestroyDeviceDiscoveryInstance(void* instance);

/* Why the last call failed; empty after success. */
const wchar_t* DeviceDiscovery_GetLastErrorMessage(void* instance);

/* Whether the host may have changed since the last discovery, or none was made: 1 or 0;
 * -1 on failure. */
int DeviceDiscovery_IsRefreshRequired(void* instance);

/* Discovers devices; the numbers of an earlier discovery lose their meaning. 0; -1 on
 * failure, which leaves the earlier discovery in place. */
int DeviceDiscovery_DiscoverDevices(void* instance, int filter, int includeIntegrated, int includeDetachable);

/* How many devices the last discovery found; -1 before the first. */
int DeviceDiscovery_GetNumDevices(void* instance);

/* The LUID of the device's adapter; -1 on failure. */
long long DeviceDiscovery_GetDeviceAdapterLUID(void* instance, unsigned int device);

/* Text; null on failure. The ID is the PnP instance id; the driver registry key begins
 * with HKEY_LOCAL_MACHINE; the vendor is spelled as the driver package spells it. */
const wchar_t* DeviceDiscovery_GetDeviceID(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceDescription(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceDriverRegistryKey(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceDriverStorePath(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceLocationPath(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceVendor(void* instance, unsigned int device);

/* Files of the driver store folder that other APIs than DirectX need in System32, and,
 * with Wow64, in SysWOW64: how many (-1 on failure), the path in the folder, and the
 * name to give the file (null on failure). Inside a container there are none. */
int DeviceDiscovery_GetNumRuntimeFiles(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetRuntimeFileSource(void* instance, unsigned int device, unsigned int file);
const wchar_t* DeviceDiscovery_GetRuntimeFileDestination(void* instance, unsigned int device, unsigned int file);
int DeviceDiscovery_GetNumRuntimeFilesWow64(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetRuntimeFileSourceWow64(void* instance, unsigned int device, unsigned int file);
const wchar_t* DeviceDiscovery_GetRuntimeFileDestinationWow64(void* instance, unsigned int device, unsigned int file);

/* 1 or 0; -1 on failure. */
int DeviceDiscovery_IsDeviceIntegrated(void* instance, unsigned int device);
int DeviceDiscovery_IsDeviceDetachable(void* instance, unsigned int device);
int DeviceDiscovery_DoesDeviceSupportDisplay(void* instance, unsigned int device);
int DeviceDiscovery_DoesDeviceSupportCompute(void* instance, unsigned int device);

#ifdef __cplusplus
}

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace DeviceDiscovery {

enum class Filter : int {
    AllDevices = DeviceDiscovery_AllDevices,
    DisplaySupported = DeviceDiscovery_DisplaySupported,
    ComputeSupported = DeviceDiscovery_ComputeSupported,
    DisplayOnly = DeviceDiscovery_DisplayOnly,
    ComputeOnly = DeviceDiscovery_ComputeOnly,
    DisplayAndCompute = DeviceDiscovery_DisplayAndCompute
};

enum class IntegratedDevices { Exclude, Include };
enum class DetachableDevices { Exclude, Include };

/* Why a call failed. Its what() is plain ASCII; message() is the library's own text. */
class Error : public std::runtime_error {
public:
    explicit Error(std::wstring message)
        : std::runtime_error("DirectX device discovery failed"), message_(std::move(message)) {}

    const std::wstring& message() const noexcept { return message_; }

private:
    std::wstring message_;
};

/* A file of the driver store folder and the name to give it. */
struct RuntimeFile {
    std::wstring source;
    std::wstring destination;
};

/* One device, copied out of the library: it outlives the instance. */
struct Device {
    std::wstring id;
    long long adapterLuid = 0;
    std::wstring description;
    std::wstring driverRegistryKey;
    std::wstring driverStorePath;
    std::wstring locationPath;
    std::wstring vendor;
    bool isIntegrated = false;
    bool isDetachable = false;
    bool supportsDisplay = false;
    bool supportsCompute = false;
    std::vector<RuntimeFile> runtimeFiles;
    std::vector<RuntimeFile> runtimeFilesWow64;
};

/* The library's version. */
inline std::wstring libraryVersion() { return GetDiscoveryLibraryVersion(); }

/* An instance of the library, destroyed with this object. */
class Discovery {
public:
    Discovery() : instance_(CreateDeviceDiscoveryInstance()) {
        if (instance_ == nullptr) throw Error(L"no discovery instance could be made");
    }

    ~Discovery() { DestroyDeviceDiscoveryInstance(instance_); }

    Discovery(const Discovery&) = delete;
    Discovery& operator=(const Discovery&) = delete;
    Discovery(Discovery&& other) noexcept : instance_(std::exchange(other.instance_, nullptr)) {}
    Discovery& operator=(Discovery&& other) noexcept {
        std::swap(instance_, other.instance_);
        return *this;
    }

    /* Whether devices() may no longer be what the host has. */
    bool isRefreshRequired() const { return number(DeviceDiscovery_IsRefreshRequired(instance_)) != 0; }

    /* Discovers and returns the devices. */
    std::vector<Device> discover(Filter filter = Filter::AllDevices,
                                 IntegratedDevices integrated = IntegratedDevices::Include,
                                 DetachableDevices detachable = DetachableDevices::Include) {
        number(DeviceDiscovery_DiscoverDevices(instance_, static_cast<int>(filter),
                                               integrated == IntegratedDevices::Include,
                                               detachable == DetachableDevices::Include));
        return devices();
    }

    /* The devices of the last discovery. */
    std::vector<Device> devices() const {
        const auto count = static_cast<unsigned int>(number(DeviceDiscovery_GetNumDevices(instance_)));
        std::vector<Device> all;
        all.reserve(count);
        for (unsigned int n = 0; n < count; ++n) all.push_back(device(n));
        return all;
    }

private:
    using CountFunction = int (*)(void*, unsigned int);
    using FileFunction = const wchar_t* (*)(void*, unsigned int, unsigned int);

    Device device(unsigned int n) const {
        Device d;
        d.id = text(DeviceDiscovery_GetDeviceID(instance_, n));
        d.adapterLuid = DeviceDiscovery_GetDeviceAdapterLUID(instance_, n);
        d.description = text(DeviceDiscovery_GetDeviceDescription(instance_, n));
        d.driverRegistryKey = text(DeviceDiscovery_GetDeviceDriverRegistryKey(instance_, n));
        d.driverStorePath = text(DeviceDiscovery_GetDeviceDriverStorePath(instance_, n));
        d.locationPath = text(DeviceDiscovery_GetDeviceLocationPath(instance_, n));
        d.vendor = text(DeviceDiscovery_GetDeviceVendor(instance_, n));
        d.isIntegrated = number(DeviceDiscovery_IsDeviceIntegrated(instance_, n)) != 0;
        d.isDetachable = number(DeviceDiscovery_IsDeviceDetachable(instance_, n)) != 0;
        d.supportsDisplay = number(DeviceDiscovery_DoesDeviceSupportDisplay(instance_, n)) != 0;
        d.supportsCompute = number(DeviceDiscovery_DoesDeviceSupportCompute(instance_, n)) != 0;
        d.runtimeFiles = files(n, DeviceDiscovery_GetNumRuntimeFiles, DeviceDiscovery_GetRuntimeFileSource,
                               DeviceDiscovery_GetRuntimeFileDestination);
        d.runtimeFilesWow64 = files(n, DeviceDiscovery_GetNumRuntimeFilesWow64,
                                    DeviceDiscovery_GetRuntimeFileSourceWow64,
                                    DeviceDiscovery_GetRuntimeFileDestinationWow64);
        return d;
    }

    std::vector<RuntimeFile> files(unsigned int n, CountFunction count, FileFunction source,
                                   FileFunction destination) const {
        const auto total = static_cast<unsigned int>(number(count(instance_, n)));
        std::vector<RuntimeFile> all;
        all.reserve(total);
        for (unsigned int f = 0; f < total; ++f) {
            RuntimeFile file;
            file.source = text(source(instance_, n, f));
            file.destination = text(destination(instance_, n, f));
            all.push_back(std::move(file));
        }
        return all;
    }

    int number(int answer) const {
        if (answer < 0) fail();
        return answer;
    }

    std::wstring text(const wchar_t* answer) const {
        if (answer == nullptr) fail();
        return answer;
    }

    [[noreturn]] void fail() const { throw Error(DeviceDiscovery_GetLastErrorMessage(instance_)); }

    void* instance_;
};

}  // namespace DeviceDiscovery

#endif /* __cplusplus */

#endif /* DIRECTX_DEVICE_DISCOVERY_H */
