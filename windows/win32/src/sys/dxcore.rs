//! Adapters from `DXCore`, and its word when they change.
#![allow(unsafe_code, reason = "calls COM methods of dxcore.dll")]

use std::ffi::c_void;
use std::io;
use std::ptr;
use std::sync::Arc;

use devices::{Attribute, ChangeCallback, Luid};
use windows::Win32::Graphics::DXCore::{
    AdapterListStale, AdapterNoLongerValid, DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
    DXCoreAdapterProperty, DXCoreNotificationType, IDXCoreAdapter, IDXCoreAdapterFactory,
    IDXCoreAdapterList, InstanceLuid, IsDriverUpdateInProgress,
};
use windows::core::{GUID, HRESULT, IUnknown, Interface, Ref};

use super::library::{Library, os_error};
use crate::failure::Failure;

type CreateAdapterFactory = unsafe extern "system" fn(*const GUID, *mut *mut c_void) -> HRESULT;

/// `DXCore` itself.
#[derive(Clone, Debug)]
pub(crate) struct Dxcore(IDXCoreAdapterFactory);

// SAFETY: DXCore's objects belong to no apartment (it needs no CoInitialize and calls
// back on threads of its own), and ours are used by one thread at a time.
unsafe impl Send for Dxcore {}

impl Dxcore {
    /// Creates the factory of dxcore.dll.
    pub(crate) fn open(library: Library) -> io::Result<Self> {
        // SAFETY: the type is the one dxcore.h declares.
        let create: CreateAdapterFactory =
            unsafe { library.function(c"DXCoreCreateAdapterFactory") }?;
        let mut factory = ptr::null_mut();
        // SAFETY: the identifier names the interface that `factory` is read as.
        let result = unsafe { create(&IDXCoreAdapterFactory::IID, &raw mut factory) };
        result.ok().map_err(|error| os_error(&error))?;
        if factory.is_null() {
            return Err(io::Error::other("it created no factory"));
        }
        // SAFETY: the call succeeded, so this is a factory, and its reference is ours.
        Ok(Self(unsafe { IDXCoreAdapterFactory::from_raw(factory) }))
    }

    /// The host's adapters under each attribute that this Windows knows.
    pub(crate) fn lists(&self) -> Result<Vec<AdapterList>, Failure> {
        let mut lists = Vec::new();
        for attribute in Attribute::ALL {
            match self.list(attribute) {
                Ok(list) => lists.push(list),
                Err(error) if is_newer(attribute) => {
                    tracing::debug!(attribute = attribute.name(), %error, "attribute not listed");
                }
                Err(error) => {
                    let name = attribute.name();
                    return Err(Failure::new(format!("cannot list {name} adapters"), error));
                }
            }
        }
        Ok(lists)
    }

    fn list(&self, attribute: Attribute) -> io::Result<AdapterList> {
        let guid = guid(attribute);
        let mut list = ptr::null_mut();
        let vtable = self.0.vtable();
        // SAFETY: one attribute is passed, and the identifier names the interface that
        // `list` is read as.
        let result = unsafe {
            (vtable.CreateAdapterList)(
                self.0.as_raw(),
                1,
                &raw const guid,
                &IDXCoreAdapterList::IID,
                &raw mut list,
            )
        };
        result.ok().map_err(|error| os_error(&error))?;
        if list.is_null() {
            return Err(io::Error::other("it created no list"));
        }
        // SAFETY: the call succeeded, so this is a list, and its reference is ours.
        let list = unsafe { IDXCoreAdapterList::from_raw(list) };
        // SAFETY: `list` is a live object.
        let count = unsafe { list.GetAdapterCount() };
        let adapters = (0..count).filter_map(|index| adapter_at(&list, index));
        let adapters = adapters.filter(|adapter| !is_newer(attribute) || adapter.has(&guid));
        Ok(AdapterList { attribute, adapters: adapters.collect(), list })
    }
}

/// The adapter at `index`, unless it went away since the list was made.
fn adapter_at(list: &IDXCoreAdapterList, index: u32) -> Option<DxcoreAdapter> {
    // SAFETY: `list` is a live object; an index out of range is an error.
    let adapter = unsafe { list.GetAdapter::<IDXCoreAdapter>(index) };
    let adapter = adapter.map_err(|error| os_error(&error)).and_then(DxcoreAdapter::new);
    if let Err(error) = &adapter {
        tracing::warn!(index, %error, "an adapter has no LUID and is left out");
    }
    adapter.ok()
}

/// The adapters with one attribute.
#[derive(Debug)]
pub(crate) struct AdapterList {
    /// The attribute.
    pub(crate) attribute: Attribute,
    /// The adapters, in the host's order.
    pub(crate) adapters: Vec<DxcoreAdapter>,
    list: IDXCoreAdapterList,
}

/// An adapter.
#[derive(Debug)]
pub(crate) struct DxcoreAdapter {
    /// Its LUID.
    pub(crate) luid: Luid,
    adapter: IDXCoreAdapter,
}

impl DxcoreAdapter {
    fn new(adapter: IDXCoreAdapter) -> io::Result<Self> {
        let mut this = Self { luid: Luid(0), adapter };
        let luid = this.property(InstanceLuid)?.map(i64::from_le_bytes);
        this.luid = Luid(luid.ok_or_else(|| io::Error::other("the property is not supported"))?);
        Ok(this)
    }

    /// Whether the adapter is still there.
    pub(crate) fn is_valid(&self) -> bool {
        // SAFETY: `adapter` is a live object.
        unsafe { self.adapter.IsValid() }
    }

