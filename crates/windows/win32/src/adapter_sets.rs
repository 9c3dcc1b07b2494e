//! The adapters of this host, from `DXCore` or, without it, from the graphics kernel.

use std::io;

use host::{Adapter, Attributes, DriverVersion, HardwareId, Luid, NvidiaFacts};
use windows::Win32::Graphics::DXCore as dxcore;
use windows_report::kernel_report::{self, DeviceKey, device_keys, listed_attributes};
use windows_report::order;
use windows_report::property::optional;
use windows_report::text;

use crate::sys::dxcore::{AdapterList, DxcoreAdapter};
use crate::sys::kmt::GraphicsKernel;
use crate::sys::kmt_adapters::{ListedAdapter, flags, pnp_keys};

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
    pub(crate) fn adapter(&self, luid: Luid, notes: &mut Vec<String>) -> io::Result<Adapter> {
        match self {
            AdapterSet::Dxcore(lists) => {
                let mut adapters = lists.iter().flat_map(|list| &list.adapters);
                let adapter = adapters.find(|adapter| adapter.luid == luid).ok_or_else(removed)?;
                dxcore_adapter(adapter, notes)
            }
            AdapterSet::Kernel(adapters) => {
                let (_, report) = adapters.iter().find(|(l, _)| *l == luid).ok_or_else(removed)?;
                match report {
                    Ok(report) => {
                        notes.extend(report.notes.iter().cloned());
                        Ok(report.adapter(luid))
                    }
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                }
            }
        }
    }

    /// The instance IDs of the devices of the adapter `luid` that the graphics kernel reports.
    pub(crate) fn device_keys(&self, luid: Luid) -> Vec<DeviceKey> {
        let pnp_keys = match self {
            AdapterSet::Dxcore(_) => GraphicsKernel::load()
                .and_then(|kernel| pnp_keys(&kernel, luid))
                .inspect_err(|error| tracing::debug!(%luid, %error, "cannot read PnP keys")),
            AdapterSet::Kernel(adapters) => {
                let mut reports = adapters
                    .iter()
                    .filter_map(|(l, report)| report.as_ref().ok().filter(|_| *l == luid));
                reports.next().map(|report| report.pnp_keys.clone()).ok_or_else(removed)
            }
        };
        device_keys(luid, &pnp_keys.unwrap_or_default()).collect()
    }
}

fn dxcore_adapter(adapter: &DxcoreAdapter, notes: &mut Vec<String>) -> io::Result<Adapter> {
    if adapter.is_driver_update_in_progress() {
        return Err(io::Error::other("the driver is being updated"));
    }
    let mut flag = |what, property| {
        let read = adapter.property(property);
        optional(what, read, notes).map(|[byte]| byte != 0)
    };
    // Every host with `DXCore` supports this property; an adapter with a driver is hardware.
    let hardware = flag("IsHardware", dxcore::IsHardware) != Some(false);
    let integrated = flag("IsIntegrated", dxcore::IsIntegrated) == Some(true);
    let detachable = flag("IsDetachable", dxcore::IsDetachable) == Some(true);
    let mut number = |what, property| {
        let read = adapter.property(property);
        optional(what, read, notes).map(u64::from_le_bytes)
    };
    let driver_version = number("DriverVersion", dxcore::DriverVersion).map(DriverVersion);
    let memory = number("DedicatedAdapterMemory", dxcore::DedicatedAdapterMemory);
    let hardware_id = optional("HardwareID", adapter.property(dxcore::HardwareID), notes);
    let description = adapter.property_bytes(dxcore::DriverDescription);
    let description = optional("DriverDescription", description, notes).unwrap_or_default();
    // The properties of an adapter that was removed in the meantime say nothing.
    if !adapter.is_valid() {
        return Err(removed());
    }
    Ok(Adapter {
        luid: adapter.luid,
        attributes: Attributes::default(),
        hardware,
        integrated,
        detachable,
        indirect_display: is_indirect_display(adapter.luid),
        hardware_id: hardware_id.map(of_numbers).unwrap_or_default(),
        driver_description: text::utf8_for_display(&description),
        driver_version,
        dedicated_memory_mib: memory.map(|bytes| bytes >> 20),
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

/// `DXCoreHardwareID`.
fn of_numbers(bytes: [u8; 16]) -> HardwareId {
    let (parts, _) = bytes.as_chunks();
    let [vendor, device, subsystem, revision] = [0, 1, 2, 3].map(|n| u32::from_le_bytes(parts[n]));
    HardwareId { vendor, device, subsystem, revision }
}

fn removed() -> io::Error {
    io::Error::other("the adapter was removed")
}
