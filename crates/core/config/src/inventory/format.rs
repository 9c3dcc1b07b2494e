//! The keys of an inventory file. The same structs read and write them; the documentation of
//! [`crate::inventory`] says what each key means.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use serde_saphyr::{Commented, FlowSeq, Spanned};

use devices::{
    Attribute, CopyToVmKey, DriverDate, DriverVersion, HcsFailureKind, HcsSchema, HostBuild,
    Platform, ProgramVersion, SystemRoot,
};

use crate::values::{Choice, Entries, NonEmpty, Parsed, TextOr};

/// The `schema` of every inventory this crate reads and writes.
pub const SCHEMA: &str = "directx-inventory/v1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InventoryFile {
    pub(crate) schema: Parsed<Version1>,
    #[serde(rename = "recordedBy", skip_serializing_if = "Option::is_none")]
    pub(crate) recorded_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<NodeFile>,
    pub(crate) adapters: Vec<AdapterFile>,
    /// The last key of a recording. Without it, a part of a recording would be an inventory with
    /// fewer devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) complete: Option<bool>,
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct HostFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<Parsed<Choice<Platform>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) product: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) build: Option<Parsed<HostBuild>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hcs_schemas: Option<FlowSeq<Vec<Parsed<HcsSchema>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wow64: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_root: Option<Parsed<SystemRoot>>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NodeFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hcs_error: Option<HcsErrorFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) containerd: Option<Spanned<ProgramFile>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kubelet: Option<Spanned<ProgramFile>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nvml: Option<Spanned<NvmlFile>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HcsErrorFile {
    pub(crate) kind: Parsed<Choice<HcsFailureKind>>,
    pub(crate) message: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ProgramFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<NonEmpty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<Parsed<ProgramVersion>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version_error: Option<String>,
    /// Only containerd has this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_plugins: Option<FlowSeq<Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_found_in: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NvmlFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) library: Option<NonEmpty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gpus: Option<Vec<NvidiaGpuFile>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gpus_error: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NvidiaGpuFile {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) driver_version: String,
    pub(crate) driver_model: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct AdapterFile {
    pub(crate) luid: Spanned<i64>,
    pub(crate) attributes: FlowSeq<Vec<Parsed<Choice<Attribute>>>>,
    pub(crate) hardware: bool,
    #[serde(default)]
    pub(crate) integrated: bool,
    #[serde(default)]
    pub(crate) detachable: bool,
    pub(crate) hardware_id: HardwareIdFile,
    #[serde(default)]
    pub(crate) driver_description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver_version: Option<Parsed<DriverVersion>>,
    #[serde(rename = "dedicatedMemoryMiB", skip_serializing_if = "Option::is_none")]
    pub(crate) dedicated_memory_mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pnp: Option<PnpFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver_store: Option<DriverStoreFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HardwareIdFile {
    #[serde(serialize_with = "with_hex::<4, _>")]
    pub(crate) vendor: u32,
    #[serde(serialize_with = "with_hex::<4, _>")]
    pub(crate) device: u32,
    #[serde(default, serialize_with = "with_hex::<8, _>")]
    pub(crate) subsystem: u32,
    #[serde(default, serialize_with = "with_hex::<2, _>")]
    pub(crate) revision: u32,
}

/// A number with its hexadecimal spelling as a comment, since serde has no hexadecimal numbers.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn with_hex<const DIGITS: usize, S: Serializer>(
    number: &u32,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Commented(*number, format!("0x{number:0DIGITS$X}")).serialize(serializer)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PnpFile {
    pub(crate) id: Spanned<NonEmpty>,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) manufacturer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver_key: Option<NonEmpty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver_date: Option<Parsed<DriverDate>>,
    #[serde(default = "no_list")]
    pub(crate) location_paths: FlowSeq<Vec<NonEmpty>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) numa_node: Option<u32>,
    #[serde(default)]
    pub(crate) problem_code: u32,
}

fn no_list() -> FlowSeq<Vec<NonEmpty>> {
    FlowSeq(Vec::new())
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct DriverStoreFile {
    pub(crate) path: NonEmpty,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) copy_to_vm: Entries<CopyToVmKey, CopyToVmValues>,
}

/// Value name → one string (`REG_SZ`), or a list of strings.
pub(crate) type CopyToVmValues = Entries<String, TextOr<FlowSeq<Vec<String>>>>;

/// The value of `schema`.
pub(crate) struct Version1;

impl FromStr for Version1 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == SCHEMA {
            return Ok(Version1);
        }
        Err(format!("unknown schema {text:?}; this program reads `{SCHEMA}`"))
    }
}

impl fmt::Display for Version1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEMA)
    }
}
