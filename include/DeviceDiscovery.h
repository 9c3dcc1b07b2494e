/*
 * directx-device-discovery.dll: lists the DirectX devices of a Windows host.
 *
 * C callers use the functions. C++ callers (C++14) can use the classes of namespace
 * DirectXDevices below, which return the same data as the functions. Source that was written for
 * TensorWorks' library also finds its classes, DeviceDiscovery and DeviceDiscoveryException.
 *
 *  - Text is wide, null-terminated and owned by the instance. Copy it before the next call
 *    on the same instance. An unknown property of a device is empty text.
 *  - Device and file indexes start at 0.
 *  - A function fails if the instance is null or destroyed, if an index is out of range,
 *    and before the first discovery. It never crashes.
 *    DeviceDiscovery_GetLastErrorMessage returns the reason.
 *  - Instances are independent. Several threads can use an instance, one at a time.
 *  - Destroy all instances before you unload the library.
 */
#ifndef DIRECTX_DEVICE_DISCOVERY_H
#define DIRECTX_DEVICE_DISCOVERY_H

#if defined(_WIN32) && !defined(_M_X64) && !defined(__x86_64__)
#error "directx-device-discovery.dll is a 64-bit x86 library: compile for x64"
#endif

#include <wchar.h>

#include "DeviceFilter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: always "0.0.1". The earlier Go device plugins refuse a
 * library that returns any other text, so the text does not change with releases. The
 * version of the release is in the version resource of the DLL: in PowerShell,
 * (Get-Item directx-device-discovery.dll).VersionInfo.FileVersion. */
const wchar_t* GetDiscoveryLibraryVersion(void);

/* Enable and disable logging to standard error, for all instances. It is disabled at first. */
void EnableDiscoveryLogging(void);
void DisableDiscoveryLogging(void);

/* An instance. */
typedef void* DeviceDiscoveryInstance;

/* Create and destroy an instance; null if it cannot be created. Destroying null or a
 * destroyed instance does nothing. */
void* CreateDeviceDiscoveryInstance(void);
void DestroyDeviceDiscoveryInstance(void* instance);

/* The reason why the last call on the instance failed; empty after a success. */
const wchar_t* DeviceDiscovery_GetLastErrorMessage(void* instance);

/* 1 if the host may have changed since the last discovery, if there was no discovery yet, or if
 * this host does not report changes; otherwise 0; -1 on failure. */
int DeviceDiscovery_IsRefreshRequired(void* instance);

/* Discovers devices, which replace those of the last discovery. DeviceFilter.h has the filters. 0 on
 * success. -1 on failure; the devices of the last discovery then stay available. */
int DeviceDiscovery_DiscoverDevices(void* instance, int filter, int includeIntegrated, int includeDetachable);

/* The number of devices that the last discovery found; -1 before the first discovery. */
int DeviceDiscovery_GetNumDevices(void* instance);

/* The LUID of the device's adapter; -1 on failure. */
long long DeviceDiscovery_GetDeviceAdapterLUID(void* instance, unsigned int device);

/* Text; null on failure. The ID is the PnP instance id. The driver registry key is a full
 * path that starts with HKEY_LOCAL_MACHINE. The vendor is the text from the driver package. */
