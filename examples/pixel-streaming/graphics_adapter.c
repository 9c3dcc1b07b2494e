/* Prints the number that Unreal Engine's -graphicsadapter expects for the GPU of this container.
 *
 * Windows shows a container every GPU of the host, and Unreal Engine uses the first one unless it is told
 * otherwise. DIRECTX_VISIBLE_DEVICES contains the LUID of the allocated GPU as a signed decimal number;
 * the position of that adapter in DXGI's list is the number. Exits with 1 if no adapter has the LUID. */

#define COBJMACROS
#include <dxgi.h>
#include <stdio.h>
#include <stdlib.h>

/* Defined here so that the program needs no library of GUIDs. From dxgi.h. */
static const GUID factory_iid = {0x770aae78, 0xf26f, 0x4dba, {0xa8, 0x29, 0x25, 0x3c, 0x83, 0xd1, 0xb3, 0x87}};

int main(void) {
    const char *value = getenv("DIRECTX_VISIBLE_DEVICES");
    if (!value || !*value) {
        fprintf(stderr, "error: DIRECTX_VISIBLE_DEVICES is not set; does the pod request a device?\n");
        return 1;
    }
    /* Several devices are separated by commas; the first one is used. */
    long long luid = strtoll(value, NULL, 10);

    IDXGIFactory1 *factory = NULL;
    HRESULT result = CreateDXGIFactory1(&factory_iid, (void **)&factory);
    if (FAILED(result)) {
        fprintf(stderr, "error: CreateDXGIFactory1 failed with 0x%08lx\n", (unsigned long)result);
        return 1;
    }
    IDXGIAdapter1 *adapter = NULL;
    for (unsigned n = 0; SUCCEEDED(IDXGIFactory1_EnumAdapters1(factory, n, &adapter)); n++) {
        DXGI_ADAPTER_DESC1 description;
        result = IDXGIAdapter1_GetDesc1(adapter, &description);
        IDXGIAdapter1_Release(adapter);
        if (FAILED(result))
            continue;
        LUID found = description.AdapterLuid;
        unsigned long long high = (unsigned long)found.HighPart;
        if ((long long)(high << 32 | found.LowPart) == luid) {
            printf("%u\n", n);
            return 0;
        }
    }
    fprintf(stderr, "error: no DXGI adapter has the LUID %lld\n", luid);
    return 1;
}
