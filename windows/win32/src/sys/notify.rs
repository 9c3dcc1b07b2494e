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

/// The two functions of cfgmgr32.dll.
#[derive(Clone, Copy)]
struct Manager {
    register: Register,
    unregister: Unregister,
}

/// Interface notifications, until it is dropped.
pub(crate) struct DeviceNotifications {
    manager: Manager,
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
        let register = unsafe { library.function(c"CM_Register_Notification") }?;
        // SAFETY: as above.
        let unregister = unsafe { library.function(c"CM_Unregister_Notification") }?;
        Self::from_manager(Manager { register, unregister }, on_change)
    }

    fn from_manager(manager: Manager, on_change: &Arc<ChangeCallback>) -> io::Result<Self> {
        let context = Arc::clone(on_change);
        let mut this = Self { manager, handles: Vec::new(), context };
        for interface in INTERFACES {
            this.register(interface)?;
        }
        Ok(this)
    }

    fn register(&mut self, interface: GUID) -> io::Result<()> {
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
        let result = unsafe {
            (self.manager.register)(
                &raw const filter,
                context.cast(),
                Some(changed),
                &raw mut handle,
            )
        };
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
            let _ = unsafe { (self.manager.unregister)(handle) };
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

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{AtomicU32, Ordering};

    use windows::Win32::Devices::DeviceAndDriverInstallation::{
        CM_NOTIFY_ACTION_DEVICEINTERFACEARRIVAL, CR_FAILURE,
    };

    use super::*;

    thread_local! {
        /// What is registered: handle, interface and context.
        static REGISTERED: RefCell<Vec<(usize, GUID, *const c_void)>> = const { RefCell::new(Vec::new()) };
        /// How many registrations the manager of this test takes.
        static ROOM: Cell<usize> = const { Cell::new(2) };
    }

    const MANAGER: Manager = Manager { register, unregister };

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
        // SAFETY: that is what a filter of this type holds.
        let interface = unsafe { filter.u.DeviceInterface.ClassGuid };
        REGISTERED.with_borrow_mut(|registered| {
            if registered.len() == ROOM.get() {
                return CR_FAILURE;
            }
            let number = registered.len() + 7;
            registered.push((number, interface, context));
            // SAFETY: the caller passes a place for the handle.
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
    fn both_interfaces_are_followed_until_the_drop() {
        let count = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&count);
        let on_change: ChangeCallback =
            Box::new(move || _ = counter.fetch_add(1, Ordering::SeqCst));
        let on_change = Arc::new(on_change);
        let notifications = DeviceNotifications::from_manager(MANAGER, &on_change).unwrap();
        assert_eq!(registered(), INTERFACES);
        let context = REGISTERED.with_borrow(|registered| registered[1].2);
        let (handle, action) =
            (HCMNOTIFICATION(std::ptr::null_mut()), CM_NOTIFY_ACTION_DEVICEINTERFACEARRIVAL);
        // SAFETY: the context is the one that was registered, and still is.
        let answer = unsafe { changed(handle, context, action, std::ptr::null(), 0) };
        assert_eq!((answer, count.load(Ordering::SeqCst)), (0, 1));
        drop(notifications);
        assert_eq!(registered(), []);
        assert_eq!(Arc::strong_count(&on_change), 1);
    }

    #[test]
    fn a_refusal_takes_back_what_was_registered_before() {
        ROOM.set(1);
        let on_change: Arc<ChangeCallback> = Arc::new(Box::new(|| {}));
        let refused = DeviceNotifications::from_manager(MANAGER, &on_change).err().unwrap();
        assert_eq!(refused.to_string(), "configuration manager error 19");
        assert_eq!(registered(), []);
    }
}
