//! An adapter: what a host reports about one DirectX device, before any decision.
//!
//! The values come from `DXCore`, the `PnP` manager, D3DKMT and the registry on Windows,
//! or from an inventory; both produce the same [`Adapter`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_saphyr::Commented;
use strum::{Display, EnumString, VariantArray, VariantNames};

use crate::ParseError;
use crate::driver_date::DriverDate;
use crate::nvidia::NvidiaFacts;
use crate::telemetry::ConstantLoad;
use crate::text::case_folding::fold_case;
use crate::text::file_values::{
    Entries, filled, is_default, named_value, on_one_line, or_default, text_value,
};
use crate::text::parse::parse_decimals;
use crate::{CopyToVmKey, CopyToVmValue, DriverKey, LocationPath, Luid, PnpId, Vendor};

/// A `DXCore` adapter attribute. Inventories list the names in this order, such as
/// `d3d11-graphics`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumString, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case", ascii_case_insensitive)]
#[repr(u16)]
pub enum Attribute {
    /// `DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS`.
    D3d11Graphics = 1,
    /// `DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS`.
    D3d12Graphics = 1 << 1,
    /// `DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE`.
    D3d12CoreCompute = 1 << 2,
    /// `DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML`; newer hosts.
    D3d12GenericMl = 1 << 3,
    /// `DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_MEDIA`; newer hosts.
    D3d12GenericMedia = 1 << 4,
    /// `DXCORE_HARDWARE_TYPE_ATTRIBUTE_GPU`; newer hosts.
    Gpu = 1 << 5,
    /// `DXCORE_HARDWARE_TYPE_ATTRIBUTE_COMPUTE_ACCELERATOR`; newer hosts.
    ComputeAccelerator = 1 << 6,
    /// `DXCORE_HARDWARE_TYPE_ATTRIBUTE_NPU`; newer hosts.
    Npu = 1 << 7,
    /// `DXCORE_HARDWARE_TYPE_ATTRIBUTE_MEDIA_ACCELERATOR`; newer hosts.
    MediaAccelerator = 1 << 8,
}

named_value!(Attribute);

impl Attribute {
    pub const ALL: &'static [Attribute] = <Attribute as VariantArray>::VARIANTS;
}

/// The set of attributes under which `DXCore` lists an adapter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<Attribute>", into = "Vec<Attribute>")]
pub struct Attributes(u16);

impl Attributes {
    /// Whether the set contains `attribute`.
    #[must_use]
    pub const fn has(self, attribute: Attribute) -> bool {
        self.0 & attribute as u16 != 0
    }

    /// Whether the set contains Direct3D graphics.
    #[must_use]
    pub const fn display(self) -> bool {
        self.has(Attribute::D3d11Graphics) || self.has(Attribute::D3d12Graphics)
    }

    /// Whether the set contains an attribute of a device that computes. The hardware type of a GPU
    /// is none: see [`Adapter::computes`].
    pub(crate) const fn compute(self) -> bool {
        self.has(Attribute::D3d12Graphics)
            || self.has(Attribute::D3d12CoreCompute)
            || self.has(Attribute::D3d12GenericMl)
            || self.has(Attribute::Npu)
            || self.has(Attribute::ComputeAccelerator)
    }

    /// The attributes in the order of [`Attribute::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Attribute> {
        Attribute::ALL.iter().copied().filter(move |a| self.has(*a))
    }
}

impl FromIterator<Attribute> for Attributes {
    fn from_iter<I: IntoIterator<Item = Attribute>>(attributes: I) -> Self {
        Attributes(attributes.into_iter().fold(0, |bits, attribute| bits | attribute as u16))
    }
}

impl From<Vec<Attribute>> for Attributes {
    fn from(attributes: Vec<Attribute>) -> Self {
        attributes.into_iter().collect()
    }
}

impl From<Attributes> for Vec<Attribute> {
    fn from(attributes: Attributes) -> Self {
        attributes.iter().collect()
    }
}

/// `DXCore`'s `HardwareID`: the PCI numbers for a PCI device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareId {
    /// PCI vendor ID, or a four-letter ACPI vendor ID.
    #[serde(serialize_with = "with_hex::<4, _>")]
    pub vendor: u32,
    /// PCI device ID.
    #[serde(serialize_with = "with_hex::<4, _>")]
    pub device: u32,
    /// PCI subsystem ID (subsystem device in the high, subsystem vendor in the low 16 bits).
    #[serde(default, serialize_with = "with_hex::<8, _>")]
    pub subsystem: u32,
    /// PCI revision.
    #[serde(default, serialize_with = "with_hex::<2, _>")]
    pub revision: u32,
}

impl HardwareId {
    /// Whether the adapter is one of Microsoft's basic adapters: software, without a GPU. These are
    /// the Basic Render Driver, which computes on the CPU and which Windows does not always call
    /// software, and Hyper-V's display. A GPU that Hyper-V lends (GPU-PV) has the IDs of the GPU.
    #[must_use]
    pub const fn is_basic_adapter(self) -> bool {
        matches!((self.vendor, self.device), (0x1414, 0x008C | 0x5353))
    }
}

