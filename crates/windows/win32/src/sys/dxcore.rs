//! The adapters of `DXCore`, and its change notifications.
#![allow(unsafe_code, reason = "calls COM methods of dxcore.dll")]

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::ptr;
use std::sync::Arc;

use host::{Attribute, Attributes, ChangeCallback, Luid};
use windows::Win32::Foundation::{E_INVALIDARG, E_POINTER};
use windows::Win32::Graphics::DXCore::{
    AdapterListStale, DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
    DXCoreAdapterProperty, DXCoreNotificationType, IDXCoreAdapter, IDXCoreAdapterFactory,
    IDXCoreAdapterList, InstanceLuid, IsDriverUpdateInProgress,
};
use windows::core::{GUID, HRESULT, IUnknown, Interface, Ref};

use super::library::{Library, os_error};
use crate::error::failed;

type CreateAdapterFactory = unsafe extern "system" fn(*const GUID, *mut *mut c_void) -> HRESULT;

/// The adapter factory of `DXCore`.
#[derive(Debug)]
pub(crate) struct Dxcore {
    factory: IDXCoreAdapterFactory,
    /// The newer attributes that this Windows knows: a list of them was created once.
    known: Cell<Attributes>,
    /// The newer attributes whose lists were left out with a warning.
    left_out: Cell<Attributes>,
}

// SAFETY: DXCore objects belong to no COM apartment (DXCore needs no CoInitialize and calls
// back on its own threads), and this crate uses them on one thread at a time.
unsafe impl Send for Dxcore {}

impl Dxcore {
    /// Creates the factory of dxcore.dll.
    pub(crate) fn open(library: Library) -> io::Result<Self> {
        // SAFETY: the type is the one dxcore.h declares.
        let create: CreateAdapterFactory =
            unsafe { library.function(c"DXCoreCreateAdapterFactory") }?;
        let mut factory = ptr::null_mut();
        // SAFETY: the identifier belongs to the interface that `factory` is used as.
        let result = unsafe { create(&IDXCoreAdapterFactory::IID, &raw mut factory) };
        result.ok().map_err(|error| os_error(&error))?;
        if factory.is_null() {
            return Err(io::Error::other("DXCoreCreateAdapterFactory returned null"));
        }
        // SAFETY: the call succeeded, so this is a factory, and this code owns the reference.
        let factory = unsafe { IDXCoreAdapterFactory::from_raw(factory) };
        Ok(Self { factory, known: Cell::default(), left_out: Cell::default() })
    }

    /// The adapters of the host for each attribute that this Windows knows.
    ///
    /// # Errors
    /// An attribute that this Windows knows has no list. Then nothing says which adapters were
    /// removed, so what was known before still counts.
    pub(crate) fn lists(&self) -> io::Result<Vec<AdapterList>> {
        let mut lists = Vec::new();
        for &attribute in Attribute::ALL {
            match self.list(attribute) {
                Ok(list) => {
                    self.known.set(with(self.known.get(), attribute));
                    lists.push(list);
                }
                Err(error) if is_newer(attribute) && !self.known.get().has(attribute) => {
                    self.leave_out(attribute, &error);
                }
                Err(error) => {
                    let error = os_error(&error);
                    return Err(failed(format_args!("cannot list {attribute} adapters"), &error));
                }
            }
        }
        Ok(lists)
    }

    /// Continues without a list that this Windows has never had. Windows documents an empty list for
    /// an attribute that it does not know, so any error but "invalid argument" is a fault.
    fn leave_out(&self, attribute: Attribute, error: &windows::core::Error) {
        if error.code() == E_INVALIDARG {
            tracing::debug!(%attribute, %error, "attribute not supported by this host");
        } else if !self.left_out.get().has(attribute) {
            self.left_out.set(with(self.left_out.get(), attribute));
            tracing::warn!(
                %attribute, %error,
                "cannot list the adapters with an attribute; devices that only this list has are \
                 missing"
            );
        }
    }

