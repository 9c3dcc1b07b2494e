//! What NVIDIA's management library (NVML) reports of NVIDIA GPUs. A host without NVML is normal.
//!
//! The library is code of the driver. It may crash, hang or leak memory, above all while a driver
//! is replaced, and while it is loaded Windows cannot remove its file. So no program loads it that
//! must go on: a child process asks it, prints the answer and ends. The child is this program with
//! a hidden argument.

#[cfg(any(windows, test))]
mod child;
mod error;

#[cfg(windows)]
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
#[cfg(windows)]
use std::io::Write;

#[cfg(windows)]
use host::{Adapter, NvidiaFacts, PnpId, Vendor, check_store_folder};
#[cfg(windows)]
use windows::Win32::Devices::Properties::{DEVPKEY_Device_Address, DEVPKEY_Device_BusNumber};
#[cfg(windows)]
use windows::Win32::Foundation::DEVPROPKEY;
#[cfg(windows)]
use windows_report::nvml::{PciAddress, facts_by_device};

#[cfg(windows)]
use crate::sys::{
    nvml::Nvml,
    setup::{DeviceEntry, DeviceList, SetupApi},
    version,
};

pub use error::NvmlError;

/// The first argument of the child. The folders with drivers follow.
const ARGUMENT: &str = "--report-nvml";

/// What NVML reports of each NVIDIA device among `adapters` that it knows, by `PnP` id. Empty if
/// there is no NVML or no such device. A call can take seconds, because the driver initializes its
/// GPUs. A program that calls this must call [`answer_parent`] when it starts.
#[cfg(windows)]
pub fn gpus(adapters: &[Adapter]) -> Result<BTreeMap<PnpId, NvidiaFacts>, NvmlError> {
    let nvidia_adapters: Vec<&Adapter> =
        adapters.iter().filter(|adapter| adapter.vendor() == Vendor::Nvidia).collect();
    let ids: Vec<&PnpId> =
        nvidia_adapters.iter().filter_map(|a| Some(&a.pnp.as_ref()?.id)).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut folders = Vec::new();
    for store in nvidia_adapters.iter().filter_map(|adapter| adapter.driver_store.as_ref()) {
        if !folders.contains(&store.path.as_str()) {
            folders.push(store.path.as_str());
        }
    }
    let gpus = child::ask(&folders)?;
    if gpus.is_empty() {
        return Ok(BTreeMap::new());
    }
    let setup = SetupApi::load().map_err(NvmlError::Devices)?;
    let list = setup.present().map_err(NvmlError::Devices)?;
    let devices = pci_addresses(&list, &ids).map_err(NvmlError::Devices)?;
    Ok(facts_by_device(&devices, &gpus))
}

/// If this process was started to ask NVML, asks it, prints the answer and returns whether that
/// was possible. Then the process must end. To be called before arguments are parsed.
#[must_use]
pub fn answer_parent() -> Option<io::Result<()>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == ARGUMENT).then(|| report(arguments))
}

#[cfg(windows)]
fn report(folders: impl Iterator<Item = OsString>) -> io::Result<()> {
    // A library is loaded only from where Windows keeps driver packages.
    let root = version::system_root().parse().unwrap_or_default();
    let folders: Vec<String> = folders.filter_map(|folder| folder.into_string().ok()).collect();
    let stores = folders.iter().filter(|path| check_store_folder(path, &root).is_ok());
    let gpus = Nvml::load(stores.map(String::as_str)).and_then(|nvml| nvml.gpus());
    let text = child::text(&gpus.map_err(|error| error.to_string()))?;
    io::stdout().write_all(text.as_bytes())
}

#[cfg(not(windows))]
fn report(_folders: impl Iterator<Item = OsString>) -> io::Result<()> {
    let text = format!("{ARGUMENT} is not supported on this system: NVML is asked only on Windows");
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// The PCI addresses that the `PnP` manager reports for the devices `ids`. A device that vanishes
/// meanwhile has none.
#[cfg(windows)]
fn pci_addresses(list: &DeviceList<'_>, ids: &[&PnpId]) -> io::Result<Vec<(PnpId, PciAddress)>> {
    let address_of = |entry: &DeviceEntry<'_>| {
        let id = PnpId::new(entry.instance_id().ok()?);
        let id = ids.iter().find(|wanted| ***wanted == id)?;
        let bus = number(entry, &DEVPKEY_Device_BusNumber)?;
        let address = number(entry, &DEVPKEY_Device_Address)?;
        Some(((*id).clone(), PciAddress::from_properties(bus, address)))
    };
    Ok(list.devices()?.iter().filter_map(address_of).collect())
}

#[cfg(windows)]
fn number(entry: &DeviceEntry<'_>, key: &DEVPROPKEY) -> Option<u32> {
    entry.property(key).ok()??.number().ok()
}

#[cfg(all(test, windows))]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_vanishes_during_the_list_takes_no_other_with_it() {
        let setup = SetupApi::load().unwrap();
        let list = setup.present().unwrap();
        let entries = list.devices().unwrap();
        let ids: Vec<PnpId> =
            entries.iter().map(|entry| PnpId::new(entry.instance_id().unwrap())).collect();
        let ids: Vec<&PnpId> = ids.iter().collect();
        let mut known = pci_addresses(&list, &ids).unwrap();
        assert!(known.len() > 1, "{known:?}");
        let (vanished, _) = known.remove(0);
        let setup = setup.without(vanished.as_str());
        assert_eq!(pci_addresses(&setup.present().unwrap(), &ids).unwrap(), known);
    }
}
