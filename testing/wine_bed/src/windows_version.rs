//! The host's product and version, and whether it is a container, where Windows keeps them.
//!
//! Wine reports the build number from the same registry key to programs, as long as no
//! version is configured for the prefix.

use anyhow::Result;
use host::{HostBuild, HostFacts};
use windows_registry::{Key, LOCAL_MACHINE};

use crate::record::Record;

const CURRENT_VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// The key with the value that only containers have.
const CONTROL: &str = r"SYSTEM\CurrentControlSet\Control";
const CONTAINER_TYPE: &str = "ContainerType";

/// The first build with a `DisplayVersion` (20H2); older ones have `ReleaseId` only.
const FIRST_WITH_DISPLAY_VERSION: u32 = 19042;

/// The registry values that this module sets.
const NAMES: [&str; 8] = [
    "ProductName",
    "DisplayVersion",
    "ReleaseId",
    "CurrentMajorVersionNumber",
    "CurrentMinorVersionNumber",
    "CurrentBuild",
    "CurrentBuildNumber",
    "UBR",
];

/// Sets the values that `facts` contains. For the others, text values are removed and
/// numbers keep Wine's value.
pub(crate) fn set(record: &mut Record, facts: &HostFacts) -> Result<()> {
    let key = LOCAL_MACHINE.create(CURRENT_VERSION)?;
    if record.original_values().is_none() {
        copy(&key, &record.create_original_values()?)?;
    }
    restore(record)?;
    for name in ["ProductName", "DisplayVersion", "ReleaseId", "UBR"] {
        // An error means that the value does not exist, which is the wanted state.
        let _ = key.remove_value(name);
    }
    if let Some(product) = &facts.product {
        // Windows stores the name without its manufacturer.
        key.set_string("ProductName", product.strip_prefix("Microsoft ").unwrap_or(product))?;
    }
    if let Some(version) = &facts.display_version {
        let new = facts.build.is_none_or(|b| b.build >= FIRST_WITH_DISPLAY_VERSION);
        key.set_string(if new { "DisplayVersion" } else { "ReleaseId" }, version)?;
    }
    if facts.inside_container {
        LOCAL_MACHINE.create(CONTROL)?.set_u32(CONTAINER_TYPE, 2)?;
    }
    facts.build.map_or(Ok(()), |build| set_build(&key, build))
}

/// Restores the values that the prefix had before the first [`set`].
pub(crate) fn restore(record: &Record) -> Result<()> {
    // An error means that the value does not exist, which is the wanted state.
    let _ = LOCAL_MACHINE.create(CONTROL)?.remove_value(CONTAINER_TYPE);
    let Some(original) = record.original_values() else { return Ok(()) };
    copy(&original, &LOCAL_MACHINE.create(CURRENT_VERSION)?)
}

fn set_build(key: &Key, build: HostBuild) -> Result<()> {
    key.set_u32("CurrentMajorVersionNumber", build.major)?;
    key.set_u32("CurrentMinorVersionNumber", build.minor)?;
    key.set_string("CurrentBuild", build.build.to_string())?;
    key.set_string("CurrentBuildNumber", build.build.to_string())?;
    key.set_u32("UBR", build.revision)?;
    Ok(())
}

/// Copies the values in [`NAMES`] from one key to another, and removes missing ones.
fn copy(from: &Key, to: &Key) -> Result<()> {
    for name in NAMES {
        match from.get_value(name) {
            Ok(value) => to.set_value(name, &value)?,
            // An error means that the value does not exist, which is the wanted state.
            Err(_) => drop(to.remove_value(name)),
        }
    }
    Ok(())
}
