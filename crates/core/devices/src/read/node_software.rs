//! The software of a node that passes devices to containers: the Host Compute Service,
//! containerd, the kubelet and NVIDIA's management library.

use std::fmt;
use std::str::FromStr;

use strum::{Display, EnumString, VariantArray, VariantNames};

use crate::ParseError;
use crate::text::parse::parse_decimals;

/// What is known about the software of a node. `None` means that nobody has looked for it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeSoftware {
    /// Why the Host Compute Service (HCS) reported no schemas; `None` also where it reported
    /// them.
    pub hcs_failure: Option<HcsFailure>,
    /// The container runtime.
    pub containerd: Option<Containerd>,
    /// The kubelet's program.
    pub kubelet: Option<Program>,
    /// NVIDIA's management library.
    pub nvml: Option<Nvml>,
}

/// Why the Host Compute Service reported no schemas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HcsFailure {
    /// The kind of failure.
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

/// A program of the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Program {
    /// The program is in none of these places; at least one was searched.
    NotFound(Vec<String>),
    /// The program was found and asked for its version.
    Found {
        /// Its path.
        path: String,
        /// Its version, or why it is not known.
        version: Result<ProgramVersion, String>,
    },
}

/// containerd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Containerd {
    /// Its program.
    pub program: Program,
    /// The plugins that its configuration disables; `None` where that is not known. Always
    /// `None` where the program was not found.
    pub disabled_plugins: Option<Vec<String>>,
}

/// NVIDIA's management library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nvml {
    /// The path of the library; `None` where it is in none of the folders that NVIDIA documents.
    pub library: Option<String>,
    /// The GPUs that the library reports, or why it does not respond.
    pub gpus: Result<Vec<NvidiaGpu>, String>,
}

/// A GPU as NVML reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
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

/// The version of a program: its first three numbers, which compare, and its text with all
/// that follows them (`-beta.1`, `+k3s1`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramVersion {
    numbers: [u32; 3],
    text: String,
}

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
