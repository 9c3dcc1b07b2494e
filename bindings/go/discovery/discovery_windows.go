package discovery

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

// LibraryName is what Load looks for beside the program.
const LibraryName = "directx-device-discovery.dll"

// Library is the loaded DLL. It stays loaded for as long as the program runs.
type Library struct {
	version, enableLogging, disableLogging, create, destroy, lastError,
	isRefreshRequired, discover, numDevices, luid *syscall.Proc
	texts   map[string]*syscall.Proc
	answers map[string]*syscall.Proc
	files   [2]fileProcs
}

// fileProcs are the functions for one of the two lists of runtime files.
type fileProcs struct{ count, source, destination *syscall.Proc }

// Load loads the DLL at path; with an empty path, the one beside the running program.
// A bare name is refused: where Windows would look for it is anybody's to decide.
func Load(path string) (*Library, error) {
	if path == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(filepath.Dir(program), LibraryName)
	}
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the library's path `%s` is not absolute", path)
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
	l.answers = procs("IsDeviceIntegrated", "IsDeviceDetachable", "DoesDeviceSupportDisplay",
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

// Version is the library's version.
func (l *Library) Version() string {
	answer, _, _ := l.version.Call()
	return wideText(answer)
}

// EnableLogging makes the library tell of its work on standard error.
func (l *Library) EnableLogging() { l.enableLogging.Call() }

// DisableLogging makes it silent, as it is at first.
func (l *Library) DisableLogging() { l.disableLogging.Call() }

// Instance is a discovery of its own. It may be used by several goroutines, one at a
// time.
type Instance struct {
	library *Library
	handle  uintptr
}

// NewInstance makes an instance, which is to be closed.
func (l *Library) NewInstance() (*Instance, error) {
	handle, _, _ := l.create.Call()
	if handle == 0 {
		return nil, &Error{"no discovery instance could be made"}
	}
	return &Instance{l, handle}, nil
}

// Close ends the instance. Devices that it returned stay good.
func (i *Instance) Close() { i.library.destroy.Call(i.handle) }

// IsRefreshRequired tells whether the host may have changed since the last discovery.
func (i *Instance) IsRefreshRequired() (bool, error) {
	answer, err := i.number(i.library.isRefreshRequired)
	return answer == 1, err
}

// Discover discovers and returns the devices that are wanted.
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
		answer, err := i.number(i.library.answers[name], n)
		if err != nil {
			return err
		}
		*field = answer == 1
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

// number calls a function that answers an int, -1 on failure.
func (i *Instance) number(proc *syscall.Proc, arguments ...uintptr) (int, error) {
	answer, _, _ := proc.Call(append([]uintptr{i.handle}, arguments...)...)
	// The upper half of the register is nobody's.
	number := int32(uint32(answer))
	if number < 0 {
		return 0, i.failure()
	}
	return int(number), nil
}

// text calls a function that answers text, null on failure.
func (i *Instance) text(proc *syscall.Proc, arguments ...uintptr) (string, error) {
	answer, _, _ := proc.Call(append([]uintptr{i.handle}, arguments...)...)
	if answer == 0 {
		return "", i.failure()
	}
	return wideText(answer), nil
}

func (i *Instance) failure() error {
	answer, _, _ := i.library.lastError.Call(i.handle)
	return &Error{wideText(answer)}
}

// wideText copies the library's text at address.
func wideText(address uintptr) string {
	if address == 0 {
		return ""
	}
	// The address is the library's, where Go's memory is never moved from or to.
	start := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	length := 0
	for *(*uint16)(unsafe.Add(start, 2*length)) != 0 {
		length++
	}
	return syscall.UTF16ToString(unsafe.Slice((*uint16)(start), length))
}
