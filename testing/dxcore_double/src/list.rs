//! `IDXCoreAdapterList`.
#![allow(unsafe_code, reason = "`#[implement]` of the windows crate writes it")]

use std::ffi::c_void;
use std::sync::Arc;

use devices::Adapter;
use windows::Win32::Foundation::E_INVALIDARG;
use windows::Win32::Graphics::DXCore::{
    DXCoreAdapterPreference, IDXCoreAdapter, IDXCoreAdapterList, IDXCoreAdapterList_Impl,
};
use windows::Win32::Graphics::Dxgi::DXGI_ERROR_UNSUPPORTED;
use windows::core::{GUID, Result, implement};

use crate::adapter::AdapterObject;
use crate::factory;
use crate::host::{Filter, Host, Moment};
use crate::notify::Registrations;

/// What a list object and the watch over it both hold.
pub(crate) struct ListState {
    host: &'static Host,
    filter: Filter,
    adapters: Vec<Arc<Adapter>>,
    made: Moment,
    pub(crate) registrations: Registrations,
}

impl ListState {
    /// Whether an adapter of the list was ever gone, or another one was there that
    /// would be listed.
    pub(crate) fn is_stale(&self) -> bool {
        !self.host.lists_the_same(&self.filter, self.made)
    }
}

#[implement(IDXCoreAdapterList)]
pub(crate) struct ListObject(pub(crate) Arc<ListState>);

impl ListObject {
    pub(crate) fn new(host: &'static Host, filter: Filter) -> ListObject {
        let made = host.now();
        let adapters = filter.pick(&host.adapters());
        let registrations = Registrations::default();
        ListObject(Arc::new(ListState { host, filter, adapters, made, registrations }))
    }
}

impl Drop for ListObject {
    fn drop(&mut self) {
        self.0.registrations.object_is_destroyed("a list");
    }
}

impl IDXCoreAdapterList_Impl for ListObject_Impl {
    fn GetAdapter(&self, index: u32, iid: *const GUID, adapter: *mut *mut c_void) -> Result<()> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let listed = self.0.adapters.get(index).ok_or(E_INVALIDARG)?;
        let object: IDXCoreAdapter = AdapterObject::new(self.0.host, Arc::clone(listed)).into();
        factory::hand_out(&object, iid, adapter)
    }

    fn GetAdapterCount(&self) -> u32 {
        u32::try_from(self.0.adapters.len()).unwrap_or(u32::MAX)
    }

    fn IsStale(&self) -> bool {
        self.0.is_stale()
    }

    fn GetFactory(&self, iid: *const GUID, factory: *mut *mut c_void) -> Result<()> {
        factory::hand_out(&factory::new(self.0.host), iid, factory)
    }

    fn Sort(&self, _count: u32, _preferences: *const DXCoreAdapterPreference) -> Result<()> {
        Err(DXGI_ERROR_UNSUPPORTED.into())
    }

    fn IsAdapterPreferenceSupported(&self, _preference: DXCoreAdapterPreference) -> bool {
        false
    }
}
