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
// It has functions on Windows alone; elsewhere only the types are there.
package discovery

// Filter says which devices are wanted by what they support.
type Filter int32

// The filters, numbered as the library numbers them.
const (
	AllDevices        Filter = 0
	DisplaySupported  Filter = 1
	ComputeSupported  Filter = 2
	DisplayOnly       Filter = 3
	ComputeOnly       Filter = 4
	DisplayAndCompute Filter = 5
)

// Scope says whether a kind of device is wanted.
type Scope int32

// The scopes.
const (
	Exclude Scope = 0
	Include Scope = 1
)

// RuntimeFile is a file of the driver store folder that other APIs than DirectX need.
type RuntimeFile struct {
	// Source is the file's path in the driver store folder.
	Source string
	// Destination is the name to give it in System32 or SysWOW64.
	Destination string
}

// Device is one device, copied out of the library. What is not known is empty.
type Device struct {
	// ID is the PnP instance id.
	ID string
	// AdapterLUID changes with every start of the host.
	AdapterLUID int64
	// Description is what Device Manager calls the device.
	Description string
	// DriverRegistryKey begins with HKEY_LOCAL_MACHINE.
	DriverRegistryKey string
	// DriverStorePath is the driver's folder.
	DriverStorePath string
	// LocationPath is what a container is given the device by.
	LocationPath string
	// Vendor is spelled as the driver package spells it.
	Vendor string
	// IsIntegrated tells a device that is built into the processor.
	IsIntegrated bool
	// IsDetachable tells a device that can be removed while the host runs.
	IsDetachable bool
	// SupportsDisplay tells a device with D3D11 or D3D12 graphics.
	SupportsDisplay bool
	// SupportsCompute tells a device with compute, neural processors included.
	SupportsCompute bool
	// RuntimeFiles go to System32.
	RuntimeFiles []RuntimeFile
	// RuntimeFilesWow64 go to SysWOW64.
	RuntimeFilesWow64 []RuntimeFile
}

// Error is why the library could not do what it was asked for.
type Error struct {
	// Message is the library's own text.
	Message string
}

func (e *Error) Error() string { return e.Message }
