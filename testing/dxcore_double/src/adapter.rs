//! `IDXCoreAdapter`.
#![allow(unsafe_code, reason = "COM passes raw pointers")]

use std::ffi::c_void;
use std::slice;
use std::sync::Arc;

use windows::Win32::Foundation::{E_INVALIDARG, E_POINTER};
use windows::Win32::Graphics::DXCore::{
    DXCoreAdapterProperty, DXCoreAdapterState, IDXCoreAdapter, IDXCoreAdapter_Impl, InstanceLuid,
    IsDriverUpdateInProgress,
};
use windows::Win32::Graphics::Dxgi::{
    DXGI_ERROR_DEVICE_REMOVED, DXGI_ERROR_INVALID_CALL, DXGI_ERROR_UNSUPPORTED,
};
use windows::core::{GUID, Result, implement};

use crate::attributes::{self, Age};
use crate::factory;
use crate::host::{Host, Moment};
use crate::modes::NewerAttributes;
use crate::notify::Registrations;
use crate::property::{Answer, answer};

/// What an adapter object and the watch over it both hold.
pub(crate) struct AdapterState {
    host: &'static Host,
    adapter: Arc<devices::Adapter>,
    made: Moment,
    pub(crate) registrations: Registrations,
}

impl AdapterState {
    /// Valid to invalid is one-way, even if the adapter comes back.
    pub(crate) fn is_valid(&self) -> bool {
        self.host.kept(self.adapter.luid, self.made)
    }
}

#[implement(IDXCoreAdapter)]
pub(crate) struct AdapterObject(pub(crate) Arc<AdapterState>);

impl AdapterObject {
    pub(crate) fn new(host: &'static Host, adapter: Arc<devices::Adapter>) -> AdapterObject {
        let registrations = Registrations::default();
        let made = host.now();
        AdapterObject(Arc::new(AdapterState { host, adapter, made, registrations }))
    }

    fn value(&self, property: DXCoreAdapterProperty) -> Result<Vec<u8>> {
        if property != InstanceLuid && self.0.host.fails(self.0.adapter.luid) {
            return Err(DXGI_ERROR_DEVICE_REMOVED.into());
        }
        match answer(&self.0.adapter, property.0) {
            Answer::Value(bytes) => Ok(bytes),
            Answer::NotOfThisAdapter => Err(DXGI_ERROR_UNSUPPORTED.into()),
            Answer::Unknown => Err(DXGI_ERROR_INVALID_CALL.into()),
        }
    }
}

impl Drop for AdapterObject {
    fn drop(&mut self) {
        self.0.registrations.object_is_destroyed("an adapter");
    }
}

impl IDXCoreAdapter_Impl for AdapterObject_Impl {
    fn IsValid(&self) -> bool {
        self.0.is_valid()
    }

    fn IsAttributeSupported(&self, attribute: *const GUID) -> bool {
        // SAFETY: the caller passes a reference to a GUID; null gives `None`.
        let guid = unsafe { attribute.as_ref() };
        guid.and_then(attributes::find).is_some_and(|(attribute, age)| {
            let known =
                age == Age::First || self.0.host.newer_attributes() == NewerAttributes::Listed;
            known && self.0.adapter.attributes.has(attribute)
        })
    }

    fn IsPropertySupported(&self, property: DXCoreAdapterProperty) -> bool {
        matches!(answer(&self.0.adapter, property.0), Answer::Value(_))
    }

    fn GetProperty(
        &self,
        property: DXCoreAdapterProperty,
        size: usize,
        data: *mut c_void,
    ) -> Result<()> {
        let value = self.value(property)?;
        // SAFETY: the caller says that `data` has room for `size` bytes.
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
        if !self.0.is_valid() {
            return Err(DXGI_ERROR_DEVICE_REMOVED.into());
        }
        if state != IsDriverUpdateInProgress {
            return Err(DXGI_ERROR_INVALID_CALL.into());
        }
        let value = [u8::from(self.0.host.replaces_driver_of(self.0.adapter.luid))];
        // SAFETY: the caller says that `data` has room for `size` bytes.
        unsafe { fill(data, size, &value) }
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
        factory::hand_out(&factory::new(self.0.host), iid, factory)
    }
}

/// Zeroes the buffer and puts the value into it.
///
/// # Safety
/// `data` is null or has room for `size` bytes that nobody else uses.
unsafe fn fill(data: *mut c_void, size: usize, value: &[u8]) -> Result<()> {
    if data.is_null() {
        return Err(E_POINTER.into());
    }
    if size < value.len() {
        return Err(E_INVALIDARG.into());
    }
    // SAFETY: not null, and the caller vouches for the size.
    let buffer = unsafe { slice::from_raw_parts_mut(data.cast::<u8>(), size) };
    buffer.fill(0);
    buffer[..value.len()].copy_from_slice(value);
    Ok(())
}
