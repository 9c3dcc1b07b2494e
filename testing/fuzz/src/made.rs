//! Environments and hosts for the targets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use devices::{Catalog, DriverModel, HostSnapshot};
use settings::{Config, Environment, Flags, SettingsError};

/// Variables, and the bytes of the one file `c.yaml`.
#[derive(Default)]
pub struct Made<'a> {
    /// Variables by name.
    pub variables: BTreeMap<String, OsString>,
    /// The content of the file.
    pub file: &'a [u8],
}

impl Environment for Made<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn variable_names(&self) -> Vec<String> {
        self.variables.keys().cloned().collect()
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        Ok("/".into())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new("c.yaml") {
            return Ok(self.file.to_vec());
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The configuration that `made` gives for `models`, with its file as `--config`.
///
/// # Errors
/// The configuration is not valid.
pub fn configured(models: &[DriverModel], made: &Made<'_>) -> Result<Config, SettingsError> {
    let config = Some("c.yaml".into());
    settings::load(&Flags { driver_models: models.to_vec(), config, ..Flags::default() }, made)
}

/// The catalog of a valid configuration file.
///
/// # Panics
/// The file is not valid.
#[must_use]
pub fn catalog(models: &[DriverModel], file: &str) -> Catalog {
    let made = Made { file: file.as_bytes(), ..Made::default() };
    Catalog::new(configured(models, &made).expect("the configuration is valid").policy)
}

/// The inventory of a host with two GPUs.
///
/// # Panics
/// The fixture cannot be read.
#[must_use]
pub fn fixture() -> HostSnapshot {
    let text = include_str!("../../../fixtures/inventories/aws-t4-two.yaml");
    inventory::parse("aws-t4-two.yaml", text).expect("the fixture is an inventory")
}
