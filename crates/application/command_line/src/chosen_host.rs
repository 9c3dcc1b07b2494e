//! The host that a command works on: an inventory where one is given, else this host.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

#[cfg(any(windows, test))]
use host::{Adapter, Vendor};
use host::{
    AdapterSource, AdapterWarning, HostSnapshot, StoreFiles, WarningEffect, check_store_folder,
};

use crate::host_error::HostError;
use crate::inventory_source::InventorySource;
use crate::live_read::{OnStep, read_live};

/// Opens the inventory at `inventory`, or this host's adapters where there is none.
/// An inventory that is missing or malformed now is wrong usage; later, it is an error of
/// [`AdapterSource::snapshot`].
pub fn open_host(inventory: Option<&Path>) -> Result<Box<dyn AdapterSource>, HostError> {
    let Some(path) = inventory else { return this_host() };
    let source = InventorySource::new(path);
    read_inventory(path)?;
    Ok(Box::new(source))
}

/// Reads the adapters and facts of the host that [`open_host`] opens, once. Says on standard error
/// what this host does not answer, and gives up after 30 seconds ([`read_live`]).
pub fn read_host(inventory: Option<&Path>) -> Result<HostSnapshot, HostError> {
    if let Some(path) = inventory {
        return read_inventory(path);
    }
    read_live(|on_step| read_this_host(&on_step))?
}

fn read_this_host(on_step: &OnStep) -> Result<HostSnapshot, HostError> {
    let mut source = this_host()?;
    let on_read_step = Arc::clone(on_step);
    source.report_steps(Box::new(move |step| on_read_step(step.to_string())));
    let snapshot = source.snapshot().map_err(HostError::Unreadable)?;
    // A snapshot does not contain all facts of a Windows host.
    #[cfg(windows)]
    let snapshot = {
        on_step("asking the Host Compute Service for its schema versions".to_owned());
        HostSnapshot { host: win32::host_facts(), ..snapshot }
    };
    Ok(snapshot)
}

/// Adds what NVML reports of the GPUs of this host. If it fails or does not answer, nothing is
/// added, with a warning for each NVIDIA adapter.
#[cfg(windows)]
pub fn add_nvidia(snapshot: &mut HostSnapshot) {
    let adapters = snapshot.adapters.clone();
    let gpus = read_live(move |on_step| {
        on_step("asking NVIDIA's management library".to_owned());
        win32::nvml::gpus(&adapters)
    });
    match gpus {
        Ok(Ok(gpus)) => snapshot.add_nvidia(&gpus),
        Ok(Err(error)) => warn_of_nvml(snapshot, &host::error_chain(&error)),
        Err(error) => warn_of_nvml(snapshot, &host::error_chain(&error)),
    }
}

/// Adds a warning for each GPU or accelerator that only the graphics kernel of this host lists. Adds
/// nothing if it does not answer within 30 seconds.
#[cfg(windows)]
pub fn add_not_listed(snapshot: &mut HostSnapshot) {
    let listed: Vec<_> = snapshot.listed().into_iter().collect();
    let compared = read_live(move |on_step| {
        on_step("listing the adapters of the graphics kernel".to_owned());
        win32::adapters_only_in_kernel(&listed)
    });
    if let Ok(Ok(warnings)) = compared {
        snapshot.warnings.extend(warnings);
    }
}

/// Adds nothing: only Windows has a graphics kernel.
#[cfg(not(windows))]
pub fn add_not_listed(_snapshot: &mut HostSnapshot) {}

#[cfg(any(windows, test))]
fn warn_of_nvml(snapshot: &mut HostSnapshot, error: &str) {
    let is_nvidia =
        |adapter: &&Adapter| adapter.pnp.is_some() && adapter.vendor() == Vendor::Nvidia;
    let warnings = snapshot.adapters.iter().filter(is_nvidia).map(|adapter| AdapterWarning {
        luid: adapter.luid,
        text: format!("the license of its driver is not known: {error}"),
        effect: WarningEffect::Incomplete,
    });
    snapshot.warnings.extend(warnings);
}

/// Adds nothing: NVML is asked only on Windows.
#[cfg(not(windows))]
pub fn add_nvidia(_snapshot: &mut HostSnapshot) {}

/// Reads an inventory. One that is missing or malformed is wrong usage.
pub fn read_inventory(path: &Path) -> Result<HostSnapshot, HostError> {
    Ok(config::inventory::read(path)?)
}

/// Lists the files of every driver store folder that `snapshot` leaves on disk, as the
/// folders of a live host are. A folder that cannot be read, or that is not where Windows
/// keeps driver packages, becomes a warning.
pub fn list_store_files(snapshot: &mut HostSnapshot) {
    list_with(snapshot, &|folder| win32::files::list(Path::new(folder)));
}

