//! Converts the key `node` of an inventory into the software of a node.
//!
//! Some keys exclude each other, so after serde this checks which of them a section has.

use serde_saphyr::Spanned;

use devices::{Containerd, HcsFailure, NodeSoftware, NvidiaGpu, Nvml, Program};

use crate::inventory::format::{HcsErrorFile, NodeFile, NvidiaGpuFile, NvmlFile, ProgramFile};
use crate::{Place, ReadError};

/// Converts the section of the inventory `name`.
pub(super) fn software(name: &str, file: NodeFile) -> Result<NodeSoftware, ReadError> {
    Ok(NodeSoftware {
        hcs_failure: file.hcs_error.map(hcs_failure),
        containerd: file.containerd.map(|file| containerd(name, file)).transpose()?,
        kubelet: file.kubelet.map(|file| kubelet(name, file)).transpose()?,
        nvml: file.nvml.map(|file| nvml(name, file)).transpose()?,
    })
}

fn hcs_failure(file: HcsErrorFile) -> HcsFailure {
    HcsFailure { kind: file.kind.0.0, message: file.message }
}

fn containerd(name: &str, file: Spanned<ProgramFile>) -> Result<Containerd, ReadError> {
    let place = Place::of(name, &file, "node.containerd");
    let mut file = file.value;
    let disabled_plugins = file.disabled_plugins.take().map(|plugins| plugins.0);
    match program(file, &place)? {
        Program::NotFound(_) if disabled_plugins.is_some() => {
            Err(place.error("`disabledPlugins` requires `path`"))
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
    let has_version = version.is_some() || file.version_error.is_some();
    match either(place, ("path", file.path), ("notFoundIn", file.not_found_in))? {
        Ok(path) => Ok(Program::Found {
            path: path.0,
            version: either(place, ("version", version), ("versionError", file.version_error))?,
        }),
        Err(_) if has_version => Err(place.error("the version of a program requires `path`")),
        Err(places) => Ok(Program::NotFound(places)),
    }
}

fn nvml(name: &str, file: Spanned<NvmlFile>) -> Result<Nvml, ReadError> {
    let place = Place::of(name, &file, "node.nvml");
    let NvmlFile { library, gpus, gpus_error } = file.value;
    let gpus = gpus.map(|gpus| gpus.into_iter().map(gpu).collect());
    Ok(Nvml {
        library: library.map(|path| path.0),
        gpus: either(&place, ("gpus", gpus), ("gpusError", gpus_error))?,
    })
}

fn gpu(file: NvidiaGpuFile) -> NvidiaGpu {
    let NvidiaGpuFile { index, name, driver_version, driver_model } = file;
    NvidiaGpu { index, name, driver_version, driver_model }
}

/// The value of the first key or of the second one. Exactly one of them must have a value.
fn either<T, E>(
    place: &Place,
    (key, value): (&str, Option<T>),
    (other_key, other): (&str, Option<E>),
) -> Result<Result<T, E>, ReadError> {
    match (value, other) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(other)) => Ok(Err(other)),
        _ => Err(place.error(format!("expected either `{key}` or `{other_key}`"))),
    }
}
