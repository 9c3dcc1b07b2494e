package discovery

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

// LibraryName is the file that Load looks for in the folder of the program.
const LibraryName = "directx-device-discovery.dll"

// Library is the loaded DLL. It stays loaded until the program exits.
type Library struct {
	version, enableLogging, disableLogging, create, destroy, lastError,
	isRefreshRequired, discover, numDevices, luid *syscall.Proc
	texts map[string]*syscall.Proc
	flags map[string]*syscall.Proc
	files [2]fileProcs
}

// fileProcs are the functions for one of the two lists of runtime files.
type fileProcs struct{ count, source, destination *syscall.Proc }

// Load loads the DLL at path, or, if path is empty, from the folder of the running program.
// A relative path is an error, because other users may control the folders that Windows
// searches for it.
func Load(path string) (*Library, error) {
	if path == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(filepath.Dir(program), LibraryName)
	}
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("library path `%s` is not absolute", path)
	}
	dll, err := syscall.LoadDLL(path)
	if err != nil {
		return nil, err
	}
	library := &Library{}
	return library, library.find(dll)
}

func (l *Library) find(dll *syscall.DLL) error {
	var failed error
	proc := func(name string) *syscall.Proc {
		found, err := dll.FindProc(name)
		if err != nil && failed == nil {
			failed = err
		}
		return found
	}
	procs := func(names ...string) map[string]*syscall.Proc {
		found := map[string]*syscall.Proc{}
		for _, name := range names {
			found[name] = proc("DeviceDiscovery_" + name)
		}
		return found
	}
	l.version = proc("GetDiscoveryLibraryVersion")
	l.enableLogging = proc("EnableDiscoveryLogging")
	l.disableLogging = proc("DisableDiscoveryLogging")
	l.create = proc("CreateDeviceDiscoveryInstance")
	l.destroy = proc("DestroyDeviceDiscoveryInstance")
	l.lastError = proc("DeviceDiscovery_GetLastErrorMessage")
	l.isRefreshRequired = proc("DeviceDiscovery_IsRefreshRequired")
	l.discover = proc("DeviceDiscovery_DiscoverDevices")
	l.numDevices = proc("DeviceDiscovery_GetNumDevices")
	l.luid = proc("DeviceDiscovery_GetDeviceAdapterLUID")
	l.texts = procs("GetDeviceID", "GetDeviceDescription", "GetDeviceDriverRegistryKey",
		"GetDeviceDriverStorePath", "GetDeviceLocationPath", "GetDeviceVendor")
	l.flags = procs("IsDeviceIntegrated", "IsDeviceDetachable", "DoesDeviceSupportDisplay",
		"DoesDeviceSupportCompute")
	for n, suffix := range []string{"", "Wow64"} {
		l.files[n] = fileProcs{
			count:       proc("DeviceDiscovery_GetNumRuntimeFiles" + suffix),
			source:      proc("DeviceDiscovery_GetRuntimeFileSource" + suffix),
			destination: proc("DeviceDiscovery_GetRuntimeFileDestination" + suffix),
		}
	}
	return failed
}

// Version returns the version of the library interface, which is always "0.0.1". The
// version of the release is in the version resource of the DLL.
func (l *Library) Version() string {
	result, _, _ := l.version.Call()
	return wideText(result)
}

// EnableLogging enables the log of the library on standard error. It is disabled at first.
func (l *Library) EnableLogging() { l.enableLogging.Call() }

// DisableLogging disables the log of the library.
func (l *Library) DisableLogging() { l.disableLogging.Call() }

// Instance is an independent discovery instance. Several goroutines can use it, one at a
// time.
type Instance struct {
	library *Library
	handle  uintptr
}

// NewInstance creates an instance. The caller must close it.
func (l *Library) NewInstance() (*Instance, error) {
	handle, _, _ := l.create.Call()
	if handle == 0 {
		return nil, &Error{"cannot create a discovery instance"}
	}
	return &Instance{l, handle}, nil
}

