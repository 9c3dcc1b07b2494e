/*
 * directx-device-discovery.dll: the filters of a discovery, by what a device supports.
 * DeviceDiscovery.h includes this header.
 */
#ifndef DIRECTX_DEVICE_FILTER_H
#define DIRECTX_DEVICE_FILTER_H

#define DEVICEFILTER_ALL 0
#define DEVICEFILTER_DISPLAY_SUPPORTED 1
#define DEVICEFILTER_COMPUTE_SUPPORTED 2
/* Display, but not compute. */
#define DEVICEFILTER_DISPLAY_ONLY 3
/* Compute, but not display. */
#define DEVICEFILTER_COMPUTE_ONLY 4
#define DEVICEFILTER_DISPLAY_AND_COMPUTE 5

#ifdef __cplusplus

#include <string>

enum class DeviceFilter : int {
    AllDevices = DEVICEFILTER_ALL,
    DisplaySupported = DEVICEFILTER_DISPLAY_SUPPORTED,
    ComputeSupported = DEVICEFILTER_COMPUTE_SUPPORTED,
    DisplayOnly = DEVICEFILTER_DISPLAY_ONLY,
    ComputeOnly = DEVICEFILTER_COMPUTE_ONLY,
    DisplayAndCompute = DEVICEFILTER_DISPLAY_AND_COMPUTE
};

/* The name of a filter. */
inline std::wstring DeviceFilterName(DeviceFilter filter) {
    switch (filter) {
        case DeviceFilter::AllDevices: return L"AllDevices";
        case DeviceFilter::DisplaySupported: return L"DisplaySupported";
        case DeviceFilter::ComputeSupported: return L"ComputeSupported";
        case DeviceFilter::DisplayOnly: return L"DisplayOnly";
        case DeviceFilter::ComputeOnly: return L"ComputeOnly";
        case DeviceFilter::DisplayAndCompute: return L"DisplayAndCompute";
    }
    return L"unknown";
}

#endif /* __cplusplus */

#endif /* DIRECTX_DEVICE_FILTER_H */
