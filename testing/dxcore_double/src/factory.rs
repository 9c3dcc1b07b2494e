//! `IDXCoreAdapterFactory` and the function that the library exports.
#![allow(unsafe_code, reason = "COM passes raw pointers, and the export is called from outside")]

use std::ffi::c_void;
use std::slice;
use std::sync::Arc;

use devices::Luid;
use windows::Win32::Foundation::{E_FAIL, E_INVALIDARG, E_POINTER, LUID};
use windows::Win32::Graphics::DXCore::{
    AdapterListStale, AdapterNoLongerValid, DXCoreNotificationType, IDXCoreAdapter,
    IDXCoreAdapterFactory, IDXCoreAdapterFactory_Impl, IDXCoreAdapterList,
    PFN_DXCORE_NOTIFICATION_CALLBACK,
};
use windows::Win32::Graphics::Dxgi::DXGI_ERROR_INVALID_CALL;
use windows::core::{GUID, HRESULT, IUnknown, Interface, Ref, Result, implement};

use crate::adapter::AdapterObject;
use crate::host::{Filter, Host, host};
use crate::list::ListObject;
use crate::notify::{self, Callback, Watched};

/// `DXCoreCreateAdapterFactory` of `dxcore.h`.
#[unsafe(no_mangle)]
extern "system" fn DXCoreCreateAdapterFactory(
    iid: *const GUID,
    factory: *mut *mut c_void,
) -> HRESULT {
    match host() {
        Ok(host) => hand_out(&new(host), iid, factory).into(),
        Err(reason) => {
            eprintln!("dxcore double: {reason}");
            E_FAIL
        }
    }
}

/// A factory of `host`.
pub(crate) fn new(host: &'static Host) -> IDXCoreAdapterFactory {
    Factory(host).into()
}

/// Gives `object` out as the interface `iid`, as `QueryInterface` does.
pub(crate) fn hand_out(
    object: &impl Interface,
    iid: *const GUID,
    out: *mut *mut c_void,
) -> Result<()> {
    if iid.is_null() || out.is_null() {
        return Err(E_POINTER.into());
    }
    // SAFETY: neither is null, and the caller says that they point to a GUID and to
    // room for a pointer.
    unsafe { object.query(iid, out) }.ok()
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
        // SAFETY: the caller says that `attributes` points to `count` GUIDs.
        let guids = unsafe { slice::from_raw_parts(attributes, count) };
        let filter = self.0.filter(guids);
        if matches!(filter, Filter::Refused) {
            return Err(E_INVALIDARG.into());
        }
        let object: IDXCoreAdapterList = ListObject::new(self.0, filter).into();
        hand_out(&object, iid, list)
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
        let object = AdapterObject::new(self.0, found.ok_or(E_INVALIDARG)?);
        hand_out(&IDXCoreAdapter::from(object), iid, adapter)
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
        let watched = if kind == AdapterListStale {
            Watched::List(Arc::clone(&object.cast_object_ref::<ListObject>()?.0))
        } else if kind == AdapterNoLongerValid {
            Watched::Adapter(Arc::clone(&object.cast_object_ref::<AdapterObject>()?.0))
        } else {
            return Err(DXGI_ERROR_INVALID_CALL.into());
        };
        Ok(notify::register(watched, Callback::new(function, kind, object, context)))
    }

    fn UnregisterEventNotification(&self, cookie: u32) -> Result<()> {
        if notify::unregister(cookie) { Ok(()) } else { Err(E_INVALIDARG.into()) }
    }
}
