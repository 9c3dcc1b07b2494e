//! `IDXCoreAdapterFactory` and the function that the library exports.
#![allow(unsafe_code, reason = "COM passes raw pointers, and other programs call the export")]

use std::ffi::c_void;
use std::slice;
use std::sync::Arc;

use host::Luid;
use windows::Win32::Foundation::{E_FAIL, E_INVALIDARG, E_POINTER, LUID};
use windows::Win32::Graphics::DXCore::{
    AdapterListStale, AdapterNoLongerValid, DXCoreNotificationType, IDXCoreAdapter,
    IDXCoreAdapterFactory, IDXCoreAdapterFactory_Impl, IDXCoreAdapterList,
    PFN_DXCORE_NOTIFICATION_CALLBACK,
};
use windows::Win32::Graphics::Dxgi::DXGI_ERROR_INVALID_CALL;
use windows::core::{GUID, HRESULT, IUnknown, Interface as _, Ref, Result, implement};

use crate::adapter::AdapterObject;
use crate::doubled_host::{Host, host};
use crate::interface;
use crate::list::ListObject;
use crate::notify::{self, Callback, Observable, Registered};

/// `DXCoreCreateAdapterFactory` of `dxcore.h`.
#[unsafe(no_mangle)]
extern "system" fn DXCoreCreateAdapterFactory(
    iid: *const GUID,
    factory: *mut *mut c_void,
) -> HRESULT {
    match host() {
        Ok(host) => interface::query(&new(host), iid, factory).into(),
        Err(reason) => {
            eprintln!("dxcore double: {reason}");
            E_FAIL
        }
    }
}

/// A new factory for `host`.
fn new(host: &'static Host) -> IDXCoreAdapterFactory {
    Factory(host).into()
}

#[implement(IDXCoreAdapterFactory)]
struct Factory(&'static Host);

impl IDXCoreAdapterFactory_Impl for Factory_Impl {
    fn CreateAdapterList(
        &self,
        count: u32,
        attributes: *const GUID,
        iid: *const GUID,
        list: *mut *mut c_void,
    ) -> Result<()> {
        if attributes.is_null() || count == 0 {
            return Err(E_INVALIDARG.into());
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the caller guarantees that `attributes` points to `count` GUIDs.
        let guids = unsafe { slice::from_raw_parts(attributes, count) };
        let filter = self.0.filter(guids);
        if self.0.list_fails(&filter) {
            return Err(E_FAIL.into());
        }
        let object: IDXCoreAdapterList = ListObject::new(self.0, filter, new(self.0)).into();
        interface::query(&object, iid, list)
    }

    fn GetAdapterByLuid(
        &self,
        luid: *const LUID,
        iid: *const GUID,
        adapter: *mut *mut c_void,
    ) -> Result<()> {
        // SAFETY: the caller passes a reference to a LUID; null gives `None`.
        let luid = unsafe { luid.as_ref() }.ok_or(E_POINTER)?;
        let wanted = Luid(i64::from(luid.HighPart) << 32 | i64::from(luid.LowPart));
        let found = self.0.adapters().into_iter().find(|adapter| adapter.luid == wanted);
        let object = AdapterObject::new(self.0, found.ok_or(E_INVALIDARG)?, new(self.0));
        interface::query(&IDXCoreAdapter::from(object), iid, adapter)
    }

    fn IsNotificationTypeSupported(&self, kind: DXCoreNotificationType) -> bool {
        kind == AdapterListStale || kind == AdapterNoLongerValid
    }

    fn RegisterEventNotification(
        &self,
        object: Ref<IUnknown>,
        kind: DXCoreNotificationType,
        callback: PFN_DXCORE_NOTIFICATION_CALLBACK,
        context: *const c_void,
    ) -> Result<u32> {
        let function = callback.ok_or(E_POINTER)?;
        let object = object.as_ref().ok_or(E_INVALIDARG)?;
        let observed: Arc<dyn Observable> = if kind == AdapterListStale {
            object.cast_object_ref::<ListObject>()?.state()
        } else if kind == AdapterNoLongerValid {
            object.cast_object_ref::<AdapterObject>()?.state()
        } else {
            return Err(DXGI_ERROR_INVALID_CALL.into());
        };
        Ok(notify::register(observed, Callback::new(function, kind, object, context)))
    }

    fn UnregisterEventNotification(&self, cookie: u32) -> Result<()> {
        match notify::unregister(cookie) {
            Registered::Yes => Ok(()),
            Registered::No => Err(E_INVALIDARG.into()),
        }
    }
}
