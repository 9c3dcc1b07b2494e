//! This Windows machine.

use std::path::{Path, PathBuf};

use devices::{
    Adapter, Containerd, HcsFailure, HcsFailureKind, HostFacts, HostSnapshot, NodeSoftware,
    Program, Vendor, check_store_folder,
};
use node::cli::{Failure, error_chain};
use win32::hcs::HcsError;

use super::containerd::disabled_plugins;
use super::nvidia;
use super::programs::ProgramSearch;
use super::service_command::ServiceCommand;
use crate::doctor::facts::MachineFacts;

/// Collects the facts of this machine.
pub(super) fn machine() -> MachineFacts {
    let adapters = adapters();
    let read = adapters.as_ref().ok();
    let host = read.map_or_else(win32::host_facts, |snapshot| snapshot.host.clone());
    let listed = read.map(|snapshot| snapshot.adapters.as_slice());
    let software = node_software(&host, listed.unwrap_or_default());
    // Of the folder that lacks the fewest.
    let sources = node::cli::launcher_sources();
    let missing = sources.iter().map(|folder| node::cli::missing_launcher_files(folder));
    let missing_launcher_files = missing.min_by_key(Vec::len).unwrap_or_default();
    MachineFacts { host, software, adapters, missing_launcher_files }
}

/// Collects the software of this machine, which has these facts and adapters. Runs the
/// programs that it finds, so it takes up to a minute if they do not respond.
#[must_use]
pub(crate) fn node_software(host: &HostFacts, adapters: &[Adapter]) -> NodeSoftware {
    NodeSoftware {
        hcs_failure: if host.hcs_schemas.is_empty() { hcs_failure() } else { None },
        containerd: Some(containerd()),
        kubelet: Some(kubelet()),
        nvml: Some(nvidia::nvml(&nvidia_folders(host, adapters))),
    }
}

fn adapters() -> Result<HostSnapshot, Failure> {
    let mut snapshot = node::cli::read_host(None)?;
    node::cli::list_store_files(&mut snapshot);
    Ok(snapshot)
}

/// Why the Host Compute Service reports no schemas.
fn hcs_failure() -> Option<HcsFailure> {
    let error = win32::hcs::schemas().err()?;
    let kind = match error {
        HcsError::Missing(_) => HcsFailureKind::Missing,
        _ => HcsFailureKind::Unresponsive,
    };
    Some(HcsFailure { kind, message: error_chain(&error) })
}

fn containerd() -> Containerd {
    let service = service("containerd");
    let program = search(
        ("containerd.exe", "containerd"),
        service.as_ref(),
        &[
            ("ProgramFiles", "containerd"),
            ("ProgramFiles", r"containerd\bin"),
            ("SystemDrive", r"\var\lib\rancher\rke2\bin"),
        ],
    )
    .find();
    let config = service.as_ref().and_then(|line| line.option(&["--config", "-c"]));
    let disabled_plugins = match &program {
        Program::Found { path, version: Ok(_) } => disabled_plugins(Path::new(path), config),
        Program::Found { .. } | Program::NotFound(_) => None,
    };
    Containerd { program, disabled_plugins }
}

fn kubelet() -> Program {
    search(
        ("kubelet.exe", "kubelet"),
        service("kubelet").as_ref(),
        &[
            ("SystemDrive", r"\k"),
            ("ProgramFiles", "Kubernetes"),
            ("SystemDrive", r"\var\lib\rancher\rke2\bin"),
        ],
    )
    .find()
}

/// The command line of a service; `None` where there is no such service.
fn service(name: &str) -> Option<ServiceCommand> {
    let line = win32::service_command(name).unwrap_or_else(|error| {
        tracing::debug!(%error, service = name, "cannot read the command line of a service");
        None
    })?;
    Some(ServiceCommand::parse(&line))
}

fn search<'a>(
    (file, name): (&'a str, &'a str),
    service: Option<&ServiceCommand>,
    folders: &[(&str, &str)],
) -> ProgramSearch<'a> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    ProgramSearch {
        file,
        service: (name, service.map(|line| PathBuf::from(&line.program))),
        folders: folders.iter().filter_map(|(variable, below)| folder(variable, below)).collect(),
        path: std::env::split_paths(&path).collect(),
    }
}

/// A folder below the one that an environment variable names. `%SystemDrive%` is a
/// drive without a trailing backslash.
fn folder(variable: &str, below: &str) -> Option<PathBuf> {
    let mut path = std::env::var_os(variable)?;
    if !below.starts_with('\\') {
        path.push("\\");
    }
    path.push(below);
    Some(PathBuf::from(path))
}

/// Where NVIDIA's drivers install their library ("NVML API Reference", and the driver store
/// folder of each device).
fn nvidia_folders(host: &HostFacts, adapters: &[Adapter]) -> Vec<PathBuf> {
    let documented = [
        folder("SystemRoot", "System32"),
        folder("ProgramW6432", r"NVIDIA Corporation\NVSMI"),
        folder("ProgramFiles", r"NVIDIA Corporation\NVSMI"),
    ];
    let nvidia =
        adapters.iter().filter(|a| Vendor::from_id(a.hardware_id.vendor) == Vendor::Nvidia);
    // A program is run only from where Windows keeps driver packages.
    let stores = nvidia
        .filter_map(|adapter| Some(&adapter.driver_store.as_ref()?.path))
        .filter(|path| check_store_folder(path, &host.system_root).is_ok());
    documented.into_iter().flatten().chain(stores.map(PathBuf::from)).collect()
}
