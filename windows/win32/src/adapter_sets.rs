//! The adapters of this host, from `DXCore` or, without it, from the graphics kernel.

use std::io;

use devices::{Attributes, DriverVersion, HardwareId, Luid};
use windows::Win32::Graphics::DXCore as dxcore;

use crate::kernel_report::{AdapterFacts, DeviceKey, listed_attributes};
use crate::live::AdapterSet;
use crate::order;
use crate::sys::dxcore::{AdapterList, DxcoreAdapter};
use crate::sys::kmt_adapters::{KernelAdapterList, ListedAdapter};
use crate::text;

/// The adapters of one set of lists of `DXCore`.
pub(crate) struct DxcoreSet<'a>(pub(crate) &'a [AdapterList]);

impl AdapterSet for DxcoreSet<'_> {
    fn listed(&self) -> Vec<(Luid, Attributes)> {
        let luids = |list: &AdapterList| list.adapters.iter().map(|a| a.luid).collect();
        let lists: Vec<_> = self.0.iter().map(|list| (list.attribute, luids(list))).collect();
        order::by_adapter(&lists)
    }

    fn facts(&self, luid: Luid) -> io::Result<AdapterFacts> {
        let mut adapters = self.0.iter().flat_map(|list| &list.adapters);
        let adapter = adapters.find(|adapter| adapter.luid == luid).ok_or_else(removed)?;
        if !adapter.is_valid() {
            return Err(removed());
        }
        if adapter.is_driver_update_in_progress() {
            return Err(io::Error::other("the driver is being updated"));
        }
        facts(adapter)
    }

    /// Every Windows with `DXCore` has `DEVPKEY_Gpu_Luid`.
    fn device_keys(&self) -> &[DeviceKey] {
        &[]
    }
}

fn facts(adapter: &DxcoreAdapter) -> io::Result<AdapterFacts> {
    let flag = |property| Ok::<_, io::Error>(adapter.property(property)?.map(|[byte]| byte != 0));
    let number = |property| Ok::<_, io::Error>(adapter.property(property)?.map(u64::from_le_bytes));
    let description = adapter.property_bytes(dxcore::DriverDescription)?.unwrap_or_default();
    Ok(AdapterFacts {
        // Every host with `DXCore` supports this property; an adapter with a driver is hardware.
        hardware: flag(dxcore::IsHardware)? != Some(false),
        integrated: flag(dxcore::IsIntegrated)? == Some(true),
        detachable: flag(dxcore::IsDetachable)? == Some(true),
        hardware_id: hardware_id(adapter)?,
        driver_description: text::utf8_for_display(&description),
        driver_version: number(dxcore::DriverVersion)?.map(DriverVersion),
        dedicated_memory: number(dxcore::DedicatedAdapterMemory)?,
    })
}

fn hardware_id(adapter: &DxcoreAdapter) -> io::Result<HardwareId> {
    let Some(bytes) = adapter.property::<16>(dxcore::HardwareID)? else {
        return Ok(HardwareId::default());
    };
    let part = |n: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[n * 4 + byte]));
    Ok(HardwareId { vendor: part(0), device: part(1), subsystem: part(2), revision: part(3) })
}

fn removed() -> io::Error {
    io::Error::other("the adapter was removed")
}

/// The adapters that the graphics kernel lists.
pub(crate) struct KernelSet {
    adapters: Vec<ListedAdapter>,
    keys: Vec<DeviceKey>,
}

impl KernelSet {
    /// Reads every adapter.
    pub(crate) fn read(kernel: &KernelAdapterList) -> io::Result<Self> {
        let adapters = kernel.read()?;
        let keys = adapters
            .iter()
            .filter_map(|(luid, report)| Some(report.as_ref().ok()?.device_keys(*luid)));
        let keys = keys.flatten().collect();
        Ok(Self { adapters, keys })
    }
}

impl AdapterSet for KernelSet {
    fn listed(&self) -> Vec<(Luid, Attributes)> {
        let listed = |(luid, report): &ListedAdapter| Some((*luid, listed_attributes(report)?));
        self.adapters.iter().filter_map(listed).collect()
    }

    fn facts(&self, luid: Luid) -> io::Result<AdapterFacts> {
        let (_, report) = self.adapters.iter().find(|(l, _)| *l == luid).ok_or_else(removed)?;
        match report {
            Ok(report) => Ok(report.facts()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    fn device_keys(&self) -> &[DeviceKey] {
        &self.keys
    }
}
