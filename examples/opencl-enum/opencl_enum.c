/* Lists the OpenCL platforms and devices that a container can use. Exits with 1 if there is no device.
 *
 * OpenCL.dll is loaded at run time: it comes from the GPU's driver, so a container without a GPU does
 * not have it, and the program can then say so. */

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define MAX_COUNT 64

typedef cl_int(CL_API_CALL *get_platforms_fn)(cl_uint, cl_platform_id *, cl_uint *);
typedef cl_int(CL_API_CALL *platform_info_fn)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
typedef cl_int(CL_API_CALL *get_devices_fn)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
typedef cl_int(CL_API_CALL *device_info_fn)(cl_device_id, cl_device_info, size_t, void *, size_t *);

static void *function(HMODULE library, const char *name) {
    void *address = (void *)GetProcAddress(library, name);
    if (!address) {
        fprintf(stderr, "error: OpenCL.dll has no function %s\n", name);
        exit(1);
    }
    return address;
}

int main(void) {
    HMODULE library = LoadLibraryA("OpenCL.dll");
    if (!library) {
        fprintf(stderr, "error: cannot load OpenCL.dll (error %lu)\n", GetLastError());
        return 1;
    }
    get_platforms_fn get_platforms = function(library, "clGetPlatformIDs");
    platform_info_fn platform_info = function(library, "clGetPlatformInfo");
    get_devices_fn get_devices = function(library, "clGetDeviceIDs");
    device_info_fn device_info = function(library, "clGetDeviceInfo");

    cl_platform_id platforms[MAX_COUNT];
    cl_uint platform_count = 0;
    cl_int status = get_platforms(MAX_COUNT, platforms, &platform_count);
    if (status != CL_SUCCESS) {
        fprintf(stderr, "error: clGetPlatformIDs failed with %d\n", status);
        return 1;
    }
    unsigned total = 0;
    for (cl_uint p = 0; p < platform_count && p < MAX_COUNT; p++) {
        char name[256] = "";
        platform_info(platforms[p], CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
        printf("platform %u: %s\n", p, name);

        cl_device_id devices[MAX_COUNT];
        cl_uint device_count = 0;
        if (get_devices(platforms[p], CL_DEVICE_TYPE_ALL, MAX_COUNT, devices, &device_count) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < device_count && d < MAX_COUNT; d++) {
            char device[256] = "", driver[64] = "";
            cl_ulong memory = 0;
            device_info(devices[d], CL_DEVICE_NAME, sizeof device - 1, device, NULL);
            device_info(devices[d], CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
            device_info(devices[d], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
            printf("  device %u: %s, driver %s, %u MiB\n", d, device, driver, (unsigned)(memory >> 20));
            total++;
        }
    }
    printf("%u devices\n", total);
    return total ? 0 : 1;
}
