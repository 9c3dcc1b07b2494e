//! Compares the double with the `DXCore` documentation, using the client side of the
//! interfaces in the `windows` crate. Runs under Wine.
#![cfg(windows)]
#![allow(unsafe_code, reason = "calls COM interfaces")]

use std::ffi::c_void;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windows::Win32::Foundation::E_INVALIDARG;
use windows::Win32::Graphics::DXCore::*;
use windows::Win32::Graphics::Dxgi::{
    DXGI_ERROR_DEVICE_REMOVED, DXGI_ERROR_INVALID_CALL, DXGI_ERROR_UNSUPPORTED,
};
use windows::core::{GUID, IUnknown, Interface, Ref};

const GRAPHICS: GUID = DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS;
const GENERIC_ML: GUID = GUID::from_u128(0xb71b0d41_1088_422f_a27c_0250b7d3a988);

/// Ends a test that hangs.
const DEADLINE: Duration = Duration::from_mins(2);

/// A host whose inventory the tests rewrite. The tests run one at a time, because a
/// process has only one inventory.
struct Host {
    path: PathBuf,
    factory: IDXCoreAdapterFactory,
    _lock: MutexGuard<'static, ()>,
}

const TWO: &[(i64, &str)] = &[(11, "d3d12-graphics"), (-12, "d3d12-graphics, d3d12-generic-ml")];

impl Host {
    fn with(adapters: &[(i64, &str)]) -> Host {
        static LOCK: Mutex<()> = Mutex::new(());
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::temp_dir().join(format!("double-{}.yaml", std::process::id()));
        // SAFETY: no other thread reads the environment while this test holds the lock.
        unsafe { std::env::set_var("DXCORE_DOUBLE_INVENTORY", &path) };
        write(&path, adapters);
        // SAFETY: the function has no preconditions.
        let factory = unsafe { DXCoreCreateAdapterFactory() }.expect("the inventory is readable");
        Host { path, factory, _lock: lock }
    }

    fn set_adapters(&self, adapters: &[(i64, &str)]) {
        write(&self.path, adapters);
    }

    fn list(&self, attribute: GUID) -> IDXCoreAdapterList {
        // SAFETY: the slice is valid for the call.
        unsafe { self.factory.CreateAdapterList(&[attribute]) }
            .expect("the host knows the attribute")
    }

    fn watch<I: Interface>(&self, object: &I, kind: DXCoreNotificationType) -> Watch {
        let (sender, calls) = channel();
        let context = Box::into_raw(Box::new(sender));
        // SAFETY: `context` lives until the `Watch` has unregistered the callback.
        let cookie = unsafe {
            let object: IUnknown = object.cast().expect("every object is an IUnknown");
            self.factory.RegisterEventNotification(
                &object,
                kind,
                Some(on_notification),
                Some(context.cast()),
            )
        };
        let cookie = cookie.expect("the notification type matches the object");
        Watch { factory: self.factory.clone(), cookie, context, calls }
    }
}

/// A registration, removed on drop.
struct Watch {
    factory: IDXCoreAdapterFactory,
    cookie: u32,
    context: *mut Sender<u32>,
    calls: Receiver<u32>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: the cookie belongs to the registration.
        unsafe { self.factory.UnregisterEventNotification(self.cookie) }
            .expect("the cookie is registered");
        // SAFETY: the pointer came from a box, and no callback runs after unregistering.
        drop(unsafe { Box::from_raw(self.context) });
    }
}

extern "system" fn on_notification(
    kind: DXCoreNotificationType,
    _object: Ref<'_, IUnknown>,
    context: *const c_void,
) {
    // SAFETY: `watch` passes a sender that outlives the registration.
    let sender = unsafe { &*context.cast::<Sender<u32>>() };
    sender.send(kind.0).expect("the watch holds the receiver");
}

fn write(path: &PathBuf, adapters: &[(i64, &str)]) {
    let entries = adapters.iter().map(|(luid, attributes)| {
        format!(
            "\n- luid: {luid}\n  attributes: [{attributes}]\n  hardware: true\n  \
             hardwareId: {{vendor: 0x10DE, device: 2, subsystem: 0x00030004, revision: 5}}\n  \
             driverDescription: naïve"
        )
    });
    let mut text =
        format!("schema: directx-inventory/v1\nadapters:{}", entries.collect::<String>());
    if adapters.is_empty() {
        text += " []";
    }
    let draft = path.with_extension("draft");
    fs::write(&draft, text + "\n").expect("the folder is writable");
    // Windows rejects the rename while the double has the file open.
    while fs::rename(&draft, path).is_err() {
        std::thread::yield_now();
    }
}

