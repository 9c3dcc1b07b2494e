//! The software of a node that passes devices to containers: the Host Compute Service,
//! containerd, the kubelet and NVIDIA's management library.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantArray, VariantNames};

use crate::ParseError;
use crate::text::file_values::{filled_option, named_value, on_one_line, text_value};
use crate::text::parse::parse_decimals;

/// What is known about the software of a node. `None` means that nobody has looked for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSoftware {
    /// Why the Host Compute Service (HCS) reported no schemas; `None` also where it reported
    /// them.
    #[serde(rename = "hcsError", skip_serializing_if = "Option::is_none")]
    pub hcs_failure: Option<HcsFailure>,
    /// The container runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containerd: Option<Containerd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<Program>,
    /// NVIDIA's management library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvml: Option<Nvml>,
}

/// Why the Host Compute Service reported no schemas.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HcsFailure {
    pub kind: HcsFailureKind,
    /// The error and its causes.
    pub message: String,
}

/// A kind of failure of the Host Compute Service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumString, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum HcsFailureKind {
    /// The service is not installed on this host.
    Missing,
    /// The service does not respond, or its response contains no schemas.
    Unresponsive,
}

named_value!(HcsFailureKind);

/// A program of the node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "ProgramFile", into = "ProgramFile")]
pub enum Program {
    /// The program is in none of these places; at least one was searched.
    NotFound(Vec<String>),
    /// The program was found and asked for its version.
    Found {
        path: String,
        /// Its version, or why it is not known.
        version: Result<ProgramVersion, String>,
    },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "ProgramFile", into = "ProgramFile")]
pub struct Containerd {
    pub program: Program,
    /// The plugins that its configuration disables; `None` where that is not known. Always
    /// `None` where the program was not found.
    pub disabled_plugins: Option<Vec<String>>,
}

/// NVIDIA's management library.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "NvmlFile", into = "NvmlFile")]
pub struct Nvml {
    /// The path of the library; `None` where it is in none of the folders that NVIDIA documents.
    pub library: Option<String>,
    /// The GPUs that the library reports, or why it does not respond.
    pub gpus: Result<Vec<NvidiaGpu>, String>,
}

/// A GPU as NVML reports it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NvidiaGpu {
    /// NVML's index.
    pub index: u32,
    /// The product name.
    pub name: String,
    /// NVIDIA's own version of the driver, such as `528.49`.
    pub driver_version: String,
    /// `WDDM`, `MCDM` or `TCC`.
    pub driver_model: String,
}

/// The keys of a [`Program`] and of [`Containerd`] in an inventory. Some of them exclude each
/// other, which serde's derived code cannot express.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ProgramFile {
    #[serde(default, deserialize_with = "filled_option", skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<ProgramVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_error: Option<String>,
    /// Only containerd has this key.
    #[serde(serialize_with = "on_one_line", skip_serializing_if = "Option::is_none")]
    disabled_plugins: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_found_in: Option<Vec<String>>,
}

impl TryFrom<ProgramFile> for Program {
    type Error = String;

    fn try_from(file: ProgramFile) -> Result<Self, String> {
        if file.disabled_plugins.is_some() {
            return Err("unknown key `disabledPlugins`, which only containerd has".to_owned());
        }
        let has_version = file.version.is_some() || file.version_error.is_some();
        match either(("path", file.path), ("notFoundIn", file.not_found_in))? {
            Ok(path) => {
                let version =
                    either(("version", file.version), ("versionError", file.version_error))?;
                Ok(Program::Found { path, version })
            }
            Err(_) if has_version => Err("the version of a program requires `path`".to_owned()),
            Err(places) => Ok(Program::NotFound(places)),
        }
    }
}

impl From<Program> for ProgramFile {
    fn from(program: Program) -> Self {
        match program {
            Program::NotFound(places) => {
                ProgramFile { not_found_in: Some(places), ..ProgramFile::default() }
            }
            Program::Found { path, version } => {
                let (version, version_error) = ok_or_error(version);
                let path = Some(path);
                ProgramFile { path, version, version_error, ..ProgramFile::default() }
            }
        }
    }
}

impl TryFrom<ProgramFile> for Containerd {
    type Error = String;

    fn try_from(mut file: ProgramFile) -> Result<Self, String> {
        let disabled_plugins = file.disabled_plugins.take();
        match Program::try_from(file)? {
            Program::NotFound(_) if disabled_plugins.is_some() => {
                Err("`disabledPlugins` requires `path`".to_owned())
            }
            program => Ok(Containerd { program, disabled_plugins }),
        }
    }
}

impl From<Containerd> for ProgramFile {
    fn from(containerd: Containerd) -> Self {
        let Containerd { program, disabled_plugins } = containerd;
        ProgramFile { disabled_plugins, ..program.into() }
    }
}