    fn list(&self, attribute: Attribute) -> windows::core::Result<AdapterList> {
        let guid = guid(attribute);
        let mut list = ptr::null_mut();
        let vtable = self.factory.vtable();
        // SAFETY: one attribute is passed, and the identifier belongs to the interface that
        // `list` is used as.
        let result = unsafe {
            (vtable.CreateAdapterList)(
                self.factory.as_raw(),
                1,
                &raw const guid,
                &IDXCoreAdapterList::IID,
                &raw mut list,
            )
        };
        result.ok()?;
        if list.is_null() {
            return Err(windows::core::Error::new(E_POINTER, "CreateAdapterList returned null"));
        }
        // SAFETY: the call succeeded, so this is a list, and this code owns the reference.
        let list = unsafe { IDXCoreAdapterList::from_raw(list) };
        // SAFETY: `list` is a live object.
        let count = unsafe { list.GetAdapterCount() };
        let adapters = (0..count)
            .filter_map(|index| adapter_at(&list, index))
            .filter(|adapter| !is_newer(attribute) || adapter.has(&guid))
            .collect();
        Ok(AdapterList { attribute, adapters, list })
    }
}

/// The adapter at `index`; `None` if it was removed after the list was created.
fn adapter_at(list: &IDXCoreAdapterList, index: u32) -> Option<DxcoreAdapter> {
    // SAFETY: `list` is a live object; an index out of range is an error.
    let adapter = unsafe { list.GetAdapter::<IDXCoreAdapter>(index) };
    adapter
        .map_err(|error| os_error(&error))
        .and_then(DxcoreAdapter::new)
        .inspect_err(|error| tracing::warn!(index, %error, "skipped adapter without LUID"))
        .ok()
}

/// The adapters with one attribute.
#[derive(Debug)]
pub(crate) struct AdapterList {
    pub(crate) attribute: Attribute,
    /// The adapters, in the order of the host.
    pub(crate) adapters: Vec<DxcoreAdapter>,
    list: IDXCoreAdapterList,
}

#[derive(Debug)]
pub(crate) struct DxcoreAdapter {
    pub(crate) luid: Luid,
    adapter: IDXCoreAdapter,
}

impl DxcoreAdapter {
    fn new(adapter: IDXCoreAdapter) -> io::Result<Self> {
        let mut this = Self { luid: Luid(0), adapter };
        let luid = this.property(InstanceLuid)?.map(i64::from_le_bytes);
        this.luid = Luid(luid.ok_or_else(|| {
            io::Error::other("the adapter does not support the property InstanceLuid")
        })?);
        Ok(this)
    }

    /// Whether the adapter still exists.
    pub(crate) fn is_valid(&self) -> bool {
        // SAFETY: `adapter` is a live object.
        unsafe { self.adapter.IsValid() }
    }

    /// Whether the adapter's driver is being updated; false if the driver does not report it.
    pub(crate) fn is_driver_update_in_progress(&self) -> bool {
        let mut state = 0_u8;
        let output = size_of::<u8>();
        // SAFETY: `adapter` is a live object, and `state` has the size that is passed.
        let result = unsafe {
            self.adapter.IsQueryStateSupported(IsDriverUpdateInProgress).then(|| {
                let state = (&raw mut state).cast();
                self.adapter.QueryState(IsDriverUpdateInProgress, 0, None, output, state)
            })
        };
        matches!(result, Some(Ok(()))) && state != 0
    }

    /// A property of fixed size; `None` if the host or the driver does not support it.
    pub(crate) fn property<const N: usize>(
        &self,
        property: DXCoreAdapterProperty,
    ) -> io::Result<Option<[u8; N]>> {
        if !self.supports(property) {
            return Ok(None);
        }
        let mut data = [0_u8; N];
        self.read(property, &mut data).map(|()| Some(data))
    }

    /// A property of any size; `None` if the host or the driver does not support it.
    pub(crate) fn property_bytes(
        &self,
        property: DXCoreAdapterProperty,
    ) -> io::Result<Option<Vec<u8>>> {
        if !self.supports(property) {
            return Ok(None);
        }
        // SAFETY: `adapter` is a live object.
        let size = unsafe { self.adapter.GetPropertySize(property) };
        let mut data = vec![0; size.map_err(|error| os_error(&error))?];
        self.read(property, &mut data).map(|()| Some(data))
    }

    fn supports(&self, property: DXCoreAdapterProperty) -> bool {
        // SAFETY: `adapter` is a live object.
        unsafe { self.adapter.IsPropertySupported(property) }
    }

    fn read(&self, property: DXCoreAdapterProperty, data: &mut [u8]) -> io::Result<()> {
        // SAFETY: `data` has the size that is passed.
        let result =
            unsafe { self.adapter.GetProperty(property, data.len(), data.as_mut_ptr().cast()) };
        result.map_err(|error| os_error(&error))
    }