/// A number with its hexadecimal spelling as a comment, since serde has no hexadecimal numbers.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn with_hex<const DIGITS: usize, S: Serializer>(
    number: &u32,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Commented(*number, format!("0x{number:0DIGITS$X}")).serialize(serializer)
}

/// A driver's version: four 16-bit parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DriverVersion(pub u64);

text_value!(DriverVersion);

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, build, revision] =
            [48, 32, 16, 0].map(|shift| (self.0 >> shift) & 0xFFFF);
        write!(f, "{major}.{minor}.{build}.{revision}")
    }
}

impl FromStr for DriverVersion {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a driver version (four numbers from 0 to 65535 separated by dots)";
        let parts: [u16; 4] =
            parse_decimals(text, '.').ok_or_else(|| ParseError::new(text, expected))?;
        Ok(DriverVersion(parts.iter().fold(0, |version, part| version << 16 | u64::from(*part))))
    }
}

/// One adapter as its host reports it.
#[allow(clippy::struct_excessive_bools, reason = "flags of Windows, each with its own meaning")]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Adapter {
    /// Connects the `DXCore` adapter to its `PnP` device.
    pub luid: Luid,
    /// The attributes under which `DXCore` lists the adapter.
    #[serde(serialize_with = "on_one_line")]
    pub attributes: Attributes,
    /// `IsHardware`; false for a software rasterizer, such as the Basic Render Driver.
    pub hardware: bool,
    /// `IsIntegrated`: built into the processor, with the processor's memory.
    #[serde(default)]
    pub integrated: bool,
    /// `IsDetachable`: can be removed while the host runs, such as an external GPU.
    #[serde(default)]
    pub detachable: bool,
    /// `IndirectDisplayDevice` of the graphics kernel, if it could be asked: a display whose
    /// pictures another adapter renders, such as the display of a remote session. Earlier inventories
    /// lack the key, and earlier programs do not know it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub indirect_display: bool,
    /// `HardwareID`.
    pub hardware_id: HardwareId,
    /// `DriverDescription`; for display only.
    #[serde(default)]
    pub driver_description: String,
    /// `DriverVersion`, if the driver reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<DriverVersion>,
    /// `DedicatedAdapterMemory` in MiB, rounded down, if the driver reports it.
    #[serde(rename = "dedicatedMemoryMiB", skip_serializing_if = "Option::is_none")]
    pub dedicated_memory_mib: Option<u64>,
    /// What the adapter of an inventory does all the time. No decision reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<ConstantLoad>,
    /// What NVML reports of an NVIDIA GPU. NVML is slow, so sources leave it empty, and callers
    /// that need it add it. Earlier inventories lack the key.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "NvidiaFacts::is_left_out"
    )]
    pub nvidia: NvidiaFacts,
    /// The `PnP` device with the adapter's LUID, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pnp: Option<PnpDevice>,
    /// The driver's folder and the files that the registry names in it, if it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_store: Option<DriverStore>,
}

impl Adapter {
    /// Whether the adapter is a GPU or an accelerator, as far as Windows says so: neither software
    /// nor an indirect display nor one of Microsoft's basic adapters.
    #[must_use]
    pub fn is_gpu_or_accelerator(&self) -> bool {
        self.hardware && !self.is_indirect_display() && !self.hardware_id.is_basic_adapter()
    }

    /// Whether the adapter computes. A GPU without a display does, even if Windows reports only its
    /// hardware type, if its vendor makes GPUs that compute. Those of other vendors, and GPUs that
    /// only display, may be the graphics of a server's management controller.
    #[must_use]
    pub fn computes(&self) -> bool {
        let is_gpu = self.attributes.has(Attribute::Gpu) && !self.attributes.display();
        self.attributes.compute() || is_gpu && self.vendor().makes_gpus()
    }

    /// Whether it only displays, and its vendor makes no GPUs: the graphics of a server's management
    /// controller, or of a virtual machine.
    #[must_use]
    pub fn is_display_controller(&self) -> bool {
        self.vendor().makes_display_controller(self.attributes.display(), self.computes())
    }

    /// The vendor, by hardware ID or instance ID.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        Vendor::of(self.hardware_id.vendor, self.pnp.as_ref().map(|pnp| &pnp.id))
    }

    /// Whether the adapter is an indirect display. It has the name, the hardware ID and the memory
    /// of the GPU that renders for it. Software never enumerates a GPU, so the hardware type "GPU"
    /// does not count. Software also enumerates compute-only devices, which are not displays, and
    /// the Basic Render Driver, which is a basic adapter.
    #[must_use]
    pub fn is_indirect_display(&self) -> bool {
        let only_computes = self.attributes.compute() && !self.attributes.display();
        let is_other = only_computes || self.hardware_id.is_basic_adapter();
        let is_software = |pnp: &PnpDevice| pnp.id.is_software_enumerated();
        self.indirect_display || !is_other && self.pnp.as_ref().is_some_and(is_software)
    }

    /// The name that Device Manager shows, or the one that the driver reports.
    #[must_use]
    pub fn name(&self) -> &str {
        let of_device = self.pnp.as_ref().map(|pnp| pnp.description.as_str());
        of_device.filter(|name| !name.is_empty()).unwrap_or(&self.driver_description)
    }
}

