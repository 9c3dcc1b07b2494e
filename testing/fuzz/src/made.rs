//! Surroundings and hosts that are made up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use devices::{Catalog, DriverModel, HostSnapshot};
use settings::{Config, Flags, SettingsError, Surroundings};

/// Variables, and the bytes of the one file `c.yaml`.
#[derive(Default)]
pub struct Made<'a> {
    /// Variables by name.
    pub variables: BTreeMap<String, OsString>,
    /// What is in the file.
    pub file: &'a [u8],
}

impl Surroundings for Made<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
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
/// What the settings find wrong with it.
pub fn configured(models: &[DriverModel], made: &Made<'_>) -> Result<Config, SettingsError> {
    let config = Some("c.yaml".into());
    settings::load(&Flags { driver_models: models.to_vec(), config, ..Flags::default() }, made)
}

/// The catalog of a configuration file that is known to be right.
///
/// # Panics
/// It is not right.
#[must_use]
pub fn catalog(models: &[DriverModel], file: &str) -> Catalog {
    let made = Made { file: file.as_bytes(), ..Made::default() };
    Catalog::new(configured(models, &made).expect("the configuration is right").policy)
}

/// A recorded host with two GPUs.
///
/// # Panics
/// The fixture cannot be read.
#[must_use]
pub fn fixture() -> HostSnapshot {
    let text = include_str!("../../../fixtures/inventories/aws-t4-two.yaml");
    inventory::parse("aws-t4-two.yaml", text).expect("the fixture is an inventory")
}
