//! The key `node` of an inventory into the software of a node.
//!
//! Some keys exclude each other, so after serde this checks which of them a section has.

use devices::{Containerd, HcsFailure, HostFacts, NodeSoftware, NvidiaGpu, Nvml, Program};
use serde_saphyr::Spanned;

use crate::inventory::format::{HcsErrorFile, NodeFile, NvidiaGpuFile, NvmlFile, ProgramFile};
use crate::{Place, ReadError};

/// Converts the section of the inventory `name`, which also contains `host`.
pub(super) fn software(
    name: &str,
    file: NodeFile,
    host: &HostFacts,
) -> Result<NodeSoftware, ReadError> {
    Ok(NodeSoftware {
        hcs_failure: file.hcs_error.map(|error| hcs_failure(name, error, host)).transpose()?,
        containerd: file.containerd.map(|file| containerd(name, file)).transpose()?,
        kubelet: file.kubelet.map(|file| kubelet(name, file)).transpose()?,
        nvml: file.nvml.map(|file| nvml(name, file)).transpose()?,
    })
}

fn hcs_failure(
    name: &str,
    file: Spanned<HcsErrorFile>,
    host: &HostFacts,
) -> Result<HcsFailure, ReadError> {
    if !host.hcs_schemas.is_empty() {
        return Err(Place::of(name, &file, "node.hcsError")
            .error("`hcsError` contradicts `host.hcsSchemas`")
            .with_hint("remove one of the two keys"));
    }
    let HcsErrorFile { kind, message } = file.value;
    Ok(HcsFailure { kind: kind.0.0, message })
}

fn containerd(name: &str, file: Spanned<ProgramFile>) -> Result<Containerd, ReadError> {
    let place = Place::of(name, &file, "node.containerd");
    let mut file = file.value;
    let disabled_plugins = file.disabled_plugins.take().map(|plugins| plugins.0);
    match program(file, &place)? {
        Program::NotFound(_) if disabled_plugins.is_some() => {
            Err(needs_path(&place, "disabledPlugins"))
        }
        program => Ok(Containerd { program, disabled_plugins }),
    }
}

fn kubelet(name: &str, file: Spanned<ProgramFile>) -> Result<Program, ReadError> {
    let place = Place::of(name, &file, "node.kubelet");
    match file.value.disabled_plugins {
        Some(_) => Err(place.error("unknown key `disabledPlugins`, which only containerd has")),
        None => program(file.value, &place),
    }
}

fn program(file: ProgramFile, place: &Place) -> Result<Program, ReadError> {
    let version = file.version.map(|version| version.0);
    let version = one_of(place, ("version", version), ("versionError", file.version_error))?;
    let path = file.path.map(|path| path.0);
    match one_of(place, ("path", path), ("notFoundIn", file.not_found_in))? {
        None => Err(neither(place, "path", "notFoundIn")),
        Some(Ok(path)) => match version {
            None => Err(neither(place, "version", "versionError")),
            Some(version) => Ok(Program::Found { path, version }),
        },
        Some(Err(places)) => match version {
            Some(Ok(_)) => Err(needs_path(place, "version")),
            Some(Err(_)) => Err(needs_path(place, "versionError")),
            None if places.is_empty() => {
                Err(place.error("`notFoundIn` requires at least one place"))
            }
            None => Ok(Program::NotFound(places)),
        },
    }
}

fn nvml(name: &str, file: Spanned<NvmlFile>) -> Result<Nvml, ReadError> {
    let place = Place::of(name, &file, "node.nvml");
    let NvmlFile { library, gpus, gpus_error } = file.value;
    let gpus = gpus.map(|gpus| gpus.into_iter().map(gpu).collect());
    Ok(Nvml {
        library: library.map(|path| path.0),
        gpus: one_of(&place, ("gpus", gpus), ("gpusError", gpus_error))?
            .ok_or_else(|| neither(&place, "gpus", "gpusError"))?,
    })
}

fn gpu(file: NvidiaGpuFile) -> NvidiaGpu {
    let NvidiaGpuFile { index, name, driver_version, driver_model } = file;
    NvidiaGpu { index, name, driver_version, driver_model }
}

/// The value of a key, or else that of another key, which excludes it.
fn one_of<T, E>(
    place: &Place,
    (key, value): (&str, Option<T>),
    (other_key, other): (&str, Option<E>),
) -> Result<Option<Result<T, E>>, ReadError> {
    match (value, other) {
        (Some(_), Some(_)) => Err(place
            .error(format!("`{key}` and `{other_key}` cannot be combined"))
            .with_hint("remove one of the two keys")),
        (Some(value), None) => Ok(Some(Ok(value))),
        (None, Some(other)) => Ok(Some(Err(other))),
        (None, None) => Ok(None),
    }
}

fn neither(place: &Place, key: &str, other_key: &str) -> ReadError {
    place.error(format!("missing key `{key}` or `{other_key}`"))
}

fn needs_path(place: &Place, key: &str) -> ReadError {
    place.error(format!("`{key}` requires `path`"))
}
