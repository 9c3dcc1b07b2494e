// Command test-device-discovery-go prints the same output as test-device-discovery, using
// the Go package discovery.
package main

import (
	"fmt"
	"os"
	"strings"

	"example.com/directx-device-plugin/bindings/go/discovery"
)

const usage = `Print the DirectX devices of this host, using the Go package of the discovery library

Usage: test-device-discovery-go [--verbose]

  -v, --verbose  Enable the log of the library on standard error
  -h, --help     Print help
  -V, --version  Print the version of the library interface

Example:
  test-device-discovery-go --verbose
`

func main() { os.Exit(run(os.Args[1:])) }

func run(arguments []string) int {
	verbose, version := false, false
	for _, argument := range arguments {
		switch argument {
		case "-v", "--verbose":
			verbose = true
		case "-V", "--version":
			version = true
		case "-h", "--help":
			fmt.Print(usage)
			return 0
		default:
			fmt.Fprintf(os.Stderr, "error: unexpected argument `%s`\n\n%s", argument, usage)
			return 2
		}
	}
	library, err := discovery.Load("")
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: cannot load the discovery library: %v\n", err)
		return 1
	}
	if version {
		fmt.Printf("test-device-discovery-go %s\n", library.Version())
		return 0
	}
	if verbose {
		library.EnableLogging()
	}
	text, err := report(library)
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	// Errors are ignored, because the reader may have closed the stream.
	_, _ = os.Stdout.WriteString(text)
	return 0
}

func report(library *discovery.Library) (string, error) {
	instance, err := library.NewInstance()
	if err != nil {
		return "", err
	}
	defer instance.Close()
	devices, err := instance.Discover(discovery.AllDevices, discovery.Include, discovery.Include)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "DirectX device discovery library version %s\n", library.Version())
	fmt.Fprintf(&text, "Discovered %d devices.\n\n", len(devices))
	for n, device := range devices {
		addDevice(&text, n, device)
	}
	return text.String(), nil
}

func addDevice(text *strings.Builder, n int, device discovery.Device) {
	fmt.Fprintf(text, "[Device %d details]\n\n", n)
	for _, line := range []struct {
		name  string
		value any
	}{
		{"PnP Hardware ID", device.ID},
		{"DX Adapter LUID", device.AdapterLUID},
		{"Description", device.Description},
		{"Driver Registry Key", device.DriverRegistryKey},
		{"DriverStore Path", device.DriverStorePath},
		{"LocationPath", device.LocationPath},
		{"Vendor", device.Vendor},
		{"Is Integrated", device.IsIntegrated},
		{"Is Detachable", device.IsDetachable},
		{"Supports Display", device.SupportsDisplay},
		{"Supports Compute", device.SupportsCompute},
	} {
		fmt.Fprintf(text, "%-20s %v\n", line.name+":", line.value)
	}
	addFiles(text, "System32", device.RuntimeFiles)
	addFiles(text, "SysWOW64", device.RuntimeFilesWow64)
	text.WriteString("\n")
}

func addFiles(text *strings.Builder, folder string, files []discovery.RuntimeFile) {
	fmt.Fprintf(text, "\n%d Additional %s runtime files:\n", len(files), folder)
	for _, file := range files {
		fmt.Fprintf(text, "    %s => %s\n", file.Source, file.Destination)
	}
}