/// The `PnP` device of an adapter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PnpDevice {
    /// Device instance ID.
    pub id: PnpId,
    /// `DEVPKEY_Device_FriendlyName`, else `DEVPKEY_Device_DeviceDesc`.
    #[serde(default)]
    pub description: String,
    /// `DEVPKEY_Device_Manufacturer`; free text, for display only.
    #[serde(default)]
    pub manufacturer: String,
    /// `DEVPKEY_Device_Driver`, if a driver is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_key: Option<DriverKey>,
    /// `DEVPKEY_Device_DriverDate`; for display only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_date: Option<DriverDate>,
    /// `DEVPKEY_Device_LocationPaths`; the first one assigns the device to containers.
    #[serde(default, serialize_with = "on_one_line")]
    pub location_paths: Vec<LocationPath>,
    /// `DEVPKEY_Device_Numa_Node`, if firmware reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// `DEVPKEY_Device_ProblemCode`; 0 means that the device works.
    #[serde(default)]
    pub problem_code: u32,
}

/// The driver's folder in the driver store and the registry's `CopyToVm` entries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DriverStore {
    /// Absolute Windows path of the folder.
    #[serde(deserialize_with = "filled")]
    pub path: String,
    /// The files in the folder.
    #[serde(default, skip_serializing_if = "is_default")]
    pub files: StoreFiles,
    /// `CopyToVm*` key → value name → value.
    #[serde(default, deserialize_with = "copy_to_vm")]
    pub copy_to_vm: BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>>,
}

fn copy_to_vm<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>>, D::Error> {
    let keys = Entries::<CopyToVmKey, Entries<String, CopyToVmValue>>::deserialize(deserializer)?;
    Ok(keys.0.into_iter().map(|(key, values)| (key, values.0)).collect())
}

impl DriverStore {
    /// Whether the folder has no file at all, although the driver names files in it.
    #[must_use]
    pub fn lacks_files(&self) -> bool {
        !self.copy_to_vm.is_empty() && self.files == StoreFiles::Listed(BTreeSet::new())
    }
}

/// What is known about the files in a driver store folder.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Option<BTreeSet<String>>", untagged)]
pub enum StoreFiles {
    /// An inventory that does not list files: every named file counts as existing.
    #[default]
    EveryNamed,
    /// The folder's files according to an inventory, as relative paths.
    Listed(BTreeSet<String>),
    /// A live host: the disk must be checked. An inventory cannot contain this.
    #[serde(skip_serializing)]
    OnDisk,
}

impl From<Option<BTreeSet<String>>> for StoreFiles {
    fn from(listed: Option<BTreeSet<String>>) -> Self {
        listed.map_or(StoreFiles::EveryNamed, StoreFiles::Listed)
    }
}

impl StoreFiles {
    /// Whether the folder contains `relative`; `None` if the disk must be checked.
    #[must_use]
    pub fn contains(&self, relative: &str) -> Option<bool> {
        match self {
            StoreFiles::EveryNamed => Some(true),
            StoreFiles::Listed(files) => {
                let folded = fold_path(relative);
                Some(files.contains(relative) || files.iter().any(|file| fold_path(file) == folded))
            }
            StoreFiles::OnDisk => None,
        }
    }
}

/// The path with its case folded and with `\` between its components.
fn fold_path(path: &str) -> String {
    fold_case(path).replace('/', "\\")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn driver_version_requires_four_16_bit_numbers() {
        for bad in ["", "1.2.3", "1.2.3.4.5", "1.2.3.65536", "1.2.3.-4", "1.2.3.+4", "a.b.c.d"] {
            assert!(bad.parse::<DriverVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn listed_files_match_case_insensitively_and_with_either_separator() {
        let files = StoreFiles::Listed([r"B026261\amfrt64.dll".to_owned()].into());
        assert_eq!(files.contains(r"b026261\AMFRT64.DLL"), Some(true));
        assert_eq!(files.contains("B026261/amfrt64.dll"), Some(true));
        assert_eq!(files.contains("amfrt64.dll"), Some(false));
        assert_eq!(StoreFiles::OnDisk.contains("x"), None);
    }

    proptest! {
        #[test]
        fn driver_version_round_trips(raw: u64) {
            let version = DriverVersion(raw);
            prop_assert_eq!(version.to_string().parse(), Ok(version));
        }

        #[test]
        fn attributes_are_a_set(picks in proptest::collection::vec(0..9usize, 0..12)) {
            let picked: Vec<Attribute> = picks.iter().map(|i| Attribute::ALL[*i]).collect();
            let set: Attributes = picked.iter().copied().collect();
            for attribute in Attribute::ALL {
                prop_assert_eq!(set.has(*attribute), picked.contains(attribute));
                prop_assert_eq!(attribute.to_string().parse(), Ok(*attribute));
            }
        }
    }
}
