// Calls every function of the classes of TensorWorks' headers, and compares the results with those of
// the classes of this project, which test-device-discovery.cpp prints.

#include "DeviceFilter.h"
#include "DeviceDiscovery.h"

#include <cstdio>
#include <string>

namespace {

int differences = 0;

void expect(bool is_equal, const char* what) {
    if (is_equal) return;
    std::printf("%s differs\n", what);
    ++differences;
}

void compareDevice(DeviceDiscovery& earlier, unsigned int n, const DirectXDevices::Device& device) {
    expect(earlier.GetDeviceID(n) == device.id, "GetDeviceID");
    expect(earlier.GetDeviceAdapterLUID(n) == device.adapterLuid, "GetDeviceAdapterLUID");
    expect(earlier.GetDeviceDescription(n) == device.description, "GetDeviceDescription");
    expect(earlier.GetDeviceDriverRegistryKey(n) == device.driverRegistryKey, "GetDeviceDriverRegistryKey");
    expect(earlier.GetDeviceDriverStorePath(n) == device.driverStorePath, "GetDeviceDriverStorePath");
    expect(earlier.GetDeviceLocationPath(n) == device.locationPath, "GetDeviceLocationPath");
    expect(earlier.GetDeviceVendor(n) == device.vendor, "GetDeviceVendor");
    expect(earlier.IsDeviceIntegrated(n) == device.isIntegrated, "IsDeviceIntegrated");
    expect(earlier.IsDeviceDetachable(n) == device.isDetachable, "IsDeviceDetachable");
    expect(earlier.DoesDeviceSupportDisplay(n) == device.supportsDisplay, "DoesDeviceSupportDisplay");
    expect(earlier.DoesDeviceSupportCompute(n) == device.supportsCompute, "DoesDeviceSupportCompute");

    int files = static_cast<int>(device.runtimeFiles.size());
    expect(earlier.GetNumRuntimeFiles(n) == files, "GetNumRuntimeFiles");
    for (int f = 0; f < files; ++f) {
        const DirectXDevices::RuntimeFile& file = device.runtimeFiles[f];
        expect(earlier.GetRuntimeFileSource(n, f) == file.source, "GetRuntimeFileSource");
        expect(earlier.GetRuntimeFileDestination(n, f) == file.destination, "GetRuntimeFileDestination");
    }
    files = static_cast<int>(device.runtimeFilesWow64.size());
    expect(earlier.GetNumRuntimeFilesWow64(n) == files, "GetNumRuntimeFilesWow64");
    for (int f = 0; f < files; ++f) {
        const DirectXDevices::RuntimeFile& file = device.runtimeFilesWow64[f];
        expect(earlier.GetRuntimeFileSourceWow64(n, f) == file.source, "GetRuntimeFileSourceWow64");
        expect(earlier.GetRuntimeFileDestinationWow64(n, f) == file.destination,
               "GetRuntimeFileDestinationWow64");
    }
}

bool throws(DeviceDiscovery& discovery) {
    try {
        discovery.GetDeviceID(0);
        return false;
    } catch (const DeviceDiscoveryException& error) {
        const std::wstring message = error.what();
        return !message.empty() && message == discovery.GetLastErrorMessage();
    }
}

}  // namespace

int main() {
    DeviceDiscovery earlier;
    expect(earlier.IsRefreshRequired(), "IsRefreshRequired");
    expect(throws(earlier), "DeviceDiscoveryException");
    try {
        expect(earlier.DiscoverDevices(DeviceFilter::AllDevices, true, true), "DiscoverDevices");
        const auto devices = DirectXDevices::Discovery().discover();
        const int count = earlier.GetNumDevices();
        expect(count == static_cast<int>(devices.size()), "GetNumDevices");
        for (int n = 0; n < count; ++n) compareDevice(earlier, n, devices[n]);
        std::printf("compared %d devices\n", count);
    } catch (const DeviceDiscoveryException& error) {
        std::printf("error: %ls\n", error.what().c_str());
        return 1;
    }
    expect(DeviceFilterName(DeviceFilter::DisplayOnly) == L"DisplayOnly", "DeviceFilterName");
    return differences == 0 ? 0 : 1;
}