    fn has(&self, attribute: &GUID) -> bool {
        // SAFETY: `adapter` is a live object and `attribute` outlives the call.
        unsafe { self.adapter.IsAttributeSupported(attribute) }
    }
}

/// The events of one set of lists. `DXCore` raises a fatal exception if a list or an adapter
/// is released before its events are unregistered. Therefore `_events` is the first field,
/// which is dropped first.
pub(crate) struct Subscription {
    _events: Vec<Event>,
    lists: Vec<AdapterList>,
}

// SAFETY: as for `Dxcore`.
unsafe impl Send for Subscription {}

impl Subscription {
    /// Registers `on_change`, which is called once for each list that becomes stale, also because
    /// an adapter was removed. For a change before the registration, `DXCore` calls it immediately,
    /// so no change is missed.
    pub(crate) fn new(
        dxcore: &Dxcore,
        lists: Vec<AdapterList>,
        on_change: &Arc<ChangeCallback>,
    ) -> io::Result<Self> {
        let events = lists.iter().map(|list| Event::new(dxcore, &list.list, on_change));
        Ok(Self { _events: events.collect::<io::Result<_>>()?, lists })
    }

    /// The observed lists.
    pub(crate) fn lists(&self) -> &[AdapterList] {
        &self.lists
    }
}

/// A registered event, which `Drop` unregisters.
struct Event {
    factory: IDXCoreAdapterFactory,
    cookie: u32,
    // The context that `DXCore` passes to `changed`. It lives until the event is unregistered.
    _context: Arc<ChangeCallback>,
}

impl Event {
    fn new(
        dxcore: &Dxcore,
        list: &IDXCoreAdapterList,
        on_change: &Arc<ChangeCallback>,
    ) -> io::Result<Self> {
        let factory = dxcore.factory.clone();
        let context = Arc::clone(on_change);
        let pointer: *const ChangeCallback = Arc::as_ptr(&context);
        // SAFETY: `context` lives until `Drop` has unregistered the event, which waits for
        // running callbacks.
        let cookie = unsafe {
            factory.RegisterEventNotification(
                list,
                AdapterListStale,
                Some(changed),
                Some(pointer.cast()),
            )
        }
        .map_err(|error| os_error(&error))?;
        Ok(Self { factory, cookie, _context: context })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the cookie belongs to an event that is still registered.
        let _ = unsafe { self.factory.UnregisterEventNotification(self.cookie) };
    }
}

/// `DXCore` calls this function on its own thread. The function must not call `DXCore`.
unsafe extern "system" fn changed(
    _kind: DXCoreNotificationType,
    _object: Ref<'_, IUnknown>,
    context: *const c_void,
) {
    // SAFETY: `Event` keeps the context alive.
    let on_change = unsafe { &*context.cast::<ChangeCallback>() };
    on_change();
}

fn with(attributes: Attributes, other: Attribute) -> Attributes {
    attributes.iter().chain([other]).collect()
}

/// Whether some hosts with `DXCore` do not know an attribute.
fn is_newer(attribute: Attribute) -> bool {
    use Attribute::{D3d11Graphics, D3d12CoreCompute, D3d12Graphics};
    !matches!(attribute, D3d11Graphics | D3d12Graphics | D3d12CoreCompute)
}

/// The GUID of the attribute (`dxcore_interface.h`). Older SDKs lack the newer GUIDs.
fn guid(attribute: Attribute) -> GUID {
    match attribute {
        Attribute::D3d11Graphics => DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS,
        Attribute::D3d12Graphics => DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
        Attribute::D3d12CoreCompute => DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
        Attribute::D3d12GenericMl => GUID::from_u128(0xb71b0d41_1088_422f_a27c_0250b7d3a988),
        Attribute::D3d12GenericMedia => GUID::from_u128(0x8eb2c848_82f6_4b49_aa87_aecfcf0174c6),
        Attribute::Gpu => GUID::from_u128(0xb69eb219_3ded_4464_979f_a00bd4687006),
        Attribute::ComputeAccelerator => GUID::from_u128(0xe0b195da_58ef_4a22_90f1_1f28169cab8d),
        Attribute::Npu => GUID::from_u128(0xd46140c4_add7_451b_9e56_06fe8c3b58ed),
        Attribute::MediaAccelerator => GUID::from_u128(0x66bdb96a_050b_44c7_a4fd_d144ce0ab443),
    }
}