/// `list` lists one folder.
fn list_with(
    snapshot: &mut HostSnapshot,
    list: &dyn Fn(&str) -> std::io::Result<BTreeSet<String>>,
) {
    for adapter in &mut snapshot.adapters {
        let Some(store) = &mut adapter.driver_store else { continue };
        if store.files != StoreFiles::OnDisk {
            continue;
        }
        let files = check_store_folder(&store.path, &snapshot.host.system_root)
            .map_err(|error| format!("no file is listed: {error}"))
            .and_then(|()| {
                list(&store.path).map_err(|error| {
                    format!("cannot read the driver store folder {}: {error}", store.path)
                })
            });
        store.files = StoreFiles::Listed(files.unwrap_or_else(|text| {
            let luid = adapter.luid;
            let effect = WarningEffect::Incomplete;
            snapshot.warnings.push(AdapterWarning { luid, text, effect });
            BTreeSet::new()
        }));
    }
}

#[cfg(windows)]
fn this_host() -> Result<Box<dyn AdapterSource>, HostError> {
    let source = win32::HostSource::new().map_err(|error| HostError::Unsupported(error.into()))?;
    Ok(Box::new(source))
}

#[cfg(not(windows))]
fn this_host() -> Result<Box<dyn AdapterSource>, HostError> {
    Err(HostError::NotWindows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    const ONE_GPU: &str = r"
schema: directx-inventory/v1
adapters:
- luid: 7
  attributes: [d3d12-graphics]
  hardware: true
  hardwareId: {vendor: 0x10DE, device: 0x1EB8}
  driverStore: {path: 'C:\store', files: [a.dll]}
";

    #[test]
    fn a_driver_store_folder_on_disk_is_listed_and_an_unreadable_one_becomes_a_warning() {
        let mut snapshot = config::inventory::parse("one-gpu.yaml", ONE_GPU).unwrap();
        let listed = |snapshot: &HostSnapshot| {
            snapshot.adapters[0].driver_store.as_ref().unwrap().files.clone()
        };
        list_store_files(&mut snapshot);
        assert_eq!(listed(&snapshot), StoreFiles::Listed(["a.dll".to_owned()].into()));

        let mut on_disk = |path: &str| {
            let store = snapshot.adapters[0].driver_store.as_mut().unwrap();
            store.path = path.to_owned();
            store.files = StoreFiles::OnDisk;
            list_with(&mut snapshot, &|folder| {
                if folder.ends_with("missing") {
                    return Err(std::io::ErrorKind::NotFound.into());
                }
                Ok(["nvcuda.dll".to_owned()].into())
            });
            (listed(&snapshot), snapshot.warnings.len())
        };
        let store = r"C:\Windows\System32\DriverStore\FileRepository";
        let found = StoreFiles::Listed(["nvcuda.dll".to_owned()].into());
        let none = StoreFiles::Listed(BTreeSet::new());
        assert_eq!(on_disk(&format!("{store}\\nv")), (found, 0));
        assert_eq!(on_disk(&format!("{store}\\missing")), (none.clone(), 1));
        // A folder that is not below a driver store is not read.
        assert_eq!(on_disk(r"\\server\share"), (none, 2));
        assert!(snapshot.warnings[0].text.contains("missing"), "{:?}", snapshot.warnings);
        assert!(snapshot.warnings[1].text.contains("is not below"), "{:?}", snapshot.warnings);
    }

    #[test]
    fn an_nvml_that_does_not_answer_is_a_warning_for_each_nvidia_device() {
        let with_device = |vendor: &str| {
            let device = format!("vendor: {vendor}, device: 1}}\n  pnp: {{id: 'PCI\\1'}}");
            ONE_GPU.replace("vendor: 0x10DE, device: 0x1EB8}", &device)
        };
        for (text, expected) in [
            (with_device("0x10DE"), &[7][..]),
            (with_device("0x1002"), &[]),
            (ONE_GPU.to_owned(), &[]),
        ] {
            let mut snapshot = config::inventory::parse("one-gpu.yaml", text).unwrap();
            warn_of_nvml(&mut snapshot, "no answer");
            let luids: Vec<i64> = snapshot.warnings.iter().map(|warning| warning.luid.0).collect();
            assert_eq!(luids, expected);
        }
    }

    #[test]
    fn a_missing_inventory_is_wrong_usage() {
        let path = Path::new("/no/such/host.yaml");
        for error in [open_host(Some(path)).err(), read_host(Some(path)).err()] {
            let text = format!("{:?}", Failure::from(error.unwrap()));
            assert!(text.contains("status: 2") && text.contains("/no/such/host.yaml"), "{text}");
        }
    }
}
