//! Facts about the host that decide how a device is assigned to a container.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use crate::ParseError;
use crate::text::file_values::{is_default, named_value, on_one_line, or_default, text_value};
use crate::text::parse::parse_decimals;
use crate::{LauncherFiles, SystemRoot};

/// A Windows build, `major.minor.build.revision`, such as `10.0.20348.1547`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostBuild {
    /// 10 on every Windows that runs containers.
    pub major: u32,
    /// 0 on every Windows that runs containers.
    pub minor: u32,
    /// The build number: 17763 is Server 2019, 20348 Server 2022, 26100 Server 2025.
    pub build: u32,
    /// The update revision (UBR).
    pub revision: u32,
}

text_value!(HostBuild);

impl fmt::Display for HostBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.major, self.minor, self.build, self.revision)
    }
}

impl FromStr for HostBuild {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a Windows build (four numbers separated by dots, such as 10.0.20348.1547)";
        let [major, minor, build, revision] =
            parse_decimals(text, '.').ok_or_else(|| ParseError::new(text, expected))?;
        Ok(HostBuild { major, minor, build, revision })
    }
}

/// A schema version of the Host Compute Service (HCS); `A.X` means `A.0` to `A.X`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HcsSchema {
    /// The part before the dot.
    pub major: u32,
    /// The part after the dot.
    pub minor: u32,
}

text_value!(HcsSchema);

impl fmt::Display for HcsSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for HcsSchema {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "an HCS schema version (two numbers separated by a dot, such as 2.5)";
        let [major, minor] =
            parse_decimals(text, '.').ok_or_else(|| ParseError::new(text, expected))?;
        Ok(HcsSchema { major, minor })
    }
}

/// Whether the host runs 32-bit programs, that is, has a `SysWOW64` folder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Wow64 {
    /// The host runs 32-bit programs, as most hosts do.
    #[default]
    Present,
    /// The host does not run 32-bit programs: it is Nano Server, or Server Core with the feature
    /// removed.
    Absent,
}

impl From<bool> for Wow64 {
    fn from(is_present: bool) -> Self {
        if is_present { Wow64::Present } else { Wow64::Absent }
    }
}

impl From<Wow64> for bool {
    fn from(wow64: Wow64) -> Self {
        wow64 == Wow64::Present
    }
}

/// The system of a host. Inventories and JSON documents contain it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Display, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "kebab-case", ascii_case_insensitive)]
pub enum Platform {
    #[default]
    Windows,
}

named_value!(Platform);

/// Whether a hypervisor runs below Windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case", ascii_case_insensitive)]
pub enum Hypervisor {
    /// None does.
    None,
    /// That of this Windows: Hyper-V, Virtual Machine Platform or virtualization-based security is
    /// turned on. This Windows may be a virtual machine, too.
    Own,
    /// That of the machine on which this virtual machine runs.
    Guest,
}

named_value!(Hypervisor);

/// What is known about the host. An inventory may contain none of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HostFacts {
    /// The system.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub platform: Platform,
    /// Product text such as `Microsoft Windows Server 2022 Datacenter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Display version such as `21H2` or `1809`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_version: Option<String>,
    /// The Windows build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<HostBuild>,
    /// Whether a hypervisor runs below this Windows. Drivers of some GPUs fail then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<Hypervisor>,
    /// The highest schema of each major version that HCS supports, in the order of HCS. They are
    /// only reported: the build decides how a device is assigned.
    #[serde(
        deserialize_with = "or_default",
        serialize_with = "on_one_line",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hcs_schemas: Vec<HcsSchema>,
    /// Whether 32-bit runtime files can be mounted.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub wow64: Wow64,
    /// Whether discovery runs inside a container other than a `HostProcess` container. Windows
    /// exposes the host's driver folders there but not its registry, so no runtime files are known.
    /// This is not a failure.
    #[serde(
        rename = "container",
        deserialize_with = "or_default",
        skip_serializing_if = "is_default"
    )]
    pub inside_container: bool,
    /// The Windows folder, which contains the driver store.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub system_root: SystemRoot,
    /// Whether its files are on the disk of this machine; false for an inventory.
    #[serde(skip)]
    pub is_this_machine: bool,
    /// Whether it is a demonstration: containers get no device and no files, because this machine
    /// has none.
    #[serde(skip)]
    pub is_demonstration: bool,
    /// The files of `directx-visible`.
    #[serde(skip)]
    pub launcher: LauncherFiles,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_builds_and_schemas_are_rejected() {
        for bad in ["", "10", "10.0.20348", "10.0.20348.1.2", "10.0.x.1", "10.0.-1.1"] {
            assert!(bad.parse::<HostBuild>().is_err(), "{bad}");
        }
        for bad in ["", "2", "2.", ".5", "2.5.1", "2,5", "99999999999.1"] {
            assert!(bad.parse::<HcsSchema>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn build_round_trips(major: u32, minor: u32, build: u32, revision: u32) {
            let host = HostBuild { major, minor, build, revision };
            prop_assert_eq!(host.to_string().parse(), Ok(host));
        }

        #[test]
        fn schema_round_trips(major: u32, minor: u32) {
            let schema = HcsSchema { major, minor };
            prop_assert_eq!(schema.to_string().parse(), Ok(schema));
        }
    }
}
