//! `IDXCoreAdapter`.
#![allow(unsafe_code, reason = "COM passes raw pointers")]

use std::ffi::c_void;
use std::slice;
use std::sync::Arc;

use windows::Win32::Foundation::{E_INVALIDARG, E_POINTER};
use windows::Win32::Graphics::DXCore::{
    DXCoreAdapterProperty, DXCoreAdapterState, IDXCoreAdapter, IDXCoreAdapter_Impl,
    IDXCoreAdapterFactory, IsDriverUpdateInProgress,
};
use windows::Win32::Graphics::Dxgi::{
    DXGI_ERROR_DEVICE_REMOVED, DXGI_ERROR_INVALID_CALL, DXGI_ERROR_UNSUPPORTED,
};
use windows::core::{GUID, Result, implement};

use crate::attributes::{self, Release};
use crate::doubled_host::{Host, Revision};
use crate::interface;
use crate::modes::NewerAttributes;
use crate::notify::{Observable, RegistrationCount};
use crate::property::{PropertyValue, property_value};

/// The state that an adapter object shares with its registrations.
pub(crate) struct AdapterState {
    host: &'static Host,
    adapter: Arc<host::Adapter>,
    created: Revision,
    registrations: RegistrationCount,
}

impl AdapterState {
    /// An adapter never becomes valid again, even if a device with its LUID returns.
    fn is_valid(&self) -> bool {
        self.host.is_present_since(self.adapter.luid, self.created)
    }
}

impl Observable for AdapterState {
    fn has_changed(&self) -> bool {
        !self.is_valid()
    }

    fn registrations(&self) -> &RegistrationCount {
        &self.registrations
    }
}

#[implement(IDXCoreAdapter)]
pub(crate) struct AdapterObject {
    state: Arc<AdapterState>,
    /// What `GetFactory` returns.
    factory: IDXCoreAdapterFactory,
}

impl AdapterObject {
    pub(crate) fn new(
        host: &'static Host,
        adapter: Arc<host::Adapter>,
        factory: IDXCoreAdapterFactory,
    ) -> AdapterObject {
        let registrations = RegistrationCount::default();
        let created = host.revision();
        let state = Arc::new(AdapterState { host, adapter, created, registrations });
        AdapterObject { state, factory }
    }

    /// The state that a registration observes.
    pub(crate) fn state(&self) -> Arc<AdapterState> {
        Arc::clone(&self.state)
    }

    fn value(&self, property: DXCoreAdapterProperty) -> Result<Vec<u8>> {
        if self.state.host.property_fails(self.state.adapter.luid, property.0) {
            return Err(DXGI_ERROR_DEVICE_REMOVED.into());
        }
        match property_value(&self.state.adapter, property.0) {
            PropertyValue::Bytes(bytes) => Ok(bytes),
            PropertyValue::NotSupported => Err(DXGI_ERROR_UNSUPPORTED.into()),
            PropertyValue::Unknown => Err(DXGI_ERROR_INVALID_CALL.into()),
        }
    }
}

impl Drop for AdapterObject {
    fn drop(&mut self) {
        self.state.registrations.object_is_destroyed("an adapter");
    }
}

impl IDXCoreAdapter_Impl for AdapterObject_Impl {
    fn IsValid(&self) -> bool {
        self.state.is_valid()
    }

    fn IsAttributeSupported(&self, attribute: *const GUID) -> bool {
        // SAFETY: the caller passes a reference to a GUID; null gives `None`.
        let guid = unsafe { attribute.as_ref() };
        guid.and_then(attributes::find).is_some_and(|(attribute, release)| {
            let is_known = release == Release::First
                || self.state.host.newer_attributes() == NewerAttributes::Listed;
            is_known && self.state.adapter.attributes.has(attribute)
        })
    }

    fn IsPropertySupported(&self, property: DXCoreAdapterProperty) -> bool {
        matches!(property_value(&self.state.adapter, property.0), PropertyValue::Bytes(_))
    }

    fn GetProperty(
        &self,
        property: DXCoreAdapterProperty,
        size: usize,
        data: *mut c_void,
    ) -> Result<()> {
        let value = self.value(property)?;
        // SAFETY: the caller guarantees that `data` has space for `size` bytes.
        unsafe { fill(data, size, &value) }
    }

    fn GetPropertySize(&self, property: DXCoreAdapterProperty) -> Result<usize> {
        self.value(property).map(|value| value.len())
    }

    fn IsQueryStateSupported(&self, state: DXCoreAdapterState) -> bool {
        state == IsDriverUpdateInProgress
    }

    fn QueryState(
        &self,
        state: DXCoreAdapterState,
        _input_size: usize,
        _input: *const c_void,
        size: usize,
        data: *mut c_void,
    ) -> Result<()> {
        if !self.state.is_valid() {
            return Err(DXGI_ERROR_DEVICE_REMOVED.into());
        }
        if state != IsDriverUpdateInProgress {
            return Err(DXGI_ERROR_INVALID_CALL.into());
        }
        let is_updating = self.state.host.is_updating_driver(self.state.adapter.luid);
        // SAFETY: the caller guarantees that `data` has space for `size` bytes.
        unsafe { fill(data, size, &[u8::from(is_updating)]) }
    }

    fn IsSetStateSupported(&self, _state: DXCoreAdapterState) -> bool {
        false
    }

    fn SetState(
        &self,
        _state: DXCoreAdapterState,
        _input_size: usize,
        _input: *const c_void,
        _data_size: usize,
        _data: *const c_void,
    ) -> Result<()> {
        Err(DXGI_ERROR_UNSUPPORTED.into())
    }

    fn GetFactory(&self, iid: *const GUID, factory: *mut *mut c_void) -> Result<()> {
        interface::query(&self.factory, iid, factory)
    }
}

/// Zeroes the buffer and copies the value into it.
///
/// # Safety
/// `data` is null or points to `size` writable bytes that no other code accesses.
unsafe fn fill(data: *mut c_void, size: usize, value: &[u8]) -> Result<()> {
    if data.is_null() {
        return Err(E_POINTER.into());
    }
    if size < value.len() {
        return Err(E_INVALIDARG.into());
    }
    // SAFETY: the pointer is not null, and the caller guarantees the size.
    let buffer = unsafe { slice::from_raw_parts_mut(data.cast::<u8>(), size) };
    buffer.fill(0);
    buffer[..value.len()].copy_from_slice(value);
    Ok(())
}
