//! The UUIDs of NVIDIA GPUs, which CUDA names devices by.
//!
//! The `PnP` manager and NVIDIA's management library (NVML) both know a GPU's place
//! on the PCI bus; that is what joins them. NVML is loaded at run time from the
//! driver's own folder, or from System32, and its absence is normal.

use std::collections::BTreeMap;
#[cfg(windows)]
use std::io;

use devices::PnpId;
#[cfg(windows)]
use devices::{Adapter, Vendor};
#[cfg(windows)]
use windows::Win32::Devices::Properties::{DEVPKEY_Device_Address, DEVPKEY_Device_BusNumber};

#[cfg(windows)]
use crate::sys::{nvml::Nvml, setup::SetupApi};

/// A place on the PCI buses of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PciAddress {
    /// The segment, which NVML calls domain. 0 on most hosts.
    pub(crate) segment: u32,
    /// The bus, 0 to 255.
    pub(crate) bus: u32,
    /// The device on the bus, 0 to 31.
    pub(crate) device: u32,
}

impl PciAddress {
    /// From `DEVPKEY_Device_BusNumber`, which holds the segment in bits 8 to 23
    /// (`PCI_SEGMENT_BUS_NUMBER`, ntddk.h), and `DEVPKEY_Device_Address`, which holds
    /// the device in its high and the function in its low 16 bits.
    pub(crate) fn from_properties(bus_number: u32, address: u32) -> Self {
        Self { segment: bus_number >> 8 & 0xFFFF, bus: bus_number & 0xFF, device: address >> 16 }
    }
}

/// A GPU as NVML knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Gpu {
    pub(crate) address: PciAddress,
    /// `GPU-` and a UUID.
    pub(crate) uuid: String,
}

/// The UUID for each device whose place one GPU has. Places that are equal but for the
/// segment join where that leaves no choice, because the two sides do not number the
/// segments of virtual machines alike.
fn joined(places: &[(PnpId, PciAddress)], gpus: &[Gpu]) -> BTreeMap<PnpId, String> {
    let near = |a: PciAddress, b: PciAddress| (a.bus, a.device) == (b.bus, b.device);
    let uuid_at = |place: PciAddress| {
        let exact = gpus.iter().find(|gpu| gpu.address == place);
        let alone = places.iter().filter(|(_, other)| near(*other, place)).count() == 1;
        let mut nearby = gpus.iter().filter(|gpu| near(gpu.address, place));
        exact.or_else(|| match (alone, nearby.next(), nearby.next()) {
            (true, Some(only), None) => Some(only),
            _ => None,
        })
    };
    let uuid = |(id, place): &(PnpId, PciAddress)| {
        uuid_at(*place).map(|gpu| (id.clone(), gpu.uuid.clone()))
    };
    places.iter().filter_map(uuid).collect()
}

/// The UUID (`GPU-…`) of each NVIDIA device among `adapters` that NVML knows, by its
/// `PnP` id. Empty where there is no NVML or no such device. The first call may take
/// seconds while the driver wakes its GPUs.
#[cfg(windows)]
#[must_use]
pub fn gpu_uuids(adapters: &[Adapter]) -> BTreeMap<PnpId, String> {
    let nvidia = |adapter: &&Adapter| Vendor::from_id(adapter.hardware_id.vendor) == Vendor::Nvidia;
    let ours: Vec<&Adapter> = adapters.iter().filter(nvidia).collect();
    let ids: Vec<&PnpId> = ours.iter().filter_map(|a| Some(&a.pnp.as_ref()?.id)).collect();
    if ids.is_empty() {
        return BTreeMap::new();
    }
    let folders = ours.iter().filter_map(|a| Some(a.driver_store.as_ref()?.path.as_str()));
    match Nvml::load(folders).and_then(|nvml| Ok((nvml.gpus()?, places(&ids)?))) {
        Ok((gpus, places)) => joined(&places, &gpus),
        Err(error) => {
            tracing::debug!(%error, "no GPU UUIDs from NVML");
            BTreeMap::new()
        }
    }
}

/// Where the devices `ids` are, as the `PnP` manager says.
#[cfg(windows)]
fn places(ids: &[&PnpId]) -> io::Result<Vec<(PnpId, PciAddress)>> {
    let setup = SetupApi::load()?;
    let list = setup.present()?;
    let mut places = Vec::new();
    for entry in list.devices()? {
        let id = entry.instance_id()?;
        let number = |key| entry.property(key).ok()??.number().ok();
        if let Some(id) = ids.iter().find(|wanted| wanted.as_str().eq_ignore_ascii_case(&id))
            && let Some(bus) = number(&DEVPKEY_Device_BusNumber)
            && let Some(address) = number(&DEVPKEY_Device_Address)
        {
            places.push(((*id).clone(), PciAddress::from_properties(bus, address)));
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(segment: u32, bus: u32, device: u32) -> PciAddress {
        PciAddress { segment, bus, device }
    }

    fn gpu(address: PciAddress, uuid: &str) -> Gpu {
        Gpu { address, uuid: uuid.to_owned() }
    }

    fn uuids(places: &[PciAddress], gpus: &[Gpu]) -> Vec<Option<String>> {
        let id = |n: usize| PnpId::new(n.to_string());
        let places: Vec<_> = places.iter().enumerate().map(|(n, p)| (id(n), *p)).collect();
        let found = joined(&places, gpus);
        (0..places.len()).map(|n| found.get(&id(n)).cloned()).collect()
    }

    #[test]
    fn properties_hold_segment_bus_and_device() {
        assert_eq!(PciAddress::from_properties(0x1B, 0x0003_0000), place(0, 0x1B, 3));
        assert_eq!(PciAddress::from_properties(0xFF12_3402, 1), place(0x1234, 2, 0));
    }

    #[test]
    fn devices_are_found_by_their_place() {
        let gpus = [gpu(place(0, 0x1C, 0), "GPU-b"), gpu(place(0, 0x1B, 0), "GPU-a")];
        let found = uuids(&[place(0, 0x1B, 0), place(0, 0x1C, 0), place(0, 0x1D, 0)], &gpus);
        assert_eq!(found, [Some("GPU-a".to_owned()), Some("GPU-b".to_owned()), None]);
    }

    #[test]
    fn another_segment_is_overlooked_only_where_nothing_else_fits() {
        let one = [gpu(place(0xA1B2, 0, 0), "GPU-a")];
        assert_eq!(uuids(&[place(1, 0, 0)], &one), [Some("GPU-a".to_owned())]);
        assert_eq!(uuids(&[place(1, 0, 0), place(2, 0, 0)], &one), [None, None]);
        let two = [gpu(place(1, 0, 0), "GPU-a"), gpu(place(2, 0, 0), "GPU-b")];
        assert_eq!(uuids(&[place(3, 0, 0)], &two), [None]);
        assert_eq!(uuids(&[place(2, 0, 0)], &two), [Some("GPU-b".to_owned())]);
    }
}
