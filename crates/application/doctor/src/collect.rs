//! Collects the facts of a node: every access of `doctor` to the machine. Whatever cannot be read
//! carries its error and does not prevent the rest from being collected.

#[cfg(any(windows, test))]
mod containerd;
mod device_plugin_dir;
#[cfg(any(windows, test))]
mod nvidia;
#[cfg(any(windows, test))]
mod programs;
#[cfg(any(windows, test))]
#[cfg(windows)]
mod software;

use std::path::Path;

use command_line::{Failure, HostError};
use host::{Cordons, HostFacts, HostSnapshot, LauncherFiles};
use plugin_status::answering_daemons::{Answers, NodeState};
use plugin_status::cordon_file;
use process::event_loop;

use crate::facts::NodeFacts;
use crate::request::Request;

#[cfg(windows)]
pub use software::node_software;

pub(super) fn collect(request: &Request) -> Result<NodeFacts, Failure> {
    let inventory = request.input.inventory.as_deref();
    let (mut snapshot, unread) = match inventory {
        Some(inventory) => (command_line::read_inventory(inventory)?, None),
        None => this_machine(),
    };
    let missing_launcher_files =
        if inventory.is_none() { missing_launcher_files() } else { Vec::new() };
    snapshot.host.launcher = launcher(&missing_launcher_files);
    let configuration = request.configuration();
    let path = request.directory(configuration.as_ref().ok());
    let plugin = path.as_deref().map(plugin_in).transpose()?;
    let directory = match path {
        Some(path) => {
            let read = cordon_file::devices_in(cordon_file::path_in(&path));
            snapshot.cordoned = cordons(read, plugin.as_ref());
            Some(device_plugin_dir::inspect(&path)?)
        }
        None => None,
    };
    let image = request.image_os_version;
    Ok(NodeFacts {
        snapshot,
        unread,
        missing_launcher_files,
        image,
        directory,
        plugin,
        configuration,
    })
}

/// What the plugin with sockets in `directory` answers. A directory that cannot be read is another
/// finding.
fn plugin_in(directory: &Path) -> Result<Answers, Failure> {
    let answers = event_loop::build()?.block_on(Answers::ask(directory, &[]));
    Ok(answers.unwrap_or_default())
}

/// The devices that are out of service, as they were `read`. If a plugin runs, it reports itself
/// whether it can read them, and it may be able to where this account is not.
fn cordons(read: Cordons, plugin: Option<&Answers>) -> Cordons {
    match plugin.map(Answers::node_state) {
        Some(NodeState::Known(_)) => Cordons::Known(read.names().to_vec()),
        _ => read,
    }
}

/// This machine, and why its adapters cannot be read.
fn this_machine() -> (HostSnapshot, Option<HostError>) {
    let (mut snapshot, unread) = match command_line::read_host(None) {
        Ok(mut snapshot) => {
            command_line::add_not_listed(&mut snapshot);
            (snapshot, None)
        }
        Err(error) => (HostSnapshot { host: host_facts(), ..Default::default() }, Some(error)),
    };
    command_line::list_store_files(&mut snapshot);
    command_line::add_nvidia(&mut snapshot);
    #[cfg(windows)]
    {
        snapshot.node = node_software(&snapshot.host, &snapshot.adapters);
    }
    (snapshot, unread)
}

#[cfg(windows)]
fn host_facts() -> HostFacts {
    win32::host_facts()
}

#[cfg(not(windows))]
fn host_facts() -> HostFacts {
    HostFacts::default()
}

/// The files that the best of the folders with `directx-visible` lacks.
fn missing_launcher_files() -> Vec<&'static str> {
    let folders = command_line::launcher_sources().into_iter();
    let missing = folders.map(|folder| command_line::missing_launcher_files(&folder));
    missing.min_by_key(Vec::len).unwrap_or_default()
}

/// The files of `directx-visible` as a plugin on this node would provide them. If it cannot write
/// them, it reports that itself.
fn launcher(missing: &[&'static str]) -> LauncherFiles {
    if missing.is_empty() { LauncherFiles::Simulated } else { LauncherFiles::NotProvided }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::healthy;

    #[test]
    fn files_of_directx_visible_that_are_missing_are_not_provided() {
        assert_eq!(launcher(&[]), LauncherFiles::Simulated);
        assert_eq!(launcher(&["directx-visible.exe"]), LauncherFiles::NotProvided);
    }

    #[test]
    fn a_plugin_that_runs_reports_itself_that_it_does_not_know_the_cordons() {
        let unknown = Cordons::Unknown("cannot read `x`".to_owned());
        for plugin in [None, Some(Answers::default())] {
            assert_eq!(cordons(unknown.clone(), plugin.as_ref()), unknown);
        }
        let running = healthy().plugin;
        assert_eq!(cordons(unknown, running.as_ref()), Cordons::default());
        let known = Cordons::Known(host::DeviceName::list("PCIROOT(0)"));
        assert_eq!(cordons(known.clone(), running.as_ref()), known);
    }
}
