//! This Windows machine.

use std::path::{Path, PathBuf};

use devices::{AdapterSource as _, HostSnapshot, PnpId, Vendor};
use win32::DriverDate;
use win32::hcs::HcsError;

use super::command_line::CommandLine;
use super::containerd::disabled_plugins;
use super::programs::Places;
use super::{complaint, in_words, nvidia};
use crate::doctor::observed::{Complaint, Containerd, Hcs, Machine, Program, Seen};
use crate::source;

/// Everything of this machine.
pub(super) fn machine() -> Machine {
    let adapters = adapters();
    Machine {
        host: win32::host_facts(),
        hcs: hcs(),
        containerd: Seen::Looked(containerd()),
        kubelet: Seen::Looked(kubelet()),
        driver_dates: driver_dates(),
        nvml: Seen::Looked(nvidia::nvml(&nvidia_folders(adapters.as_ref().ok()))),
        adapters,
    }
}

fn adapters() -> Result<HostSnapshot, Complaint> {
    let mut source = win32::HostSource::new().map_err(|error| complaint(&error, None))?;
    let mut snapshot = source.snapshot().map_err(|error| complaint(&*error, None))?;
    source::list_store_files(&mut snapshot);
    Ok(snapshot)
}

fn hcs() -> Hcs {
    match win32::hcs::schemas() {
        Ok(schemas) => Hcs::Schemas(schemas),
        Err(error @ HcsError::Missing(_)) => Hcs::Missing(in_words(&error)),
        Err(error) => Hcs::Silent(in_words(&error)),
    }
}

fn driver_dates() -> Vec<(PnpId, DriverDate)> {
    win32::driver_dates().unwrap_or_else(|error| {
        tracing::debug!(%error, "the dates of drivers cannot be read");
        Vec::new()
    })
}

fn containerd() -> Containerd {
    let service = service("containerd");
    let program = places(
        ("containerd.exe", "containerd"),
        service.as_ref(),
        &[
            ("ProgramFiles", "containerd"),
            ("ProgramFiles", r"containerd\bin"),
            ("SystemDrive", r"\var\lib\rancher\rke2\bin"),
        ],
    )
    .program();
    let config = service.as_ref().and_then(|line| line.option(&["--config", "-c"]));
    let disabled = match &program {
        Program::Found { path, version: Ok(_) } => disabled_plugins(Path::new(path), config),
        Program::Found { .. } | Program::NotFound(_) => None,
    };
    Containerd { program, disabled }
}

fn kubelet() -> Program {
    places(
        ("kubelet.exe", "kubelet"),
        service("kubelet").as_ref(),
        &[
            ("SystemDrive", r"\k"),
            ("ProgramFiles", "Kubernetes"),
            ("SystemDrive", r"\var\lib\rancher\rke2\bin"),
        ],
    )
    .program()
}

/// The command line of a service.
fn service(name: &str) -> Option<CommandLine> {
    let line = win32::service_command(name).unwrap_or_else(|error| {
        tracing::debug!(%error, service = name, "a service's entry cannot be read");
        None
    })?;
    Some(CommandLine::read(&line, &|variable| std::env::var(variable).ok()))
}

fn places<'a>(
    (file, name): (&'a str, &'a str),
    service: Option<&CommandLine>,
    folders: &[(&str, &str)],
) -> Places<'a> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Places {
        file,
        service: (name, service.map(|line| PathBuf::from(&line.program))),
        folders: folders.iter().filter_map(|(variable, below)| folder(variable, below)).collect(),
        path: std::env::split_paths(&path).collect(),
    }
}

/// A folder below the one that an environment variable names; `%SystemDrive%` is a
/// drive without a backslash after it.
fn folder(variable: &str, below: &str) -> Option<PathBuf> {
    let mut path = std::env::var_os(variable)?;
    if !below.starts_with('\\') {
        path.push("\\");
    }
    path.push(below);
    Some(PathBuf::from(path))
}

/// Where NVIDIA's drivers put their library ("NVML API Reference", and the driver store
/// folder of each device).
fn nvidia_folders(snapshot: Option<&HostSnapshot>) -> Vec<PathBuf> {
    let usual = [
        folder("SystemRoot", "System32"),
        folder("ProgramW6432", r"NVIDIA Corporation\NVSMI"),
        folder("ProgramFiles", r"NVIDIA Corporation\NVSMI"),
    ];
    let adapters = snapshot.map(|snapshot| snapshot.adapters.as_slice()).unwrap_or_default();
    let nvidia =
        adapters.iter().filter(|a| Vendor::from_id(a.hardware_id.vendor) == Vendor::Nvidia);
    let stores =
        nvidia.filter_map(|adapter| Some(PathBuf::from(&adapter.driver_store.as_ref()?.path)));
    usual.into_iter().flatten().chain(stores).collect()
}
