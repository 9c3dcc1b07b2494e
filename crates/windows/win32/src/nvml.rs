//! Asks NVIDIA's management library (NVML) about NVIDIA GPUs. It is loaded at run time from the
//! driver's folder or from System32. A host without NVML is normal.

use std::collections::BTreeMap;
use std::io;

use devices::{Adapter, NvidiaFacts, PnpId, Vendor, check_store_folder};
use windows::Win32::Devices::Properties::{DEVPKEY_Device_Address, DEVPKEY_Device_BusNumber};
use windows::Win32::Foundation::DEVPROPKEY;
use windows_report::nvml::{PciAddress, facts_by_device};

use crate::sys::nvml::Nvml;
use crate::sys::setup::{DeviceEntry, SetupApi};
use crate::sys::version;

/// What NVML reports of each NVIDIA device among `adapters` that it knows, by `PnP` id. Empty if
/// there is no NVML or no such device. A call can take seconds, because the driver initializes its
/// GPUs.
#[must_use]
pub fn gpus(adapters: &[Adapter]) -> BTreeMap<PnpId, NvidiaFacts> {
    let nvidia_adapters: Vec<&Adapter> = adapters
        .iter()
        .filter(|adapter| Vendor::from_id(adapter.hardware_id.vendor) == Vendor::Nvidia)
        .collect();
    let ids: Vec<&PnpId> =
        nvidia_adapters.iter().filter_map(|a| Some(&a.pnp.as_ref()?.id)).collect();
    if ids.is_empty() {
        return BTreeMap::new();
    }
    // A library is loaded only from where Windows keeps driver packages.
    let root = version::system_root().parse().unwrap_or_default();
    let stores =
        nvidia_adapters.iter().filter_map(|a| Some(a.driver_store.as_ref()?.path.as_str()));
    let folders = stores.filter(|path| check_store_folder(path, &root).is_ok());
    match Nvml::load(folders).and_then(|nvml| Ok((nvml.gpus()?, pci_addresses(&ids)?))) {
        Ok((gpus, devices)) => facts_by_device(&devices, &gpus),
        Err(error) => {
            tracing::debug!(%error, "NVML unavailable");
            BTreeMap::new()
        }
    }
}

/// The PCI addresses that the `PnP` manager reports for the devices `ids`.
fn pci_addresses(ids: &[&PnpId]) -> io::Result<Vec<(PnpId, PciAddress)>> {
    let setup = SetupApi::load()?;
    let list = setup.present()?;
    let mut addresses = Vec::new();
    for entry in list.devices()? {
        let id = PnpId::new(entry.instance_id()?);
        if let Some(id) = ids.iter().find(|wanted| ***wanted == id)
            && let Some(bus) = number(&entry, &DEVPKEY_Device_BusNumber)
            && let Some(address) = number(&entry, &DEVPKEY_Device_Address)
        {
            addresses.push(((*id).clone(), PciAddress::from_properties(bus, address)));
        }
    }
    Ok(addresses)
}

fn number(entry: &DeviceEntry<'_>, key: &DEVPROPKEY) -> Option<u32> {
    entry.property(key).ok()??.number().ok()
}