fn adapter(list: &IDXCoreAdapterList, index: u32) -> IDXCoreAdapter {
    // SAFETY: the function takes only numbers.
    unsafe { list.GetAdapter(index) }.expect("the index is in range")
}

fn property(adapter: &IDXCoreAdapter, property: DXCoreAdapterProperty) -> Vec<u8> {
    // SAFETY: the buffer has the size that is passed.
    unsafe {
        assert!(adapter.IsPropertySupported(property));
        let size = adapter.GetPropertySize(property).expect("the property is supported");
        let mut value = vec![0xEE; size];
        let buffer = value.as_mut_ptr().cast();
        adapter.GetProperty(property, size, buffer).expect("the property is supported");
        value
    }
}

#[test]
fn a_list_contains_the_adapters_that_have_every_attribute() {
    let host = Host::with(TWO);
    // SAFETY: the objects are live.
    unsafe {
        assert_eq!(host.list(GRAPHICS).GetAdapterCount(), 2);
        let learning = host.list(GENERIC_ML);
        assert_eq!(learning.GetAdapterCount(), 1);
        let adapter = adapter(&learning, 0);
        assert_eq!(property(&adapter, InstanceLuid), (-12i64).to_le_bytes());
        assert!(adapter.IsAttributeSupported(&GENERIC_ML));
        assert!(!adapter.IsAttributeSupported(&DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS));
        let both = [GRAPHICS, GENERIC_ML];
        let list: IDXCoreAdapterList = host.factory.CreateAdapterList(&both).unwrap();
        assert_eq!(list.GetAdapterCount(), 1);
        assert_eq!(host.list(GUID::zeroed()).GetAdapterCount(), 0);
        let none = host.factory.CreateAdapterList::<IDXCoreAdapterList>(&[]);
        assert_eq!(none.unwrap_err().code(), E_INVALIDARG);
        let beyond = learning.GetAdapter::<IDXCoreAdapter>(1);
        assert_eq!(beyond.unwrap_err().code(), E_INVALIDARG);
    }
}

#[test]
fn properties_return_the_documented_error_codes() {
    let host = Host::with(TWO);
    let adapter = adapter(&host.list(GRAPHICS), 0);
    assert_eq!(property(&adapter, DriverDescription), "naïve\0".as_bytes());
    assert_eq!(property(&adapter, IsHardware), [1]);
    let ids: Vec<u8> = [0x10DEu32, 2, 3, 4, 5].iter().flat_map(|w| w.to_le_bytes()).collect();
    assert_eq!(property(&adapter, HardwareIDParts), ids);
    let mut buffer = [0u8; 64];
    let mut code = |property, size| {
        // SAFETY: `size` is at most the size of the buffer.
        let result = unsafe { adapter.GetProperty(property, size, buffer.as_mut_ptr().cast()) };
        result.unwrap_err().code()
    };
    assert_eq!(code(DedicatedAdapterMemory, 64), DXGI_ERROR_UNSUPPORTED);
    assert_eq!(code(DXCoreAdapterProperty(4000), 64), DXGI_ERROR_INVALID_CALL);
    assert_eq!(code(InstanceLuid, 7), E_INVALIDARG);
}

#[test]
fn an_adapter_is_found_by_its_luid() {
    let host = Host::with(TWO);
    let luid = |low, high| windows::Win32::Foundation::LUID { LowPart: low, HighPart: high };
    // SAFETY: references to LUIDs.
    unsafe {
        let found: IDXCoreAdapter = host.factory.GetAdapterByLuid(&luid(0xFFFF_FFF4, -1)).unwrap();
        assert_eq!(property(&found, InstanceLuid), (-12i64).to_le_bytes());
        let missing = host.factory.GetAdapterByLuid::<IDXCoreAdapter>(&luid(1, 0));
        assert_eq!(missing.unwrap_err().code(), E_INVALIDARG);
    }
}

