//! The functions that C calls. `include/DeviceDiscovery.h` says what each answers.

#![allow(unsafe_code, reason = "a function is exported by its bare name")]
#![allow(non_snake_case, reason = "the names are those of the C interface")]

use std::ffi::{c_int, c_longlong, c_uint};
use std::panic::catch_unwind;
use std::ptr;
use std::sync::OnceLock;

use devices::{Attachment, DeviceScope, Placement};

use crate::instance::{CallError, Instance};
use crate::listed::{Listed, ListedFile};
use crate::logging::{self, Logging};
use crate::registry::{self, Handle};
use crate::source;
use crate::wide::{WideChar, WideText};

/// The answer of functions that return a number, on failure.
const FAILED: c_int = -1;

/// Exports functions of an instance: name, what it answers, its arguments, its work.
macro_rules! exports {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty = $work:expr;
    )*) => {$(
        $(#[$doc])*
        // SAFETY: no other symbol of a program is called so but by linking this library twice.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(instance: Handle $(, $argument: $type)*) -> $answer {
            let work: fn(&mut Instance $(, $type)*) -> Result<$answer, CallError> = $work;
            let answer = registry::with(instance, |instance| work(instance $(, $argument)*));
            answer.unwrap_or(<$answer as Answer>::FAILURE)
        }
    )*};
}

/// What a function answers on failure.
trait Answer {
    const FAILURE: Self;
}

impl Answer for c_int {
    const FAILURE: c_int = FAILED;
}

impl Answer for c_longlong {
    const FAILURE: c_longlong = -1;
}

impl Answer for *const WideChar {
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
    static VERSION: OnceLock<WideText> = OnceLock::new();
    VERSION.get_or_init(|| WideText::new(INTERFACE_VERSION)).as_ptr()
}

/// Makes the library tell of its work on standard error.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn EnableDiscoveryLogging() {
    logging::set(Logging::On);
}

/// Makes the library silent, as it is at first.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn DisableDiscoveryLogging() {
    logging::set(Logging::Off);
}

/// A new instance. It opens the host with its first discovery.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn CreateDeviceDiscoveryInstance() -> Handle {
    let made = catch_unwind(|| registry::add(Instance::new(source::open)));
    made.unwrap_or(ptr::null_mut())
}

/// Ends an instance and all text that it gave out.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn DestroyDeviceDiscoveryInstance(instance: Handle) {
    // There is nobody to tell, and nothing to do about it.
    let _ = catch_unwind(|| registry::remove(instance));
}

/// Why the last call failed.
// SAFETY: as for every export of this module.
#[unsafe(no_mangle)]
pub extern "C" fn DeviceDiscovery_GetLastErrorMessage(instance: Handle) -> *const WideChar {
    static NO_INSTANCE: OnceLock<WideText> = OnceLock::new();
    registry::look(instance, |instance| instance.error().as_ptr()).unwrap_or_else(|| {
        NO_INSTANCE
            .get_or_init(|| WideText::new("the instance is null or has been destroyed"))
            .as_ptr()
    })
}

exports! {
    /// Whether devices should be discovered again.
    fn DeviceDiscovery_IsRefreshRequired() -> c_int =
        |instance| instance.is_refresh_required().map(c_int::from);
    /// Discovers devices.
    fn DeviceDiscovery_DiscoverDevices(
        filter: c_int,
        integrated: c_int,
        detachable: c_int
    ) -> c_int = |instance, filter, integrated, detachable| {
        instance.discover(filter, scope(integrated), scope(detachable)).map(|()| 0)
    };
    /// How many devices the last discovery found.
    fn DeviceDiscovery_GetNumDevices() -> c_int = |instance| Ok(count(instance.devices()?));
    /// A device's adapter LUID.
    fn DeviceDiscovery_GetDeviceAdapterLUID(device: c_uint) -> c_longlong =
        |instance, device| Ok(instance.device(device)?.luid);
    /// A device's `PnP` instance id.
    fn DeviceDiscovery_GetDeviceID(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.id.as_ptr());
    /// What Device Manager calls a device.
    fn DeviceDiscovery_GetDeviceDescription(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.description.as_ptr());
    /// The full path of a device's driver key.
    fn DeviceDiscovery_GetDeviceDriverRegistryKey(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.driver_registry_key.as_ptr());
    /// A device's folder in the driver store.
    fn DeviceDiscovery_GetDeviceDriverStorePath(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.driver_store_path.as_ptr());
    /// A device's location path.
    fn DeviceDiscovery_GetDeviceLocationPath(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.location_path.as_ptr());
    /// A device's vendor, as its driver spells it.
    fn DeviceDiscovery_GetDeviceVendor(device: c_uint) -> *const WideChar =
        |instance, device| Ok(instance.device(device)?.vendor.as_ptr());
    /// How many runtime files a device has for System32.
    fn DeviceDiscovery_GetNumRuntimeFiles(device: c_uint) -> c_int =
        |instance, device| Ok(count(&instance.device(device)?.system32));
    /// How many runtime files a device has for `SysWOW64`.
    fn DeviceDiscovery_GetNumRuntimeFilesWow64(device: c_uint) -> c_int =
        |instance, device| Ok(count(&instance.device(device)?.wow64));
    /// A System32 file's path in the driver store folder.
    fn DeviceDiscovery_GetRuntimeFileSource(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, system32)?.source.as_ptr())
    };
    /// A System32 file's name there.
    fn DeviceDiscovery_GetRuntimeFileDestination(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, system32)?.destination.as_ptr())
    };
    /// A `SysWOW64` file's path in the driver store folder.
    fn DeviceDiscovery_GetRuntimeFileSourceWow64(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, wow64)?.source.as_ptr())
    };
    /// A `SysWOW64` file's name there.
    fn DeviceDiscovery_GetRuntimeFileDestinationWow64(
        device: c_uint,
        file: c_uint
    ) -> *const WideChar = |instance, device, file| {
        Ok(instance.file(device, file, wow64)?.destination.as_ptr())
    };
    /// Whether a device is built into the processor.
    fn DeviceDiscovery_IsDeviceIntegrated(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.placement == Placement::Integrated));
    /// Whether a device can be removed while the host runs.
    fn DeviceDiscovery_IsDeviceDetachable(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.attachment == Attachment::Detachable));
    /// Whether a device supports display.
    fn DeviceDiscovery_DoesDeviceSupportDisplay(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.display.is_yes()));
    /// Whether a device supports compute.
    fn DeviceDiscovery_DoesDeviceSupportCompute(device: c_uint) -> c_int =
        |instance, device| Ok(c_int::from(instance.device(device)?.compute.is_yes()));
}

fn scope(include: c_int) -> DeviceScope {
    if include == 0 { DeviceScope::Exclude } else { DeviceScope::Include }
}

/// A host has no two thousand million of anything.
fn count<T>(list: &[T]) -> c_int {
    c_int::try_from(list.len()).unwrap_or(c_int::MAX)
}

fn system32(device: &Listed) -> &[ListedFile] {
    &device.system32
}

fn wow64(device: &Listed) -> &[ListedFile] {
    &device.wow64
}
