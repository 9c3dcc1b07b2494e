//! Word of devices that arrive and go, from the `PnP` manager.
#![allow(unsafe_code, reason = "calls cfgmgr32.dll")]

use std::ffi::c_void;
use std::io;
use std::sync::Arc;

use devices::ChangeCallback;
use windows::Win32::Devices::DeviceAndDriverInstallation::{
    CM_NOTIFY_ACTION, CM_NOTIFY_EVENT_DATA, CM_NOTIFY_FILTER, CM_NOTIFY_FILTER_0,
    CM_NOTIFY_FILTER_0_0, CM_NOTIFY_FILTER_TYPE_DEVICEINTERFACE, CONFIGRET, CR_SUCCESS,
    HCMNOTIFICATION, PCM_NOTIFY_CALLBACK,
};
use windows::Win32::Foundation::ERROR_SUCCESS;
use windows::core::GUID;

use super::library::Library;

type Register = unsafe extern "system" fn(
    *const CM_NOTIFY_FILTER,
    *const c_void,
    PCM_NOTIFY_CALLBACK,
    *mut HCMNOTIFICATION,
) -> CONFIGRET;
type Unregister = unsafe extern "system" fn(HCMNOTIFICATION) -> CONFIGRET;

/// `GUID_DISPLAY_DEVICE_ARRIVAL` and `GUID_COMPUTE_DEVICE_ARRIVAL` (ntddvdeo.h): the
/// interfaces of display devices and of compute-only ones.
const INTERFACES: [GUID; 2] = [
    GUID::from_u128(0x1ca05180_a699_450a_9a0c_de4fbe3ddd89),
    GUID::from_u128(0x1024e4c9_47c9_48d3_b4a8_f9df78523b53),
];

/// Interface notifications, until it is dropped.
pub(crate) struct DeviceNotifications {
    unregister: Unregister,
    handles: Vec<HCMNOTIFICATION>,
    // What the manager hands back to `changed`; it lives until the last handle is gone.
    context: Arc<ChangeCallback>,
}

// SAFETY: a notification handle belongs to the process, not to a thread.
unsafe impl Send for DeviceNotifications {}

impl DeviceNotifications {
    /// Has `on_change` called whenever a display or compute device arrives or goes.
    ///
    /// # Errors
    /// This Windows has no such notifications, or refuses one.
    pub(crate) fn new(on_change: &Arc<ChangeCallback>) -> io::Result<Self> {
        let library = Library::system("cfgmgr32.dll")?;
        // SAFETY: the type is the one cfgmgr32.h declares.
        let register: Register = unsafe { library.function(c"CM_Register_Notification") }?;
        // SAFETY: as above.
        let unregister = unsafe { library.function(c"CM_Unregister_Notification") }?;
        let context = Arc::clone(on_change);
        let mut this = Self { unregister, handles: Vec::new(), context };
        for interface in INTERFACES {
            this.register(register, interface)?;
        }
        Ok(this)
    }

    fn register(&mut self, register: Register, interface: GUID) -> io::Result<()> {
        let filter = CM_NOTIFY_FILTER {
            cbSize: u32::try_from(size_of::<CM_NOTIFY_FILTER>()).expect("a small structure"),
            FilterType: CM_NOTIFY_FILTER_TYPE_DEVICEINTERFACE,
            u: CM_NOTIFY_FILTER_0 {
                DeviceInterface: CM_NOTIFY_FILTER_0_0 { ClassGuid: interface },
            },
            ..CM_NOTIFY_FILTER::default()
        };
        let context: *const ChangeCallback = Arc::as_ptr(&self.context);
        let mut handle = HCMNOTIFICATION::default();
        // SAFETY: the filter says how large it is, and the context lives until `Drop` has
        // unregistered the handle, which waits for calls that are under way.
        let result =
            unsafe { register(&raw const filter, context.cast(), Some(changed), &raw mut handle) };
        if result != CR_SUCCESS {
            return Err(io::Error::other(format!("configuration manager error {}", result.0)));
        }
        self.handles.push(handle);
        Ok(())
    }
}

impl Drop for DeviceNotifications {
    fn drop(&mut self) {
        for handle in self.handles.drain(..) {
            // SAFETY: the handle is registered and ours.
            let _ = unsafe { (self.unregister)(handle) };
        }
    }
}

/// Called by the `PnP` manager on a thread of its own. The answer is only looked at
/// for queries, which interfaces do not make.
unsafe extern "system" fn changed(
    _handle: HCMNOTIFICATION,
    context: *const c_void,
    _action: CM_NOTIFY_ACTION,
    _data: *const CM_NOTIFY_EVENT_DATA,
    _size: u32,
) -> u32 {
    // SAFETY: the context is the one that `DeviceNotifications` keeps alive.
    let on_change = unsafe { &*context.cast::<ChangeCallback>() };
    on_change();
    ERROR_SUCCESS.0
}
