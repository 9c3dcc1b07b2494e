//! The exported C functions. `include/DeviceDiscovery.h` documents them.

#![allow(unsafe_code, reason = "exports functions without name mangling")]
#![allow(non_snake_case, reason = "the C interface defines the names")]

use std::ffi::{c_int, c_longlong, c_uint};
use std::panic::catch_unwind;
use std::ptr;
use std::sync::LazyLock;

use crate::handles::{self, Handle};
use crate::instance::{CallError, Instance};
use crate::logging;
use crate::source;
use crate::wide::{WideChar, WideText};

/// What functions that return an `int` return on failure.
const FAILED: c_int = -1;

/// Exports functions that take an instance: name, arguments, return type and body.
macro_rules! exports {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $body:expr;
    )*) => {$(
        $(#[$doc])*
        // SAFETY: no other symbol has this name, unless a program links this library twice.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(instance: Handle $(, $argument: $type)*) -> $result {
            let body: fn(&mut Instance $(, $type)*) -> Result<$result, CallError> = $body;
            let result = handles::call(instance, |instance| body(instance $(, $argument)*));
            result.unwrap_or(<$result as ReturnType>::FAILURE)
        }
    )*};
}

/// A return type and the value that means failure.
trait ReturnType {
    const FAILURE: Self;
}

impl ReturnType for c_int {
    const FAILURE: c_int = FAILED;
}

impl ReturnType for c_longlong {
    const FAILURE: c_longlong = -1;
}

impl ReturnType for *const WideChar {
    const FAILURE: *const WideChar = ptr::null();
}

/// The version that every earlier `directx-device-discovery.dll` returned. The earlier Go
/// device plugins refuse a library that returns any other text, so it identifies the C
/// interface and does not change with releases. The version resource of the DLL contains
/// the version of the release.
const INTERFACE_VERSION: &str = "0.0.1";

/// The version of the C interface.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn GetDiscoveryLibraryVersion() -> *const WideChar {
    static VERSION: LazyLock<WideText> = LazyLock::new(|| WideText::new(INTERFACE_VERSION));
    VERSION.as_ptr()
}

/// Enables logging to standard error.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn EnableDiscoveryLogging() {
    logging::enable(true);
}

/// Disables logging, which is the default.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn DisableDiscoveryLogging() {
    logging::enable(false);
}

/// Creates an instance. The first discovery opens the host.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn CreateDeviceDiscoveryInstance() -> Handle {
    let created = catch_unwind(|| handles::add(Instance::new(source::open)));
    created.unwrap_or(ptr::null_mut())
}

/// Destroys an instance and all text that it returned.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn DestroyDeviceDiscoveryInstance(instance: Handle) {
    // The function cannot report a panic.
    let _ = catch_unwind(|| handles::remove(instance));
}

/// The reason why the last call on the instance failed.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn DeviceDiscovery_GetLastErrorMessage(instance: Handle) -> *const WideChar {
    static NO_INSTANCE: LazyLock<WideText> =
        LazyLock::new(|| WideText::new("the instance is null or has been destroyed"));
    let error = handles::inspect(instance, |instance| instance.error().as_ptr());
    error.unwrap_or_else(|| NO_INSTANCE.as_ptr())
}

exports! {
    /// Whether the devices may have changed since the last discovery.
    fn DeviceDiscovery_IsRefreshRequired() -> c_int =
        |instance| Ok(c_int::from(instance.is_refresh_required()));
    /// Discovers devices.
    fn DeviceDiscovery_DiscoverDevices(
        filter: c_int,
        integrated: c_int,
        detachable: c_int
    ) -> c_int = |instance, filter, integrated, detachable| {
        instance.discover(filter, integrated != 0, detachable != 0).map(|()| 0)
    };
    /// The number of devices that the last discovery found.
    fn DeviceDiscovery_GetNumDevices() -> c_int = |instance| Ok(count(instance.devices()?));
    /// The LUID of a device's adapter.
    fn DeviceDiscovery_GetDeviceAdapterLUID(device: c_uint) -> c_longlong =
        |instance, device| Ok(instance.device(device)?.device.luid.0);
    /// A device's `PnP` instance id.
    fn DeviceDiscovery_GetDeviceID(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.id.as_ptr());
    /// The name of a device in Device Manager.
    fn DeviceDiscovery_GetDeviceDescription(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.description.as_ptr());
    /// The full path of a device's driver key.
    fn DeviceDiscovery_GetDeviceDriverRegistryKey(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.driver_registry_key.as_ptr());
    /// The driver store folder of a device's driver.
    fn DeviceDiscovery_GetDeviceDriverStorePath(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.driver_store_path.as_ptr());
    /// A device's location path.
    fn DeviceDiscovery_GetDeviceLocationPath(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.location_path.as_ptr());
    /// The vendor of a device, from its driver package.
    fn DeviceDiscovery_GetDeviceVendor(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.vendor.as_ptr());
    /// The number of runtime files of a device for System32.
    fn DeviceDiscovery_GetNumRuntimeFiles(device: c_uint) -> c_int =
        |instance, device| Ok(count(&instance.device(device)?.system32));
    /// The number of runtime files of a device for `SysWOW64`.
    fn DeviceDiscovery_GetNumRuntimeFilesWow64(device: c_uint) -> c_int =
        |instance, device| Ok(count(&instance.device(device)?.wow64));
    /// The path of a System32 file in the driver store folder.
    fn DeviceDiscovery_GetRuntimeFileSource(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, |d| &d.system32)?.source.as_ptr())
    };
    /// The name of a System32 file in System32.
    fn DeviceDiscovery_GetRuntimeFileDestination(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, |d| &d.system32)?.destination.as_ptr())
    };
    /// The path of a `SysWOW64` file in the driver store folder.
    fn DeviceDiscovery_GetRuntimeFileSourceWow64(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, |d| &d.wow64)?.source.as_ptr())
    };
    /// The name of a `SysWOW64` file in `SysWOW64`.
    fn DeviceDiscovery_GetRuntimeFileDestinationWow64(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, |d| &d.wow64)?.destination.as_ptr())
    };
    /// Whether a device is built into the processor.
    fn DeviceDiscovery_IsDeviceIntegrated(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.device.integrated));
    /// Whether a device can be removed while the host runs.
    fn DeviceDiscovery_IsDeviceDetachable(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.device.detachable));
    /// Whether a device supports display.
    fn DeviceDiscovery_DoesDeviceSupportDisplay(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.device.display));
    /// Whether a device supports compute.
    fn DeviceDiscovery_DoesDeviceSupportCompute(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.device.compute));
}

/// The length of a list; no host has more than `int` can count.
fn count<T>(list: &[T]) -> c_int {
    c_int::try_from(list.len()).unwrap_or(c_int::MAX)
}