#[test]
fn a_new_adapter_makes_matching_lists_stale_and_notifies_once() {
    let host = Host::with(&TWO[..1]);
    let (graphics, learning) = (host.list(GRAPHICS), host.list(GENERIC_ML));
    let arrival = host.watch(&graphics, AdapterListStale);
    let other_list = host.watch(&learning, AdapterListStale);
    host.set_adapters(&[TWO[0], (13, "d3d12-graphics")]);
    assert_eq!(arrival.calls.recv_timeout(DEADLINE), Ok(AdapterListStale.0));
    host.set_adapters(TWO);
    assert_eq!(other_list.calls.recv_timeout(DEADLINE), Ok(AdapterListStale.0));
    assert!(
        arrival.calls.recv_timeout(Duration::from_millis(50)).is_err(),
        "the callback was called twice"
    );
}

#[test]
fn a_removed_adapter_stays_invalid() {
    let host = Host::with(TWO);
    let list = host.list(GRAPHICS);
    let (kept, removed) = (adapter(&list, 0), adapter(&list, 1));
    let removal = host.watch(&removed, AdapterNoLongerValid);
    let no_removal = host.watch(&kept, AdapterNoLongerValid);
    host.set_adapters(&TWO[..1]);
    assert_eq!(removal.calls.recv_timeout(DEADLINE), Ok(AdapterNoLongerValid.0));
    host.set_adapters(TWO);
    // SAFETY: the objects are live.
    unsafe {
        assert!(kept.IsValid() && !removed.IsValid());
        assert!(list.IsStale(), "a stale list never becomes current again");
        assert!(!host.list(GRAPHICS).IsStale());
    }
    assert_eq!(property(&removed, InstanceLuid), (-12i64).to_le_bytes());
    assert!(no_removal.calls.try_recv().is_err());
}

#[test]
fn a_registration_after_the_change_is_notified_immediately() {
    let host = Host::with(TWO);
    let list = host.list(GRAPHICS);
    host.set_adapters(&[]);
    let late = host.watch(&list, AdapterListStale);
    assert_eq!(late.calls.recv_timeout(DEADLINE), Ok(AdapterListStale.0));
}

#[test]
fn a_notification_type_that_does_not_match_the_object_is_rejected() {
    let host = Host::with(TWO);
    let list = host.list(GRAPHICS);
    let code = |kind| {
        // SAFETY: a rejected registration keeps no pointer.
        let result = unsafe {
            host.factory.RegisterEventNotification(&list, kind, Some(on_notification), None)
        };
        result.unwrap_err().code()
    };
    assert!(code(AdapterNoLongerValid).is_err());
    assert_eq!(code(AdapterBudgetChange), DXGI_ERROR_INVALID_CALL);
    // SAFETY: the function takes only a number.
    let unknown = unsafe { host.factory.UnregisterEventNotification(4_000_000) };
    assert_eq!(unknown.unwrap_err().code(), E_INVALIDARG);
}

#[test]
fn states_return_the_documented_error_codes() {
    let host = Host::with(TWO);
    let adapter = adapter(&host.list(GRAPHICS), 1);
    let query = |state| {
        let mut value = [0xEEu8; 2];
        // SAFETY: the buffer has the size that is passed.
        let result = unsafe { adapter.QueryState(state, 0, None, 2, value.as_mut_ptr().cast()) };
        result.map(|()| value).map_err(|error| error.code())
    };
    // SAFETY: the function takes only a number.
    assert!(unsafe { adapter.IsQueryStateSupported(IsDriverUpdateInProgress) });
    assert_eq!(query(IsDriverUpdateInProgress), Ok([0, 0]));
    assert_eq!(query(AdapterMemoryBudget), Err(DXGI_ERROR_INVALID_CALL));
    host.set_adapters(&TWO[..1]);
    assert_eq!(query(IsDriverUpdateInProgress), Err(DXGI_ERROR_DEVICE_REMOVED));
}

#[test]
fn destroying_a_registered_object_aborts_the_process() {
    const CHILD: &str = "DOUBLE_DESTROYS_A_REGISTERED_LIST";
    if std::env::var_os(CHILD).is_some() {
        let host = Host::with(TWO);
        std::mem::forget(host.watch(&host.list(GRAPHICS), AdapterListStale));
        return;
    }
    let name = "destroying_a_registered_object_aborts_the_process";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "the process did not abort");
    assert!(text.contains("before its notifications were unregistered"), "stderr: {text}");
}
