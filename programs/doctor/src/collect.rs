//! Collects the facts of a node: every access of the doctor to the machine.
//!
//! In comes the [`Request`]; out go [`NodeFacts`]. Whatever cannot be read carries its
//! error and does not prevent the rest from being collected.

#[cfg(any(windows, test))]
mod containerd;
mod device_plugin_dir;
#[cfg(any(windows, test))]
mod launcher_files;
#[cfg(windows)]
mod live;
#[cfg(any(windows, test))]
mod nvidia;
#[cfg(any(windows, test))]
mod programs;
#[cfg(any(windows, test))]
mod service_command;

use std::path::{Path, PathBuf};

use cli::Failure;
use kubelet::default_device_plugin_dir;
use settings::Origin;

use super::facts::{CollectError, Configuration, MachineFacts, NodeFacts};
use crate::request::Request;

#[cfg(windows)]
pub use live::node_software;

/// Collects everything.
pub(super) fn collect(request: &Request) -> Result<NodeFacts, Failure> {
    let machine = match request.inventory.as_deref() {
        Some(inventory) => from_inventory(inventory)?,
        None => this_machine()?,
    };
    let (configuration, directory) = configuration(request);
    let directory = match directory {
        // An inventory has no kubelet, unless the request names a directory of this machine.
        None if request.inventory.is_some() => None,
        configured => {
            let path = configured.unwrap_or_else(default_device_plugin_dir);
            Some(device_plugin_dir::inspect(&path)?)
        }
    };
    Ok(NodeFacts { machine, image: request.image_os_version, directory, configuration })
}

/// The machine of an inventory. One that cannot be read is wrong usage.
fn from_inventory(inventory: &Path) -> Result<MachineFacts, Failure> {
    let snapshot = cli::read_inventory(inventory)?;
    Ok(MachineFacts {
        host: snapshot.host.clone(),
        software: snapshot.node.clone(),
        adapters: Ok(snapshot),
        missing_launcher_files: Vec::new(),
    })
}

/// This machine. Adapters that cannot be read are a finding and not a failure.
#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "on other systems this is an error")]
fn this_machine() -> Result<MachineFacts, Failure> {
    Ok(live::machine())
}

/// Only Windows can be checked without an inventory; the error is that of every command.
#[cfg(not(windows))]
fn this_machine() -> Result<MachineFacts, Failure> {
    cli::open_host(None).map(|_| unreachable!("only Windows has adapters of its own"))
}

/// The configuration that `serve` would run with, and the directory it names.
fn configuration(request: &Request) -> (Result<Configuration, CollectError>, Option<PathBuf>) {
    let flags = settings::Flags {
        driver_models: request.driver_models.clone(),
        config: request.config.clone(),
        device_plugin_dir: request.device_plugin_dir.clone(),
    };
    let config = match settings::load(&flags, &settings::ProcessEnvironment) {
        Ok(config) => config,
        Err(error) => {
            let error = CollectError::new(&error, error.hint());
            return (Err(error), flags.device_plugin_dir);
        }
    };
    let explicit = config.effective.iter().filter(|value| value.origin != Origin::Default);
    let configuration = Configuration {
        policy: config.policy,
        explicit_values: explicit.map(ToString::to_string).collect(),
        notices: config.notices,
    };
    (Ok(configuration), config.device_plugin_dir)
}