/// The keys of [`Nvml`] in an inventory. Two of them exclude each other.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NvmlFile {
    #[serde(default, deserialize_with = "filled_option", skip_serializing_if = "Option::is_none")]
    library: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<Vec<NvidiaGpu>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus_error: Option<String>,
}

impl TryFrom<NvmlFile> for Nvml {
    type Error = String;

    fn try_from(file: NvmlFile) -> Result<Self, String> {
        let gpus = either(("gpus", file.gpus), ("gpusError", file.gpus_error))?;
        Ok(Nvml { library: file.library, gpus })
    }
}

impl From<Nvml> for NvmlFile {
    fn from(nvml: Nvml) -> Self {
        let (gpus, gpus_error) = ok_or_error(nvml.gpus);
        NvmlFile { library: nvml.library, gpus, gpus_error }
    }
}

/// The value of the first key or of the second one. Exactly one of them must have a value.
fn either<T, E>(
    (key, value): (&str, Option<T>),
    (other_key, other): (&str, Option<E>),
) -> Result<Result<T, E>, String> {
    match (value, other) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(other)) => Ok(Err(other)),
        _ => Err(format!("expected either `{key}` or `{other_key}`")),
    }
}

/// The values of the key for a result and of the key for its error.
fn ok_or_error<T>(result: Result<T, String>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    }
}

/// The version of a program: its first three numbers, which compare, and its text with all
/// that follows them (`-beta.1`, `+k3s1`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramVersion {
    numbers: [u32; 3],
    text: String,
}

text_value!(ProgramVersion);

impl ProgramVersion {
    /// The first word of `output` that is a version, such as in
    /// `containerd github.com/containerd/containerd v1.7.0 1fbd70…` or `Kubernetes v1.29.2`.
    #[must_use]
    pub fn find(output: &str) -> Option<ProgramVersion> {
        output.split_whitespace().find_map(|word| word.parse().ok())
    }

    /// Whether this is `major.minor` or newer. A pre-release counts as its release.
    #[must_use]
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        self.numbers >= [major, minor, 0]
    }
}

impl fmt::Display for ProgramVersion {
    /// The version without a leading `v`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ProgramVersion {
    type Err = ParseError;

    /// Parses a version with or without a leading `v`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a version (three numbers separated by dots, such as 1.7.22 or 1.31.0-rc.1)";
        let version = text.strip_prefix('v').unwrap_or(text);
        let release = version.split(['-', '+']).next().unwrap_or_default();
        parse_decimals(release, '.')
            .filter(|_| !version.contains(char::is_whitespace))
            .map(|numbers| ProgramVersion { numbers, text: version.to_owned() })
            .ok_or_else(|| ParseError::new(text, expected))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_found_in_the_output_of_programs() {
        for (line, version) in [
            ("containerd github.com/containerd/containerd v1.7.0 1fbd70374134", "1.7.0"),
            ("containerd github.com/containerd/containerd/v2 v2.1.4 061792f", "2.1.4"),
            ("containerd github.com/containerd/containerd 1.6.8+azure 9cd3357", "1.6.8+azure"),
            ("Kubernetes v1.31.0-rc.1", "1.31.0-rc.1"),
            ("containerd.exe github.com/containerd/containerd v1.7.22-k3s1", "1.7.22-k3s1"),
        ] {
            assert_eq!(ProgramVersion::find(line).unwrap().to_string(), version);
        }
        for line in ["", "containerd github.com/containerd/containerd unknown", "v1.7", "1.2.3.4"] {
            assert_eq!(ProgramVersion::find(line), None, "{line}");
        }
    }

    #[test]
    fn malformed_versions_are_rejected() {
        for bad in ["", "v", "1.7", "1.2.3.4", "1.x.0", "1.7.0 x", "1.7.0-a b", " 1.7.0", "vv1.7.0"]
        {
            assert!(bad.parse::<ProgramVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        let version = |text: &str| text.parse::<ProgramVersion>().unwrap();
        assert!(version("1.10.0").is_at_least(1, 7));
        assert!(version("2.0.0").is_at_least(1, 7));
        assert!(version("1.7.0-beta.1").is_at_least(1, 7));
        assert!(!version("1.6.36").is_at_least(1, 7));
        assert!(!version("0.9.9").is_at_least(1, 0));
    }

    proptest! {
        #[test]
        fn versions_round_trip(text in "v?[0-9]{1,4}\\.[0-9]{1,4}\\.[0-9]{1,4}([-+][!-~]{0,8})?") {
            let version: ProgramVersion = text.parse().unwrap();
            prop_assert_eq!(version.to_string(), text.strip_prefix('v').unwrap_or(&text));
            prop_assert_eq!(version.to_string().parse(), Ok(version));
        }
    }
}