// Close destroys the instance. Devices that it returned stay valid.
func (i *Instance) Close() { i.library.destroy.Call(i.handle) }

// IsRefreshRequired reports whether the host may have changed since the last discovery.
func (i *Instance) IsRefreshRequired() (bool, error) {
	result, err := i.number(i.library.isRefreshRequired)
	return result == 1, err
}

// Discover discovers the devices that match the filter and the scopes, and returns them.
func (i *Instance) Discover(filter Filter, integrated, detachable Scope) ([]Device, error) {
	_, err := i.number(i.library.discover, uintptr(filter), uintptr(integrated), uintptr(detachable))
	if err != nil {
		return nil, err
	}
	count, err := i.number(i.library.numDevices)
	if err != nil {
		return nil, err
	}
	devices := make([]Device, count)
	for n := range devices {
		if err := i.fill(&devices[n], uintptr(n)); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

func (i *Instance) fill(device *Device, n uintptr) error {
	luid, _, _ := i.library.luid.Call(i.handle, n)
	device.AdapterLUID = int64(luid)
	for name, field := range map[string]*string{
		"GetDeviceID":                &device.ID,
		"GetDeviceDescription":       &device.Description,
		"GetDeviceDriverRegistryKey": &device.DriverRegistryKey,
		"GetDeviceDriverStorePath":   &device.DriverStorePath,
		"GetDeviceLocationPath":      &device.LocationPath,
		"GetDeviceVendor":            &device.Vendor,
	} {
		text, err := i.text(i.library.texts[name], n)
		if err != nil {
			return err
		}
		*field = text
	}
	for name, field := range map[string]*bool{
		"IsDeviceIntegrated":       &device.IsIntegrated,
		"IsDeviceDetachable":       &device.IsDetachable,
		"DoesDeviceSupportDisplay": &device.SupportsDisplay,
		"DoesDeviceSupportCompute": &device.SupportsCompute,
	} {
		result, err := i.number(i.library.flags[name], n)
		if err != nil {
			return err
		}
		*field = result == 1
	}
	for list, field := range []*[]RuntimeFile{&device.RuntimeFiles, &device.RuntimeFilesWow64} {
		files, err := i.runtimeFiles(i.library.files[list], n)
		if err != nil {
			return err
		}
		*field = files
	}
	return nil
}

func (i *Instance) runtimeFiles(procs fileProcs, n uintptr) ([]RuntimeFile, error) {
	count, err := i.number(procs.count, n)
	if err != nil {
		return nil, err
	}
	files := make([]RuntimeFile, count)
	for f := range files {
		if files[f].Source, err = i.text(procs.source, n, uintptr(f)); err != nil {
			return nil, err
		}
		if files[f].Destination, err = i.text(procs.destination, n, uintptr(f)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// number calls a function that returns an int, or -1 on failure.
func (i *Instance) number(proc *syscall.Proc, arguments ...uintptr) (int, error) {
	result, _, _ := proc.Call(append([]uintptr{i.handle}, arguments...)...)
	// Only the lower half of the register is defined.
	number := int32(uint32(result))
	if number < 0 {
		return 0, i.failure()
	}
	return int(number), nil
}

// text calls a function that returns text, or null on failure.
func (i *Instance) text(proc *syscall.Proc, arguments ...uintptr) (string, error) {
	result, _, _ := proc.Call(append([]uintptr{i.handle}, arguments...)...)
	if result == 0 {
		return "", i.failure()
	}
	return wideText(result), nil
}

func (i *Instance) failure() error {
	result, _, _ := i.library.lastError.Call(i.handle)
	return &Error{wideText(result)}
}

// wideText copies the text of the library at address.
func wideText(address uintptr) string {
	if address == 0 {
		return ""
	}
	// The address points to memory of the library, which the garbage collector does not manage.
	start := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	length := 0
	for *(*uint16)(unsafe.Add(start, 2*length)) != 0 {
		length++
	}
	return syscall.UTF16ToString(unsafe.Slice((*uint16)(start), length))
}
