//! `IDXCoreAdapterList`.
#![allow(unsafe_code, reason = "`#[implement]` of the windows crate generates it")]

use std::ffi::c_void;
use std::sync::Arc;

use host::Adapter;
use windows::Win32::Foundation::E_INVALIDARG;
use windows::Win32::Graphics::DXCore::{
    DXCoreAdapterPreference, IDXCoreAdapter, IDXCoreAdapterFactory, IDXCoreAdapterList,
    IDXCoreAdapterList_Impl,
};
use windows::Win32::Graphics::Dxgi::DXGI_ERROR_UNSUPPORTED;
use windows::core::{GUID, Result, implement};

use crate::adapter::AdapterObject;
use crate::doubled_host::{Filter, Host, Revision};
use crate::interface;
use crate::notify::{Observable, RegistrationCount};

/// The state that a list object shares with its registrations.
pub(crate) struct ListState {
    host: &'static Host,
    filter: Filter,
    adapters: Vec<Arc<Adapter>>,
    created: Revision,
    registrations: RegistrationCount,
}

impl ListState {
    /// Whether the host, at any time since the list was created, lacked an adapter of
    /// the list or had another adapter that matches the filter.
    fn is_stale(&self) -> bool {
        !self.host.is_list_current(&self.filter, self.created)
    }
}

impl Observable for ListState {
    fn has_changed(&self) -> bool {
        self.is_stale()
    }

    fn registrations(&self) -> &RegistrationCount {
        &self.registrations
    }
}

#[implement(IDXCoreAdapterList)]
pub(crate) struct ListObject {
    state: Arc<ListState>,
    /// What `GetFactory` returns.
    factory: IDXCoreAdapterFactory,
}

impl ListObject {
    pub(crate) fn new(
        host: &'static Host,
        filter: Filter,
        factory: IDXCoreAdapterFactory,
    ) -> ListObject {
        let created = host.revision();
        let adapters = filter.select(&host.adapters());
        let registrations = RegistrationCount::default();
        let state = Arc::new(ListState { host, filter, adapters, created, registrations });
        ListObject { state, factory }
    }

    /// The state that a registration observes.
    pub(crate) fn state(&self) -> Arc<ListState> {
        Arc::clone(&self.state)
    }
}

impl Drop for ListObject {
    fn drop(&mut self) {
        self.state.registrations.object_is_destroyed("a list");
    }
}

impl IDXCoreAdapterList_Impl for ListObject_Impl {
    fn GetAdapter(&self, index: u32, iid: *const GUID, adapter: *mut *mut c_void) -> Result<()> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let listed = self.state.adapters.get(index).ok_or(E_INVALIDARG)?;
        let factory = self.factory.clone();
        let object = AdapterObject::new(self.state.host, Arc::clone(listed), factory);
        interface::query(&IDXCoreAdapter::from(object), iid, adapter)
    }

    fn GetAdapterCount(&self) -> u32 {
        u32::try_from(self.state.adapters.len()).unwrap_or(u32::MAX)
    }

    fn IsStale(&self) -> bool {
        self.state.is_stale()
    }

    fn GetFactory(&self, iid: *const GUID, factory: *mut *mut c_void) -> Result<()> {
        interface::query(&self.factory, iid, factory)
    }

    fn Sort(&self, _count: u32, _preferences: *const DXCoreAdapterPreference) -> Result<()> {
        Err(DXGI_ERROR_UNSUPPORTED.into())
    }

    fn IsAdapterPreferenceSupported(&self, _preference: DXCoreAdapterPreference) -> bool {
        false
    }
}
