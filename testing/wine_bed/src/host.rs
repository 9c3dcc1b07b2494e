//! The host's product and version, where Windows keeps them.
//!
//! Wine takes the build number that programs see from the same registry key, as
//! long as no version is configured for the prefix.

use anyhow::Result;
use devices::{HostBuild, HostFacts};
use windows_registry::{Key, LOCAL_MACHINE};

use crate::ledger::Ledger;

const CURRENT_VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// The first build with a `DisplayVersion` (20H2); older ones have `ReleaseId` only.
const FIRST_WITH_DISPLAY_VERSION: u32 = 19042;

/// The values that are set here.
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

/// Sets what `facts` knows; what it does not know is as Wine had it, but that text
/// values are not there.
pub(crate) fn set(ledger: &mut Ledger, facts: &HostFacts) -> Result<()> {
    let key = LOCAL_MACHINE.create(CURRENT_VERSION)?;
    if ledger.before().is_none() {
        copy(&key, &ledger.create_before()?)?;
    }
    restore(ledger)?;
    for name in ["ProductName", "DisplayVersion", "ReleaseId", "UBR"] {
        // An error says that there is none, as wanted.
        let _ = key.remove_value(name);
    }
    if let Some(product) = &facts.product {
        // Windows keeps the name without its maker.
        key.set_string("ProductName", product.strip_prefix("Microsoft ").unwrap_or(product))?;
    }
    if let Some(version) = &facts.display_version {
        let new = facts.build.is_none_or(|b| b.build >= FIRST_WITH_DISPLAY_VERSION);
        key.set_string(if new { "DisplayVersion" } else { "ReleaseId" }, version)?;
    }
    facts.build.map_or(Ok(()), |build| set_build(&key, build))
}

/// Gives the host back what it had before the first [`set`].
pub(crate) fn restore(ledger: &Ledger) -> Result<()> {
    let Some(before) = ledger.before() else { return Ok(()) };
    copy(&before, &LOCAL_MACHINE.create(CURRENT_VERSION)?)
}

fn set_build(key: &Key, build: HostBuild) -> Result<()> {
    key.set_u32("CurrentMajorVersionNumber", build.major)?;
    key.set_u32("CurrentMinorVersionNumber", build.minor)?;
    key.set_string("CurrentBuild", build.build.to_string())?;
    key.set_string("CurrentBuildNumber", build.build.to_string())?;
    key.set_u32("UBR", build.revision)?;
    Ok(())
}

/// Makes the named values of `to` those of `from`.
fn copy(from: &Key, to: &Key) -> Result<()> {
    for name in NAMES {
        match from.get_value(name) {
            Ok(value) => to.set_value(name, &value)?,
            // An error says that there is none, as wanted.
            Err(_) => drop(to.remove_value(name)),
        }
    }
    Ok(())
}
