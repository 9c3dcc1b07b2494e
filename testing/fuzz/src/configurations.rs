//! Configuration files and environment variables.
//!
//! The input is a file and, after null characters, variables as `NAME=VALUE`. What is
//! accepted gives every device of a host exactly one resource, and what is refused is
//! refused with a place in the file or the name of the variable.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use config::{Config, ConfigError};
use devices::{Catalog, DriverModel};
use host::HostSnapshot;

use crate::{TestEnvironment, load_config};

static HOST: LazyLock<HostSnapshot> = LazyLock::new(crate::fixture);

/// Checks one input.
pub fn check(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    let file = parts.next().unwrap_or_default();
    let variables = parts.filter_map(|part| {
        let (name, value) = std::str::from_utf8(part).ok()?.split_once('=')?;
        Some((name.to_owned(), value.into()))
    });
    let made = TestEnvironment { variables: variables.collect(), file };
    for models in [&[][..], &[DriverModel::Mcdm], &[DriverModel::Legacy]] {
        match load_config(models, &made) {
            Ok(config) => usable(config),
            Err(error) => sensible(&error, file),
        }
    }
}

fn usable(config: Config) {
    assert!(config.models.iter().all(|model| !model.to_string().is_empty()));
    let catalog = Catalog::new(config.policy);
    let names: BTreeSet<&str> = catalog.resources().iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names.len(), catalog.resources().len(), "two resources have one name");
    assert!(names.iter().all(|name| device_plugin::is_extended_resource_name(name)));
    let offer = catalog.offer(&HOST);
    let offered: usize = offer.resources.iter().map(|resource| resource.devices.len()).sum();
    assert_eq!(offered + offer.not_advertised.len(), HOST.adapters.len());
}

fn sensible(error: &ConfigError, file: &[u8]) {
    match error {
        ConfigError::Content(error) => crate::sensible(error, "c.yaml", file),
        ConfigError::Variable { name, what, hint, .. } => {
            assert!(!name.is_empty() && !what.is_empty() && !hint.is_empty());
        }
        ConfigError::File { .. } => panic!("the file exists: {error}"),
        ConfigError::Conflict { what, .. } => assert!(!what.is_empty()),
    }
}