const wchar_t* DeviceDiscovery_GetDeviceID(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceDescription(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceDriverRegistryKey(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceDriverStorePath(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceLocationPath(void* instance, unsigned int device);
const wchar_t* DeviceDiscovery_GetDeviceVendor(void* instance, unsigned int device);

/* The runtime files: files of the driver store folder that APIs other than DirectX need in
 * System32 or, for the functions with the suffix Wow64, in SysWOW64. The functions return
 * their number (-1 on failure), the path of a file in the driver store folder, and its file
 * name in the destination folder (null on failure). In a container there are no runtime files. */
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

namespace DirectXDevices {

enum class IntegratedDevices { Exclude, Include };
enum class DetachableDevices { Exclude, Include };

/* A failed call. what() is a constant ASCII text; message() is the library's error message. */
class Error : public std::runtime_error {
public:
    explicit Error(std::wstring message)
        : std::runtime_error("DirectX device discovery failed"), message_(std::move(message)) {}

    const std::wstring& message() const noexcept { return message_; }

private:
    std::wstring message_;
};

/* A file: its path in the driver store folder, and its file name in the destination folder. */
struct RuntimeFile {
    std::wstring source;
    std::wstring destination;
};

/* A copy of the properties of a device, which stays valid after the instance is destroyed. */
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

/* The version of the interface, see GetDiscoveryLibraryVersion. */
inline std::wstring libraryVersion() { return GetDiscoveryLibraryVersion(); }

/* Owns an instance of the library. */
class Discovery {
public:
    Discovery() : instance_(CreateDeviceDiscoveryInstance()) {
        if (instance_ == nullptr) throw Error(L"cannot create a discovery instance");
    }

    ~Discovery() { DestroyDeviceDiscoveryInstance(instance_); }

    Discovery(const Discovery&) = delete;
    Discovery& operator=(const Discovery&) = delete;
    Discovery(Discovery&& other) noexcept : instance_(std::exchange(other.instance_, nullptr)) {}
    Discovery& operator=(Discovery&& other) noexcept {
        std::swap(instance_, other.instance_);
        return *this;
    }

    /* Whether the host may have changed since the last discovery. */
    bool isRefreshRequired() const { return number(DeviceDiscovery_IsRefreshRequired(instance_)) != 0; }

    /* Discovers the devices and returns them. */
    std::vector<Device> discover(DeviceFilter filter = DeviceFilter::AllDevices,
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

}  // namespace DirectXDevices

/* The classes of TensorWorks' library, for source that was written for it. They return text that
 * the library owns, and throw after a failure. */

/* Not a std::exception. */
class DeviceDiscoveryException {
public:
    DeviceDiscoveryException(const wchar_t* message) : message_(message) {}

    std::wstring what() const { return message_; }

private:
    std::wstring message_;
};

class DeviceDiscovery {
public:
    DeviceDiscovery() : instance_(CreateDeviceDiscoveryInstance()) {}
    ~DeviceDiscovery() { DestroyDeviceDiscoveryInstance(instance_); }

    DeviceDiscovery(const DeviceDiscovery&) = delete;
    DeviceDiscovery& operator=(const DeviceDiscovery&) = delete;

    const wchar_t* GetLastErrorMessage() { return DeviceDiscovery_GetLastErrorMessage(instance_); }
    bool IsRefreshRequired() { return DeviceDiscovery_IsRefreshRequired(instance_) != 0; }

    bool DiscoverDevices(DeviceFilter filter, bool includeIntegrated, bool includeDetachable) {
        return checked(DeviceDiscovery_DiscoverDevices(instance_, static_cast<int>(filter), includeIntegrated,
                                                       includeDetachable)) == 0;
    }

    int GetNumDevices() { return checked(DeviceDiscovery_GetNumDevices(instance_)); }

    long long GetDeviceAdapterLUID(unsigned int device) {
        return checked(DeviceDiscovery_GetDeviceAdapterLUID(instance_, device));
    }
    const wchar_t* GetDeviceID(unsigned int device) { return checked(DeviceDiscovery_GetDeviceID(instance_, device)); }
    const wchar_t* GetDeviceDescription(unsigned int device) {
        return checked(DeviceDiscovery_GetDeviceDescription(instance_, device));
    }
    const wchar_t* GetDeviceDriverRegistryKey(unsigned int device) {
        return checked(DeviceDiscovery_GetDeviceDriverRegistryKey(instance_, device));
    }
    const wchar_t* GetDeviceDriverStorePath(unsigned int device) {
        return checked(DeviceDiscovery_GetDeviceDriverStorePath(instance_, device));
    }
    const wchar_t* GetDeviceLocationPath(unsigned int device) {
        return checked(DeviceDiscovery_GetDeviceLocationPath(instance_, device));
    }
    const wchar_t* GetDeviceVendor(unsigned int device) {
        return checked(DeviceDiscovery_GetDeviceVendor(instance_, device));
    }

    int GetNumRuntimeFiles(unsigned int device) {
        return checked(DeviceDiscovery_GetNumRuntimeFiles(instance_, device));
    }
    const wchar_t* GetRuntimeFileSource(unsigned int device, unsigned int file) {
        return checked(DeviceDiscovery_GetRuntimeFileSource(instance_, device, file));
    }
    const wchar_t* GetRuntimeFileDestination(unsigned int device, unsigned int file) {
        return checked(DeviceDiscovery_GetRuntimeFileDestination(instance_, device, file));
    }
    int GetNumRuntimeFilesWow64(unsigned int device) {
        return checked(DeviceDiscovery_GetNumRuntimeFilesWow64(instance_, device));
    }
    const wchar_t* GetRuntimeFileSourceWow64(unsigned int device, unsigned int file) {
        return checked(DeviceDiscovery_GetRuntimeFileSourceWow64(instance_, device, file));
    }
    const wchar_t* GetRuntimeFileDestinationWow64(unsigned int device, unsigned int file) {
        return checked(DeviceDiscovery_GetRuntimeFileDestinationWow64(instance_, device, file));
    }

    bool IsDeviceIntegrated(unsigned int device) {
        return checked(DeviceDiscovery_IsDeviceIntegrated(instance_, device)) != 0;
    }
    bool IsDeviceDetachable(unsigned int device) {
        return checked(DeviceDiscovery_IsDeviceDetachable(instance_, device)) != 0;
    }
    bool DoesDeviceSupportDisplay(unsigned int device) {
        return checked(DeviceDiscovery_DoesDeviceSupportDisplay(instance_, device)) != 0;
    }
    bool DoesDeviceSupportCompute(unsigned int device) {
        return checked(DeviceDiscovery_DoesDeviceSupportCompute(instance_, device)) != 0;
    }

private:
    template <typename Number>
    Number checked(Number answer) {
        if (answer == -1) throw DeviceDiscoveryException(GetLastErrorMessage());
        return answer;
    }

    const wchar_t* checked(const wchar_t* answer) {
        if (answer == nullptr) throw DeviceDiscoveryException(GetLastErrorMessage());
        return answer;
    }

    DeviceDiscoveryInstance instance_;
};

#endif /* __cplusplus */

#endif /* DIRECTX_DEVICE_DISCOVERY_H */
