//! An environment in memory, and configurations and hosts for tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, Environment, Flags};
use devices::{Catalog, DriverModel};
use host::HostSnapshot;

/// Environment variables, and the content of the only file, `c.yaml`.
#[derive(Default)]
pub(crate) struct TestEnvironment<'a> {
    /// Variables by name.
    pub(crate) variables: BTreeMap<String, OsString>,
    /// The content of the file.
    pub(crate) file: &'a [u8],
}

impl Environment for TestEnvironment<'_> {
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

/// Loads the configuration for `models` from `environment`, with its file as `--config`.
pub(crate) fn load_config(
    models: &[DriverModel],
    environment: &TestEnvironment<'_>,
) -> Result<Config, ConfigError> {
    let config = Some("c.yaml".into());
    config::load(&Flags { driver_models: models.to_vec(), config, ..Flags::default() }, environment)
}

/// The catalog of a valid configuration file.
pub(crate) fn catalog(models: &[DriverModel], file: &str) -> Catalog {
    let environment = TestEnvironment { file: file.as_bytes(), ..TestEnvironment::default() };
    Catalog::new(load_config(models, &environment).expect("the configuration is valid").policy)
}

/// A host with two GPUs, from an inventory.
pub(crate) fn fixture() -> HostSnapshot {
    let text = include_str!("../../../fixtures/inventories/aws-t4-two.yaml");
    config::inventory::parse("aws-t4-two.yaml", text).expect("the inventory is valid")
}
