//! The software of this Windows machine.

use std::path::{Path, PathBuf};

use command_line::error_chain;
use host::{
    Adapter, Containerd, HcsFailure, HcsFailureKind, HostFacts, NodeSoftware, Program, Vendor,
    check_store_folder,
};
use win32::ServiceCommand;
use win32::hcs::HcsError;

use super::containerd::disabled_plugins;
use super::nvidia;
use super::programs::find;

/// The folder of RKE2 below the system drive.
const RKE2: &str = r"var\lib\rancher\rke2\bin";

/// Collects the software of this machine, which has these facts and adapters. Runs the
/// programs that it finds, so it takes up to a minute if they do not respond.
#[must_use]
pub fn node_software(host: &HostFacts, adapters: &[Adapter]) -> NodeSoftware {
    NodeSoftware {
        hcs_failure: if host.hcs_schemas.is_empty() { hcs_failure() } else { None },
        containerd: Some(containerd()),
        kubelet: Some(kubelet()),
        nvml: Some(nvidia::nvml(&nvidia_folders(host, adapters))),
    }
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
    let folders = folders(&[
        ("ProgramFiles", "containerd"),
        ("ProgramFiles", r"containerd\bin"),
        ("SystemDrive", RKE2),
    ]);
    let program = find("containerd", service.as_ref(), &folders);
    let config = service.as_ref().and_then(|line| line.option(&["config", "c"]));
    let disabled_plugins = match &program {
        Program::Found { path, version: Ok(_) } => disabled_plugins(Path::new(path), config),
        Program::Found { .. } | Program::NotFound(_) => None,
    };
    Containerd { program, disabled_plugins }
}

fn kubelet() -> Program {
    let folders =
        folders(&[("SystemDrive", "k"), ("ProgramFiles", "Kubernetes"), ("SystemDrive", RKE2)]);
    find("kubelet", service("kubelet").as_ref(), &folders)
}

/// The command line of a service; `None` where it cannot be read or there is no such service.
fn service(name: &str) -> Option<ServiceCommand> {
    win32::service_command(name).ok().flatten()
}

/// Folders below those that environment variables name. `%SystemDrive%` is a drive without a
/// trailing backslash.
fn folders(places: &[(&str, &str)]) -> Vec<PathBuf> {
    places
        .iter()
        .filter_map(|(variable, below)| {
            let mut path = std::env::var_os(variable)?;
            path.push("\\");
            path.push(below);
            Some(PathBuf::from(path))
        })
        .collect()
}

/// Where NVIDIA's drivers install their library ("NVML API Reference", and the driver store
/// folder of each device).
fn nvidia_folders(host: &HostFacts, adapters: &[Adapter]) -> Vec<PathBuf> {
    let documented = folders(&[
        ("SystemRoot", "System32"),
        ("ProgramW6432", r"NVIDIA Corporation\NVSMI"),
        ("ProgramFiles", r"NVIDIA Corporation\NVSMI"),
    ]);
    let nvidia = adapters.iter().filter(|a| a.vendor() == Vendor::Nvidia);
    // A program is run only from where Windows keeps driver packages.
    let stores = nvidia
        .filter_map(|adapter| Some(&adapter.driver_store.as_ref()?.path))
        .filter(|path| check_store_folder(path, &host.system_root).is_ok());
    documented.into_iter().chain(stores.map(PathBuf::from)).collect()
}
