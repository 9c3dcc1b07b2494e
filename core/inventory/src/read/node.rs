//! The key `node` of an inventory into the software of a node.
//!
//! Some keys exclude each other, so after serde this checks which of them a section has.

use devices::{
    Containerd, HcsFailure, HostFacts, NodeSoftware, NvidiaGpu, Nvml, Program, ProgramVersion,
};
use documents::{NonEmpty, Parsed, Place, ReadError, Spanned, Text};

use crate::format::{ContainerdFile, HcsErrorFile, KubeletFile, NodeFile, NvidiaGpuFile, NvmlFile};

/// Converts the section of the inventory `name`, which also contains `host`.
pub(super) fn software(
    name: &str,
    file: NodeFile,
    host: &HostFacts,
) -> Result<NodeSoftware, ReadError> {
    Ok(NodeSoftware {
        hcs_failure: file.hcs_error.map(|error| hcs_failure(name, error, host)).transpose()?,
        containerd: file
            .containerd
            .map(|containerd| self::containerd(name, containerd))
            .transpose()?,
        kubelet: file.kubelet.map(|kubelet| self::kubelet(name, kubelet)).transpose()?,
        nvml: file.nvml.map(|nvml| self::nvml(name, nvml)).transpose()?,
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
    Ok(HcsFailure { kind: file.value.kind.0, message: file.value.message.0 })
}

fn containerd(name: &str, file: Spanned<ContainerdFile>) -> Result<Containerd, ReadError> {
    let place = Place::of(name, &file, "node.containerd");
    let file = file.value;
    let plugins = file.disabled_plugins.map(|plugins| texts(plugins.0));
    let keys = ProgramKeys {
        path: file.path,
        version: file.version,
        version_error: file.version_error,
        not_found_in: file.not_found_in,
    };
    let program = keys.program(&place)?;
    match program {
        Program::NotFound(_) if plugins.is_some() => {
            Err(needs_another(&place, "disabledPlugins", "path"))
        }
        program => Ok(Containerd { program, disabled_plugins: plugins }),
    }
}

fn kubelet(name: &str, file: Spanned<KubeletFile>) -> Result<Program, ReadError> {
    let place = Place::of(name, &file, "node.kubelet");
    let KubeletFile { path, version, version_error, not_found_in } = file.value;
    ProgramKeys { path, version, version_error, not_found_in }.program(&place)
}

/// The keys that all programs have.
struct ProgramKeys {
    path: Option<NonEmpty>,
    version: Option<Parsed<ProgramVersion>>,
    version_error: Option<Text>,
    not_found_in: Option<Vec<Text>>,
}

impl ProgramKeys {
    fn program(self, place: &Place) -> Result<Program, ReadError> {
        let version = one_of(
            place,
            ("version", self.version.map(|version| version.0)),
            ("versionError", self.version_error.map(|error| error.0)),
        )?;
        let program = one_of(
            place,
            ("path", self.path.map(|path| path.0)),
            ("notFoundIn", self.not_found_in.map(texts)),
        )?;
        match (program, version) {
            (None, _) => Err(neither(place, "path", "notFoundIn")),
            (Some(Ok(_)), None) => Err(neither(place, "version", "versionError")),
            (Some(Ok(path)), Some(version)) => Ok(Program::Found { path, version }),
            (Some(Err(places)), None) if places.is_empty() => {
                Err(place.error("`notFoundIn` requires at least one place"))
            }
            (Some(Err(places)), None) => Ok(Program::NotFound(places)),
            (Some(Err(_)), Some(Ok(_))) => Err(needs_another(place, "version", "path")),
            (Some(Err(_)), Some(Err(_))) => Err(needs_another(place, "versionError", "path")),
        }
    }
}

fn nvml(name: &str, file: Spanned<NvmlFile>) -> Result<Nvml, ReadError> {
    let place = Place::of(name, &file, "node.nvml");
    let file = file.value;
    let gpus = file.gpus.map(|gpus| gpus.into_iter().map(gpu).collect());
    let error = file.gpus_error.map(|error| error.0);
    Ok(Nvml {
        library: file.library.map(|path| path.0),
        gpus: one_of(&place, ("gpus", gpus), ("gpusError", error))?
            .ok_or_else(|| neither(&place, "gpus", "gpusError"))?,
    })
}

fn gpu(file: NvidiaGpuFile) -> NvidiaGpu {
    NvidiaGpu {
        index: file.index.0,
        name: file.name.0,
        driver_version: file.driver_version.0,
        driver_model: file.driver_model.0,
    }
}

fn texts(file: Vec<Text>) -> Vec<String> {
    file.into_iter().map(|Text(text)| text).collect()
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

fn needs_another(place: &Place, key: &str, needed: &str) -> ReadError {
    place.error(format!("`{key}` requires `{needed}`"))
}
