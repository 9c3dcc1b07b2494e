// Package discovery lists the DirectX devices of a Windows host with the library
// directx-device-discovery.dll, without cgo.
//
//	library, err := discovery.Load("")
//	if err != nil {
//		return err
//	}
//	instance, err := library.NewInstance()
//	if err != nil {
//		return err
//	}
//	defer instance.Close()
//	devices, err := instance.Discover(discovery.AllDevices, discovery.Include, discovery.Include)
//
// The functions exist only on Windows; on other systems the package contains only the types.
package discovery

// Filter selects devices by what they support.
type Filter int32

// The filters, with the numbers that the library uses.
const (
	AllDevices        Filter = 0
	DisplaySupported  Filter = 1
	ComputeSupported  Filter = 2
	DisplayOnly       Filter = 3
	ComputeOnly       Filter = 4
	DisplayAndCompute Filter = 5
)

// Scope includes or excludes a kind of device.
type Scope int32

// The scopes.
const (
	Exclude Scope = 0
	Include Scope = 1
)

// RuntimeFile is a file of the driver store folder that APIs other than DirectX need.
type RuntimeFile struct {
	// Source is the file's path in the driver store folder.
	Source string
	// Destination is the file name in System32 or SysWOW64.
	Destination string
}

// Device is a copy of the properties of a device. Unknown properties are empty.
type Device struct {
	// ID is the PnP instance id.
	ID string
	// AdapterLUID changes each time the host starts.
	AdapterLUID int64
	// Description is the name of the device in Device Manager.
	Description string
	// DriverRegistryKey is a full path that starts with HKEY_LOCAL_MACHINE.
	DriverRegistryKey string
	// DriverStorePath is the driver's folder in the driver store.
	DriverStorePath string
	// LocationPath identifies the device when it is assigned to a container.
	LocationPath string
	// Vendor is the text from the driver package.
	Vendor string
	// IsIntegrated reports whether the device is built into the processor.
	IsIntegrated bool
	// IsDetachable reports whether the device can be removed while the host runs.
	IsDetachable bool
	// SupportsDisplay reports whether the device has D3D11 or D3D12 graphics.
	SupportsDisplay bool
	// SupportsCompute reports whether the device supports compute. Neural processors do.
	SupportsCompute bool
	// RuntimeFiles are the files for System32.
	RuntimeFiles []RuntimeFile
	// RuntimeFilesWow64 are the files for SysWOW64.
	RuntimeFilesWow64 []RuntimeFile
}

// Error is a failed call of the library.
type Error struct {
	// Message is the error message of the library.
	Message string
}

func (e *Error) Error() string { return e.Message }
