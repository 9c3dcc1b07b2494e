//! Creates driver keys with their `CopyToVm*` values, and driver store folders with files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use host::{Adapter, CopyToVmValue, DriverStore, StoreFiles};
use windows_registry::{Key, LOCAL_MACHINE};

/// The registry key that contains the driver keys.
pub(crate) const CLASS: &str = r"SYSTEM\CurrentControlSet\Control\Class";

/// Creates the adapter's driver key and driver store folder.
pub(crate) fn create(adapter: &Adapter) -> Result<()> {
    let store = adapter.driver_store.as_ref();
    if let Some(key) = adapter.pnp.as_ref().and_then(|pnp| pnp.driver_key.as_ref()) {
        let driver = LOCAL_MACHINE.create(format!("{CLASS}\\{key}"))?;
        driver.set_string("DriverDesc", &adapter.driver_description)?;
        if let Some(store) = store {
            // The value leads to the driver store folder on hosts whose graphics kernel does not
            // report it.
            let driver_path = format!("{}\\bed_umd64.dll", store.path);
            driver.set_multi_string("UserModeDriverName", &[&driver_path, "bed_umd32.dll"])?;
            create_copy_to_vm(&driver, store)?;
        }
    }
    store.map_or(Ok(()), create_folder)
}

/// Removes a driver key; one that does not exist is not an error.
pub(crate) fn remove_key(key: &str) -> Result<()> {
    let path = format!("{CLASS}\\{key}");
    if LOCAL_MACHINE.open(&path).is_ok() {
        LOCAL_MACHINE.remove_tree(&path)?;
    }
    Ok(())
}

/// Removes a folder; one that does not exist is not an error.
pub(crate) fn remove_folder(folder: &str) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn create_copy_to_vm(driver: &Key, store: &DriverStore) -> Result<()> {
    for (name, values) in &store.copy_to_vm {
        let key = driver.create(name.to_string())?;
        for (name, value) in values {
            match value {
                CopyToVmValue::Single(text) => key.set_string(name, text)?,
                CopyToVmValue::Multi(texts) => {
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    key.set_multi_string(name.as_str(), &texts)?;
                }
            }
        }
    }
    Ok(())
}

/// Creates the folder and the files that the inventory lists. If the inventory lists no
/// files, creates the files that its registry values name.
fn create_folder(store: &DriverStore) -> Result<()> {
    fs::create_dir_all(&store.path)?;
    let files: BTreeSet<&str> = match &store.files {
        StoreFiles::Listed(files) => files.iter().map(String::as_str).collect(),
        StoreFiles::EveryNamed | StoreFiles::OnDisk => named(store).collect(),
    };
    for file in files {
        let path = Path::new(&store.path).join(file);
        let folder = path.parent().context("the file has no parent folder")?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, file))
            .with_context(|| format!("cannot create {}", path.display()))?;
    }
    Ok(())
}

fn named(store: &DriverStore) -> impl Iterator<Item = &str> {
    store.copy_to_vm.values().flat_map(|values| values.values()).filter_map(|value| match value {
        CopyToVmValue::Single(text) => Some(text.as_str()),
        CopyToVmValue::Multi(texts) => texts.first().map(String::as_str),
    })
}
