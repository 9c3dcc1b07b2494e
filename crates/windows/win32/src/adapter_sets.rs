//! The adapters of this host, from `DXCore` or, without it, from the graphics kernel.

use std::io;

use devices::{Adapter, Attributes, DriverVersion, HardwareId, Luid, NvidiaFacts};
use windows::Win32::Graphics::DXCore::{self as dxcore, DXCoreAdapterProperty};
use windows_report::kernel_report::{self, DeviceKey, listed_attributes};
use windows_report::order;
use windows_report::text;

use crate::sys::dxcore::{AdapterList, DxcoreAdapter};
use crate::sys::kmt::GraphicsKernel;
use crate::sys::kmt_adapters::{ListedAdapter, flags};

/// The adapters of this host at one time, from one of the interfaces of Windows.
pub(crate) enum AdapterSet<'a> {
    /// One set of lists of `DXCore`.
    Dxcore(&'a [AdapterList]),
    /// The list of the graphics kernel.
    Kernel(Vec<ListedAdapter>),
}

impl AdapterSet<'_> {
    /// The adapters in the order of the host, with their attributes.
    pub(crate) fn listed(&self) -> Vec<(Luid, Attributes)> {
        match self {
            AdapterSet::Dxcore(lists) => {
                let lists = lists.iter().map(|list| {
                    (list.attribute, list.adapters.iter().map(|adapter| adapter.luid).collect())
                });
                order::by_adapter(&lists.collect::<Vec<_>>())
            }
            AdapterSet::Kernel(adapters) => adapters
                .iter()
                .filter_map(|(luid, report)| Some((*luid, listed_attributes(report)?)))
                .collect(),
        }
    }

    /// An adapter, without its device and its driver.
    pub(crate) fn adapter(&self, luid: Luid) -> io::Result<Adapter> {
        match self {
            AdapterSet::Dxcore(lists) => {
                let mut adapters = lists.iter().flat_map(|list| &list.adapters);
                dxcore_adapter(adapters.find(|adapter| adapter.luid == luid).ok_or_else(removed)?)
            }
            AdapterSet::Kernel(adapters) => {
                let (_, report) = adapters.iter().find(|(l, _)| *l == luid).ok_or_else(removed)?;
                match report {
                    Ok(report) => Ok(report.adapter(luid)),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                }
            }
        }
    }

    /// The devices of the adapters, if they are known without `DEVPKEY_Gpu_Luid`, which every
    /// Windows with `DXCore` has.
    pub(crate) fn device_keys(&self) -> Vec<DeviceKey> {
        let AdapterSet::Kernel(adapters) = self else { return Vec::new() };
        adapters
            .iter()
            .filter_map(|(luid, report)| Some(report.as_ref().ok()?.device_keys(*luid)))
            .flatten()
            .collect()
    }
}

fn dxcore_adapter(adapter: &DxcoreAdapter) -> io::Result<Adapter> {
    if !adapter.is_valid() {
        return Err(removed());
    }
    if adapter.is_driver_update_in_progress() {
        return Err(io::Error::other("the driver is being updated"));
    }
    let description = adapter.property_bytes(dxcore::DriverDescription)?.unwrap_or_default();
    Ok(Adapter {
        luid: adapter.luid,
        attributes: Attributes::default(),
        // Every host with `DXCore` supports this property; an adapter with a driver is hardware.
        hardware: flag(adapter, dxcore::IsHardware)? != Some(false),
        integrated: flag(adapter, dxcore::IsIntegrated)? == Some(true),
        detachable: flag(adapter, dxcore::IsDetachable)? == Some(true),
        indirect_display: is_indirect_display(adapter.luid),
        hardware_id: hardware_id(adapter)?,
        driver_description: text::utf8_for_display(&description),
        driver_version: number(adapter, dxcore::DriverVersion)?.map(DriverVersion),
        dedicated_memory_mib: number(adapter, dxcore::DedicatedAdapterMemory)?
            .map(|bytes| bytes >> 20),
        load: None,
        nvidia: NvidiaFacts::default(),
        pnp: None,
        driver_store: None,
    })
}

/// Whether the graphics kernel calls the adapter an indirect display, which `DXCore` does not
/// report. If the kernel does not answer, the adapter counts as none, so that no GPU is left out.
fn is_indirect_display(luid: Luid) -> bool {
    match GraphicsKernel::load().and_then(|kernel| flags(&kernel, luid)) {
        Ok(flags) => kernel_report::is_indirect_display(flags),
        Err(error) => {
            tracing::debug!(%luid, %error, "cannot read whether this is an indirect display");
            false
        }
    }
}

fn flag(adapter: &DxcoreAdapter, property: DXCoreAdapterProperty) -> io::Result<Option<bool>> {
    Ok(adapter.property(property)?.map(|[byte]| byte != 0))
}

fn number(adapter: &DxcoreAdapter, property: DXCoreAdapterProperty) -> io::Result<Option<u64>> {
    Ok(adapter.property(property)?.map(u64::from_le_bytes))
}

fn hardware_id(adapter: &DxcoreAdapter) -> io::Result<HardwareId> {
    let Some(bytes) = adapter.property::<16>(dxcore::HardwareID)? else {
        return Ok(HardwareId::default());
    };
    let (parts, _) = bytes.as_chunks();
    let [vendor, device, subsystem, revision] = [0, 1, 2, 3].map(|n| u32::from_le_bytes(parts[n]));
    Ok(HardwareId { vendor, device, subsystem, revision })
}

fn removed() -> io::Error {
    io::Error::other("the adapter was removed")
}
