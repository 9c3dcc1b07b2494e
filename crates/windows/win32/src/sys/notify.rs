//! Notifications of the `PnP` manager about added and removed devices.
#![allow(unsafe_code, reason = "calls cfgmgr32.dll")]

use std::ffi::c_void;
use std::io;
use std::sync::Arc;

use host::ChangeCallback;
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
/// device interfaces of display devices and of compute-only devices.
const INTERFACES: [GUID; 2] = [
    GUID::from_u128(0x1ca05180_a699_450a_9a0c_de4fbe3ddd89),
    GUID::from_u128(0x1024e4c9_47c9_48d3_b4a8_f9df78523b53),
];

/// Registered device interface notifications, which `Drop` unregisters.
pub(crate) struct DeviceNotifications {
    unregister: Unregister,
    handles: Vec<HCMNOTIFICATION>,
    // The context that the `PnP` manager passes to `changed`. It lives until the last handle
    // is unregistered.
    context: Arc<ChangeCallback>,
}

// SAFETY: a notification handle belongs to the process, not to a thread.
unsafe impl Send for DeviceNotifications {}

impl DeviceNotifications {
    /// Registers `on_change`, which is called when a display or compute device is added or
    /// removed.
    ///
    /// # Errors
    /// This Windows does not support the notifications, or a registration fails.
    pub(crate) fn new(on_change: &Arc<ChangeCallback>) -> io::Result<Self> {
        let library = Library::system("cfgmgr32.dll")?;
        // SAFETY: the type is the one cfgmgr32.h declares.
        let register = unsafe { library.function(c"CM_Register_Notification") }?;
        // SAFETY: as above.
        let unregister = unsafe { library.function(c"CM_Unregister_Notification") }?;
        Self::from_functions(register, unregister, on_change)
    }

    fn from_functions(
        register: Register,
        unregister: Unregister,
        on_change: &Arc<ChangeCallback>,
    ) -> io::Result<Self> {
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
        // SAFETY: the filter contains its size, and the context lives until `Drop` has
        // unregistered the handle, which waits for running callbacks.
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
            // SAFETY: the handle is registered and owned by this value.
            let _ = unsafe { (self.unregister)(handle) };
        }
    }
}

/// The `PnP` manager calls this function on its own thread. It uses the return value only for
/// queries, which do not exist for device interfaces.
unsafe extern "system" fn changed(
    _handle: HCMNOTIFICATION,
    context: *const c_void,
    _action: CM_NOTIFY_ACTION,
    _data: *const CM_NOTIFY_EVENT_DATA,
    _size: u32,
) -> u32 {
    // SAFETY: `DeviceNotifications` keeps the context alive.
    let on_change = unsafe { &*context.cast::<ChangeCallback>() };
    on_change();
    ERROR_SUCCESS.0
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{AtomicU32, Ordering};

    use windows::Win32::Devices::DeviceAndDriverInstallation::{
        CM_NOTIFY_ACTION_DEVICEINTERFACEARRIVAL, CR_FAILURE,
    };

    use super::*;

    thread_local! {
        /// The registrations: handle, interface and context.
        static REGISTERED: RefCell<Vec<(usize, GUID, *const c_void)>> = const { RefCell::new(Vec::new()) };
        /// How many registrations the test functions accept.
        static CAPACITY: Cell<usize> = const { Cell::new(2) };
    }

    unsafe extern "system" fn register(
        filter: *const CM_NOTIFY_FILTER,
        context: *const c_void,
        callback: PCM_NOTIFY_CALLBACK,
        handle: *mut HCMNOTIFICATION,
    ) -> CONFIGRET {
        // SAFETY: the caller passes a filter.
        let filter = unsafe { &*filter };
        assert_eq!(filter.cbSize as usize, size_of::<CM_NOTIFY_FILTER>());
        assert_eq!(filter.FilterType, CM_NOTIFY_FILTER_TYPE_DEVICEINTERFACE);
        assert!(callback.is_some());
        // SAFETY: a filter of this type contains this field.
        let interface = unsafe { filter.u.DeviceInterface.ClassGuid };
        REGISTERED.with_borrow_mut(|registered| {
            if registered.len() == CAPACITY.get() {
                return CR_FAILURE;
            }
            let number = registered.len() + 7;
            registered.push((number, interface, context));
            // SAFETY: the caller passes a writable handle.
            unsafe { *handle = HCMNOTIFICATION(std::ptr::without_provenance_mut(number)) };
            CR_SUCCESS
        })
    }

    unsafe extern "system" fn unregister(handle: HCMNOTIFICATION) -> CONFIGRET {
        REGISTERED.with_borrow_mut(|registered| registered.retain(|(h, ..)| *h != handle.0.addr()));
        CR_SUCCESS
    }

    fn registered() -> Vec<GUID> {
        REGISTERED.with_borrow(|registered| registered.iter().map(|(_, guid, _)| *guid).collect())
    }

    #[test]
    fn both_interfaces_are_registered_until_the_drop() {
        let count = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&count);
        let on_change: ChangeCallback =
            Box::new(move || _ = counter.fetch_add(1, Ordering::SeqCst));
        let on_change = Arc::new(on_change);
        let notifications =
            DeviceNotifications::from_functions(register, unregister, &on_change).unwrap();
        assert_eq!(registered(), INTERFACES);
        let context = REGISTERED.with_borrow(|registered| registered[1].2);
        let handle = HCMNOTIFICATION(std::ptr::null_mut());
        let action = CM_NOTIFY_ACTION_DEVICEINTERFACEARRIVAL;
        // SAFETY: the context is still registered.
        let result = unsafe { changed(handle, context, action, std::ptr::null(), 0) };
        assert_eq!((result, count.load(Ordering::SeqCst)), (0, 1));
        drop(notifications);
        assert_eq!(registered(), []);
        assert_eq!(Arc::strong_count(&on_change), 1);
    }

    #[test]
    fn a_failure_unregisters_earlier_registrations() {
        CAPACITY.set(1);
        let on_change: Arc<ChangeCallback> = Arc::new(Box::new(|| {}));
        let error =
            DeviceNotifications::from_functions(register, unregister, &on_change).err().unwrap();
        assert_eq!(error.to_string(), "configuration manager error 19");
        assert_eq!(registered(), []);
    }
}