    /// Whether the adapter's driver is being replaced, where the driver can tell.
    pub(crate) fn is_driver_update_in_progress(&self) -> bool {
        // SAFETY: `adapter` is a live object.
        if !unsafe { self.adapter.IsQueryStateSupported(IsDriverUpdateInProgress) } {
            return false;
        }
        let mut state = 0_u8;
        // SAFETY: the state is one byte and `state` has room for it.
        let answer = unsafe {
            self.adapter.QueryState(IsDriverUpdateInProgress, 0, None, 1, (&raw mut state).cast())
        };
        answer.is_ok() && state != 0
    }

    /// A property of fixed size; `None` where host or driver does not know it.
    pub(crate) fn property<const N: usize>(
        &self,
        property: DXCoreAdapterProperty,
    ) -> io::Result<Option<[u8; N]>> {
        if !self.knows(property) {
            return Ok(None);
        }
        let mut data = [0_u8; N];
        self.read(property, &mut data).map(|()| Some(data))
    }

    /// A property of any size; `None` where host or driver does not know it.
    pub(crate) fn property_bytes(
        &self,
        property: DXCoreAdapterProperty,
    ) -> io::Result<Option<Vec<u8>>> {
        if !self.knows(property) {
            return Ok(None);
        }
        // SAFETY: `adapter` is a live object.
        let size = unsafe { self.adapter.GetPropertySize(property) };
        let mut data = vec![0; size.map_err(|error| os_error(&error))?];
        self.read(property, &mut data).map(|()| Some(data))
    }

    fn knows(&self, property: DXCoreAdapterProperty) -> bool {
        // SAFETY: `adapter` is a live object.
        unsafe { self.adapter.IsPropertySupported(property) }
    }

    fn read(&self, property: DXCoreAdapterProperty, data: &mut [u8]) -> io::Result<()> {
        // SAFETY: `data` has room for as many bytes as are asked for.
        let result =
            unsafe { self.adapter.GetProperty(property, data.len(), data.as_mut_ptr().cast()) };
        result.map_err(|error| os_error(&error))
    }

    fn has(&self, attribute: &GUID) -> bool {
        // SAFETY: `adapter` is a live object and `attribute` outlives the call.
        unsafe { self.adapter.IsAttributeSupported(attribute) }
    }
}

/// Events asked for on one set of lists. Neither lists nor adapters may be released
/// before their events are cancelled: `DXCore` raises a fatal exception otherwise. So
/// the events come first here.
pub(crate) struct Subscription {
    events: Vec<Event>,
    lists: Vec<AdapterList>,
}

// SAFETY: as for `Dxcore`.
unsafe impl Send for Subscription {}

impl Subscription {
    /// Has `on_change` called once for each of `lists` that is outdated and each of
    /// their adapters that goes away. What happened before it is asked for is told at
    /// once, so nothing is lost; hence no event for an adapter that is gone already,
    /// which would be told again each time.
    pub(crate) fn new(
        dxcore: &Dxcore,
        lists: Vec<AdapterList>,
        on_change: &Arc<ChangeCallback>,
    ) -> io::Result<Self> {
        let mut this = Self { events: Vec::new(), lists };
        for list in &this.lists {
            this.events.push(Event::new(dxcore, (&list.list).into(), AdapterListStale, on_change)?);
        }
        let mut known = Vec::new();
        for adapter in this.lists.iter().flat_map(|list| &list.adapters) {
            if known.contains(&adapter.luid) || !adapter.is_valid() {
                continue;
            }
            known.push(adapter.luid);
            match Event::new(dxcore, (&adapter.adapter).into(), AdapterNoLongerValid, on_change) {
                Ok(event) => this.events.push(event),
                // The event of its list tells that the adapter has gone.
                Err(error) => tracing::debug!(luid = adapter.luid.0, %error, "no validity event"),
            }
        }
        Ok(this)
    }

    /// The lists whose changes are told.
    pub(crate) fn lists(&self) -> &[AdapterList] {
        &self.lists
    }
}

/// One event asked for.
struct Event {
    factory: IDXCoreAdapterFactory,
    cookie: u32,
    // What `DXCore` hands back to `changed`; it lives until the event is cancelled.
    _context: Arc<ChangeCallback>,
}

impl Event {
    fn new(
        dxcore: &Dxcore,
        object: &IUnknown,
        kind: DXCoreNotificationType,
        on_change: &Arc<ChangeCallback>,
    ) -> io::Result<Self> {
        let factory = dxcore.0.clone();
        let context = Arc::clone(on_change);
        let pointer: *const ChangeCallback = Arc::as_ptr(&context);
        // SAFETY: `context` lives until `Drop` has cancelled the event, which waits for
        // calls that are under way.
        let cookie = unsafe {
            factory.RegisterEventNotification(object, kind, Some(changed), Some(pointer.cast()))
        };
        let cookie = cookie.map_err(|error| os_error(&error))?;
        Ok(Self { factory, cookie, _context: context })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the cookie is of an event that is not yet cancelled.
        let _ = unsafe { self.factory.UnregisterEventNotification(self.cookie) };
    }
}

/// Called by `DXCore` on a thread of its own. Does no `DXCore` work, as it must not.
unsafe extern "system" fn changed(
    _kind: DXCoreNotificationType,
    _object: Ref<'_, IUnknown>,
    context: *const c_void,
) {
    // SAFETY: the context is the one that `Event` keeps alive.
    let on_change = unsafe { &*context.cast::<ChangeCallback>() };
    on_change();
}

/// Whether hosts that have `DXCore` may not know an attribute.
fn is_newer(attribute: Attribute) -> bool {
    use Attribute::{D3d11Graphics, D3d12CoreCompute, D3d12Graphics};
    !matches!(attribute, D3d11Graphics | D3d12Graphics | D3d12CoreCompute)
}

/// The attribute's GUID (`dxcore_interface.h`). The newer ones are not in every SDK.
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
