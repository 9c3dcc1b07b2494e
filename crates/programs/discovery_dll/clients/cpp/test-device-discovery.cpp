// Prints the same output as test-device-discovery, using the C++ classes of
// DeviceDiscovery.h.

#include "DeviceDiscovery.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <windows.h>
#endif

namespace {

const char* const usage =
    "Print the DirectX devices of this host, using the C++ interface of the discovery library\n"
    "\n"
    "Usage: test-device-discovery-cpp [--verbose]\n"
    "\n"
    "  -v, --verbose  Enable the log of the library on standard error\n"
    "  -h, --help     Print help\n"
    "  -V, --version  Print the version of the library interface\n"
    "\n"
    "Example:\n"
    "  test-device-discovery-cpp --verbose\n";

// Converts wide text to UTF-8. wchar_t holds UTF-16 on Windows and code points elsewhere.
std::string utf8(const std::wstring& wide) {
    std::string out;
    for (std::size_t n = 0; n < wide.size(); ++n) {
        std::uint32_t c = static_cast<std::uint32_t>(wide[n]);
        if (sizeof(wchar_t) == 2) c &= 0xFFFF;
        if (c >= 0xD800 && c < 0xDC00 && n + 1 < wide.size()) {
            const std::uint32_t low = static_cast<std::uint32_t>(wide[n + 1]) & 0xFFFF;
            if (low >= 0xDC00 && low < 0xE000) {
                c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
                ++n;
            }
        }
        const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
        if (c < 0x80) {
            add(c);
        } else if (c < 0x800) {
            add(0xC0 | c >> 6), add(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            add(0xE0 | c >> 12), add(0x80 | (c >> 6 & 0x3F)), add(0x80 | (c & 0x3F));
        } else {
            add(0xF0 | c >> 18), add(0x80 | (c >> 12 & 0x3F));
            add(0x80 | (c >> 6 & 0x3F)), add(0x80 | (c & 0x3F));
        }
    }
    return out;
}

// Writes text to a stream. Ignores errors, because the reader may have closed the stream.
void write(std::FILE* stream, const std::wstring& text) {
#ifdef _WIN32
    const HANDLE handle = reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(stream)));
    DWORD mode = 0;
    if (GetConsoleMode(handle, &mode)) {
        DWORD written = 0;
        std::size_t done = 0;
        while (done < text.size()) {
            const DWORD chunk = 8192;
            const std::size_t rest = text.size() - done;
            const DWORD count = rest < chunk ? static_cast<DWORD>(rest) : chunk;
            if (!WriteConsoleW(handle, text.data() + done, count, &written, nullptr) || written == 0) return;
            done += written;
        }
        return;
    }
    _setmode(_fileno(stream), _O_BINARY);
#endif
    const std::string bytes = utf8(text);
    std::fwrite(bytes.data(), 1, bytes.size(), stream);
    std::fflush(stream);
}

std::wstring files(const wchar_t* folder, const std::vector<DirectXDevices::RuntimeFile>& list) {
    std::wstring text = L"\n" + std::to_wstring(list.size()) + L" Additional " + folder + L" runtime files:\n";
    for (const auto& file : list) text += L"    " + file.source + L" => " + file.destination + L"\n";
    return text;
}

std::wstring details(std::size_t number, const DirectXDevices::Device& device) {
    const auto yes = [](bool value) { return std::wstring(value ? L"true" : L"false"); };
    std::wstring text = L"[Device " + std::to_wstring(number) + L" details]\n\n";
    text += L"PnP Hardware ID:     " + device.id + L"\n";
    text += L"DX Adapter LUID:     " + std::to_wstring(device.adapterLuid) + L"\n";
    text += L"Description:         " + device.description + L"\n";
    text += L"Driver Registry Key: " + device.driverRegistryKey + L"\n";
    text += L"DriverStore Path:    " + device.driverStorePath + L"\n";
    text += L"LocationPath:        " + device.locationPath + L"\n";
    text += L"Vendor:              " + device.vendor + L"\n";
    text += L"Is Integrated:       " + yes(device.isIntegrated) + L"\n";
    text += L"Is Detachable:       " + yes(device.isDetachable) + L"\n";
    text += L"Supports Display:    " + yes(device.supportsDisplay) + L"\n";
    text += L"Supports Compute:    " + yes(device.supportsCompute) + L"\n";
    text += files(L"System32", device.runtimeFiles);
    text += files(L"SysWOW64", device.runtimeFilesWow64);
    return text + L"\n";
}

void listDevices() {
    DirectXDevices::Discovery discovery;
    const auto devices = discovery.discover();
    std::wstring text = L"DirectX device discovery library version " + DirectXDevices::libraryVersion() + L"\n";
    text += L"Discovered " + std::to_wstring(devices.size()) + L" devices.\n\n";
    for (std::size_t n = 0; n < devices.size(); ++n) text += details(n, devices[n]);
    write(stdout, text);
}

}  // namespace

int main(int count, char** arguments) {
    for (int n = 1; n < count; ++n) {
        const auto is = [&](const char* short_name, const char* long_name) {
            return std::strcmp(arguments[n], short_name) == 0 || std::strcmp(arguments[n], long_name) == 0;
        };
        if (is("-h", "--help")) {
            std::fputs(usage, stdout);
            return 0;
        }
        if (is("-V", "--version")) {
            write(stdout, L"test-device-discovery-cpp " + DirectXDevices::libraryVersion() + L"\n");
            return 0;
        }
        if (!is("-v", "--verbose")) {
            std::fprintf(stderr, "error: unexpected argument `%s`\n\n%s", arguments[n], usage);
            return 2;
        }
        EnableDiscoveryLogging();
    }
    try {
        listDevices();
        return 0;
    } catch (const DirectXDevices::Error& error) {
        write(stderr, L"error: " + error.message() + L"\n");
        return 1;
    }
}
