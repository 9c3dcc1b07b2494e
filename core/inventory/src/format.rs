//! The keys of an inventory file. The same structs read and write them; [`crate`] documents
//! what each key means.

use std::fmt;
use std::str::FromStr;

use devices::{
    Attribute, CopyToVmKey, DriverDate, DriverVersion, HcsFailureKind, HcsSchema, HostBuild,
    ProgramVersion, SystemRoot,
};
use documents::{
    Advice, Entries, Flag, FlowSeq, Names, NonEmpty, OneOf, Parsed, Spanned, Text, TextOrList,
    Whole, present, write_hex,
};
use serde::{Deserialize, Serialize};

use crate::SCHEMA;

type U32 = Whole<u32, 0, { u32::MAX as i128 }>;
type U64 = Whole<u64, 0, { u64::MAX as i128 }>;
type I64 = Whole<i64, { i64::MIN as i128 }, { i64::MAX as i128 }>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InventoryFile {
    pub(crate) schema: Parsed<Version1, ThisSchema>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostFile>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<NodeFile>,
    pub(crate) adapters: Vec<AdapterFile>,
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct HostFile {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) product: Option<Text>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) display_version: Option<Text>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) build: Option<Parsed<HostBuild>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) hcs_schemas: Option<FlowSeq<Vec<Parsed<HcsSchema>>>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) wow64: Option<Flag>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<Flag>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) system_root: Option<Parsed<SystemRoot>>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NodeFile {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) hcs_error: Option<Spanned<HcsErrorFile>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) containerd: Option<Spanned<ContainerdFile>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) kubelet: Option<Spanned<KubeletFile>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) nvml: Option<Spanned<NvmlFile>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HcsErrorFile {
    pub(crate) kind: OneOf<HcsFailureKind, HcsFailureKinds>,
    pub(crate) message: Text,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ContainerdFile {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<NonEmpty>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<Parsed<ProgramVersion>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) version_error: Option<Text>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_plugins: Option<FlowSeq<Vec<Text>>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) not_found_in: Option<Vec<Text>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KubeletFile {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<NonEmpty>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<Parsed<ProgramVersion>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) version_error: Option<Text>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) not_found_in: Option<Vec<Text>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NvmlFile {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) library: Option<NonEmpty>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) gpus: Option<Vec<NvidiaGpuFile>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) gpus_error: Option<Text>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NvidiaGpuFile {
    pub(crate) index: U32,
    pub(crate) name: Text,
    pub(crate) driver_version: Text,
    pub(crate) driver_model: Text,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct AdapterFile {
    pub(crate) luid: Spanned<I64>,
    pub(crate) attributes: FlowSeq<Vec<OneOf<Attribute, AttributeNames>>>,
    pub(crate) hardware: Flag,
    #[serde(default)]
    pub(crate) integrated: Flag,
    #[serde(default)]
    pub(crate) detachable: Flag,
    pub(crate) hardware_id: HardwareIdFile,
    #[serde(default)]
    pub(crate) driver_description: Text,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) driver_version: Option<Parsed<DriverVersion>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[serde(rename = "dedicatedMemoryMiB")]
    pub(crate) dedicated_memory_mib: Option<U64>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) pnp: Option<PnpFile>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) driver_store: Option<DriverStoreFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HardwareIdFile {
    #[serde(serialize_with = "write_hex::<_, _, _, _, 4>")]
    pub(crate) vendor: U32,
    #[serde(serialize_with = "write_hex::<_, _, _, _, 4>")]
    pub(crate) device: U32,
    #[serde(default, serialize_with = "write_hex::<_, _, _, _, 8>")]
    pub(crate) subsystem: U32,
    #[serde(default, serialize_with = "write_hex::<_, _, _, _, 2>")]
    pub(crate) revision: U32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PnpFile {
    pub(crate) id: Spanned<NonEmpty>,
    #[serde(default)]
    pub(crate) description: Text,
    #[serde(default)]
    pub(crate) manufacturer: Text,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) driver_key: Option<NonEmpty>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) driver_date: Option<Parsed<DriverDate>>,
    #[serde(default = "no_list")]
    pub(crate) location_paths: FlowSeq<Vec<NonEmpty>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) numa_node: Option<U32>,
    #[serde(default)]
    pub(crate) problem_code: U32,
}

fn no_list() -> FlowSeq<Vec<NonEmpty>> {
    FlowSeq(Vec::new())
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct DriverStoreFile {
    pub(crate) path: NonEmpty,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<Vec<Text>>,
    #[serde(default)]
    pub(crate) copy_to_vm: Entries<CopyToVmKey, Entries<String, TextOrList>>,
}

/// The value of `schema`.
pub(crate) struct Version1;

impl FromStr for Version1 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == SCHEMA { Ok(Version1) } else { Err(format!("unknown schema {text:?}")) }
    }
}

impl fmt::Display for Version1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEMA)
    }
}

pub(crate) struct ThisSchema;

impl Advice for ThisSchema {
    const HINT: Option<&'static str> = Some("this program reads `directx-inventory/v1`");
}

pub(crate) struct AttributeNames;

impl Names<Attribute> for AttributeNames {
    fn names() -> impl Iterator<Item = (&'static str, Attribute)> {
        Attribute::ALL.into_iter().map(|attribute| (attribute.name(), attribute))
    }
}

pub(crate) struct HcsFailureKinds;

impl Names<HcsFailureKind> for HcsFailureKinds {
    fn names() -> impl Iterator<Item = (&'static str, HcsFailureKind)> {
        HcsFailureKind::ALL.into_iter().map(|kind| (kind.name(), kind))
    }
}
