/* Prints how many devices each filter finds, in C with the names of TensorWorks' headers. */

#include "DeviceDiscovery.h"

#include <stdio.h>

static int found(int filter) {
    DeviceDiscoveryInstance instance = CreateDeviceDiscoveryInstance();
    int count = -1;
    if (DeviceDiscovery_DiscoverDevices(instance, filter, 1, 1) == 0) {
        count = DeviceDiscovery_GetNumDevices(instance);
    }
    DestroyDeviceDiscoveryInstance(instance);
    return count;
}

int main(void) {
    printf("all: %d\n", found(DEVICEFILTER_ALL));
    printf("display: %d\n", found(DEVICEFILTER_DISPLAY_SUPPORTED));
    printf("compute: %d\n", found(DEVICEFILTER_COMPUTE_SUPPORTED));
    printf("display-only: %d\n", found(DEVICEFILTER_DISPLAY_ONLY));
    printf("compute-only: %d\n", found(DEVICEFILTER_COMPUTE_ONLY));
    printf("display-and-compute: %d\n", found(DEVICEFILTER_DISPLAY_AND_COMPUTE));
    return 0;
}
