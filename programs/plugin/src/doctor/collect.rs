//! Collects the facts of a node: every access of `doctor` to the machine. Whatever cannot be read
//! carries its error and does not prevent the rest from being collected.

#[cfg(any(windows, test))]
mod containerd;
mod device_plugin_dir;
#[cfg(windows)]
mod live;
#[cfg(any(windows, test))]
mod nvidia;
#[cfg(any(windows, test))]
mod programs;
#[cfg(any(windows, test))]
mod service_command;

use std::path::Path;

#[cfg(not(windows))]
use devices::{HostFacts, NodeSoftware, Platform};
use node::cli::Failure;

use super::facts::{MachineFacts, NodeFacts};
use crate::doctor::request::Request;

#[cfg(windows)]
pub(crate) use live::node_software;

/// Collects everything.
pub(super) fn collect(request: &Request) -> Result<NodeFacts, Failure> {
    let machine = match request.input.inventory.as_deref() {
        Some(inventory) => from_inventory(inventory)?,
        None => this_machine()?,
    };
    let configuration = request.configuration();
    let directory = request.directory(configuration.as_ref().ok());
    let directory = directory.map(|path| device_plugin_dir::inspect(&path)).transpose()?;
    Ok(NodeFacts { machine, image: request.image_os_version, directory, configuration })
}

/// The machine of an inventory. One that cannot be read is wrong usage.
fn from_inventory(inventory: &Path) -> Result<MachineFacts, Failure> {
    let snapshot = node::cli::read_inventory(inventory)?;
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

/// This machine. Without a device file, the error is that of every command.
#[cfg(not(windows))]
fn this_machine() -> Result<MachineFacts, Failure> {
    node::cli::open_host(None)?;
    let mut adapters = node::cli::read_host(None);
    if let Ok(snapshot) = &mut adapters {
        node::cli::list_store_files(snapshot);
    }
    let unread = HostFacts { platform: Platform::LinuxDxg, ..HostFacts::default() };
    Ok(MachineFacts {
        host: adapters.as_ref().map_or(unread, |snapshot| snapshot.host.clone()),
        software: NodeSoftware::default(),
        adapters,
        missing_launcher_files: Vec::new(),
    })
}
