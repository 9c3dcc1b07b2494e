//! What NVIDIA's management library (NVML) reports of GPUs.
//!
//! The `PnP` manager and NVML both report the PCI address of a GPU, which connects a device with
//! what NVML reports of it.

use std::collections::BTreeMap;

use host::{ComputeCapability, License, NvidiaFacts, PnpId};
use serde::{Deserialize, Serialize};

/// A PCI address without the function number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PciAddress {
    /// The segment, which NVML calls domain. 0 on most hosts.
    pub segment: u32,
    /// The bus, 0 to 255.
    pub bus: u32,
    /// The device on the bus, 0 to 31.
    pub device: u32,
}

impl PciAddress {
    /// Converts `DEVPKEY_Device_BusNumber`, which holds the segment in bits 8 to 23
    /// (`PCI_SEGMENT_BUS_NUMBER`, ntddk.h), and `DEVPKEY_Device_Address`, which holds
    /// the device in its high and the function in its low 16 bits.
    #[must_use]
    pub fn from_properties(bus_number: u32, address: u32) -> Self {
        Self { segment: bus_number >> 8 & 0xFFFF, bus: bus_number & 0xFF, device: address >> 16 }
    }

    fn has_slot_of(self, other: PciAddress) -> bool {
        (self.bus, self.device) == (other.bus, other.device)
    }
}

/// A GPU as NVML reports it, which the process that asks NVML prints.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gpu {
    pub address: PciAddress,
    /// The UUID (`GPU-…`) by which CUDA identifies it.
    pub uuid: Option<String>,
    pub compute_capability: Option<ComputeCapability>,
    pub license: Option<License>,
}

impl Gpu {
    fn facts(&self) -> NvidiaFacts {
        NvidiaFacts {
            uuid: self.uuid.clone(),
            compute_capability: self.compute_capability,
            license: self.license,
        }
    }
}

/// What NVML reports of each device whose address matches a GPU. If no address matches exactly, the
/// segment is ignored, provided that only one device and one GPU match: in virtual machines,
/// Windows and NVML number the segments differently.
#[must_use]
pub fn facts_by_device(
    devices: &[(PnpId, PciAddress)],
    gpus: &[Gpu],
) -> BTreeMap<PnpId, NvidiaFacts> {
    let mut facts = BTreeMap::new();
    for (id, address) in devices {
        let exact = gpus.iter().find(|gpu| gpu.address == *address);
        if let Some(gpu) = exact.or_else(|| only_gpu_at_slot(devices, gpus, *address)) {
            facts.insert(id.clone(), gpu.facts());
        }
    }
    facts
}

/// The GPU with this bus and device number, if there is only one, and only one device.
fn only_gpu_at_slot<'a>(
    devices: &[(PnpId, PciAddress)],
    gpus: &'a [Gpu],
    address: PciAddress,
) -> Option<&'a Gpu> {
    let device_count = devices.iter().filter(|(_, other)| other.has_slot_of(address)).count();
    let mut candidates = gpus.iter().filter(|gpu| gpu.address.has_slot_of(address));
    match (device_count, candidates.next(), candidates.next()) {
        (1, Some(only), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(segment: u32, bus: u32, device: u32) -> PciAddress {
        PciAddress { segment, bus, device }
    }

    fn gpu(address: PciAddress, uuid: &str) -> Gpu {
        Gpu { address, uuid: Some(uuid.to_owned()), compute_capability: None, license: None }
    }

    fn uuids(addresses: &[PciAddress], gpus: &[Gpu]) -> Vec<Option<String>> {
        let id = |n: usize| PnpId::new(n.to_string());
        let devices: Vec<_> = addresses.iter().enumerate().map(|(n, p)| (id(n), *p)).collect();
        let found = facts_by_device(&devices, gpus);
        (0..devices.len()).map(|n| found.get(&id(n))?.uuid.clone()).collect()
    }

    #[test]
    fn devices_are_matched_by_address() {
        let gpus = [gpu(address(0, 0x1C, 0), "GPU-b"), gpu(address(0, 0x1B, 0), "GPU-a")];
        let found = uuids(&[address(0, 0x1B, 0), address(0, 0x1C, 0), address(0, 0x1D, 0)], &gpus);
        assert_eq!(found, [Some("GPU-a".to_owned()), Some("GPU-b".to_owned()), None]);
    }

    #[test]
    fn the_segment_is_ignored_only_for_an_unambiguous_match() {
        let one = [gpu(address(0xA1B2, 0, 0), "GPU-a")];
        assert_eq!(uuids(&[address(1, 0, 0)], &one), [Some("GPU-a".to_owned())]);
        assert_eq!(uuids(&[address(1, 0, 0), address(2, 0, 0)], &one), [None, None]);
        let two = [gpu(address(1, 0, 0), "GPU-a"), gpu(address(2, 0, 0), "GPU-b")];
        assert_eq!(uuids(&[address(3, 0, 0)], &two), [None]);
        assert_eq!(uuids(&[address(2, 0, 0)], &two), [Some("GPU-b".to_owned())]);
    }

    #[test]
    fn properties_contain_segment_bus_and_device() {
        let address = |segment, bus, device| PciAddress { segment, bus, device };
        assert_eq!(PciAddress::from_properties(0x1B, 0x0003_0000), address(0, 0x1B, 3));
        assert_eq!(PciAddress::from_properties(0xFF12_3402, 1), address(0x1234, 2, 0));
    }
}
