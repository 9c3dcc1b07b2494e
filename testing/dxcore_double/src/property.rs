//! The bytes that `GetProperty` returns, in the documented layout.

use host::Adapter;

/// The properties in the order of the enumeration `DXCoreAdapterProperty`.
const NAMES: [&str; 15] = [
    "InstanceLuid",
    "DriverVersion",
    "DriverDescription",
    "HardwareID",
    "KmdModelVersion",
    "ComputePreemptionGranularity",
    "GraphicsPreemptionGranularity",
    "DedicatedAdapterMemory",
    "DedicatedSystemMemory",
    "SharedSystemMemory",
    "AcgCompatible",
    "IsHardware",
    "IsIntegrated",
    "IsDetachable",
    "HardwareIDParts",
];

/// The number of the property with this name.
pub(crate) fn number(name: &str) -> Option<u32> {
    u32::try_from(NAMES.iter().position(|known| *known == name)?).ok()
}

/// The result of reading a property of an adapter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PropertyValue {
    /// The value.
    Bytes(Vec<u8>),
    /// The host knows the property, but this adapter does not support it.
    NotSupported,
    /// The host does not know the property.
    Unknown,
}

/// The value of a property, given by its number in the enumeration `DXCoreAdapterProperty`.
pub(crate) fn property_value(adapter: &Adapter, property: u32) -> PropertyValue {
    let value = match property {
        0 => Some(adapter.luid.0.to_le_bytes().to_vec()),
        1 => adapter.driver_version.map(|version| version.0.to_le_bytes().to_vec()),
        2 => Some([adapter.driver_description.as_bytes(), b"\0"].concat()),
        3 => Some(hardware_id(adapter)),
        // Driver model version, preemption granularities, system memory and guard
        // compatibility: inventories do not record them.
        4..=6 | 8..=10 => None,
        7 => adapter.dedicated_memory_mib.map(|mib| (mib << 20).to_le_bytes().to_vec()),
        11 => Some(boolean(adapter.hardware)),
        12 => Some(boolean(adapter.integrated)),
        13 => Some(boolean(adapter.detachable)),
        14 => Some(hardware_id_parts(adapter)),
        _ => return PropertyValue::Unknown,
    };
    value.map_or(PropertyValue::NotSupported, PropertyValue::Bytes)
}

/// C++'s `bool`.
fn boolean(value: bool) -> Vec<u8> {
    vec![u8::from(value)]
}

/// `DXCoreHardwareID`.
fn hardware_id(adapter: &Adapter) -> Vec<u8> {
    let id = adapter.hardware_id;
    dwords(&[id.vendor, id.device, id.subsystem, id.revision])
}

/// `DXCoreHardwareIDParts`.
fn hardware_id_parts(adapter: &Adapter) -> Vec<u8> {
    let id = adapter.hardware_id;
    dwords(&[id.vendor, id.device, id.subsystem >> 16, id.subsystem & 0xFFFF, id.revision])
}

fn dwords(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
