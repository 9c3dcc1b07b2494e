//! The bytes that `GetProperty` returns, in the documented layout.

use devices::Adapter;

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

#[cfg(test)]
mod tests {
    use devices::{Attributes, DriverVersion, HardwareId, Luid};

    use super::*;

    fn adapter() -> Adapter {
        Adapter {
            luid: Luid(-2),
            attributes: Attributes::default(),
            hardware: true,
            integrated: false,
            detachable: false,
            hardware_id: HardwareId {
                vendor: 0x10DE,
                device: 2,
                subsystem: 0x0003_0004,
                revision: 5,
            },
            driver_description: "é".to_owned(),
            driver_version: Some(DriverVersion(0x0001_0002_0003_0004)),
            dedicated_memory_mib: None,
            pnp: None,
            driver_store: None,
        }
    }

    #[test]
    fn values_have_the_documented_layout() {
        let value = |property| match property_value(&adapter(), property) {
            PropertyValue::Bytes(bytes) => bytes,
            other => panic!("property {property}: {other:?}"),
        };
        assert_eq!(value(0), (-2i64).to_le_bytes());
        assert_eq!(value(1), [4, 0, 3, 0, 2, 0, 1, 0]);
        assert_eq!(value(2), "é\0".as_bytes());
        assert_eq!(value(3), dwords(&[0x10DE, 2, 0x0003_0004, 5]));
        assert_eq!((value(11), value(12), value(13)), (vec![1], vec![0], vec![0]));
        assert_eq!(value(14), dwords(&[0x10DE, 2, 3, 4, 5]));
    }

    #[test]
    fn unsupported_and_unknown_properties_are_distinguished() {
        assert_eq!(property_value(&adapter(), 7), PropertyValue::NotSupported);
        assert_eq!(property_value(&adapter(), 15), PropertyValue::Unknown);
        let with_memory = Adapter { dedicated_memory_mib: Some(3), ..adapter() };
        assert_eq!(
            property_value(&with_memory, 7),
            PropertyValue::Bytes((3u64 << 20).to_le_bytes().to_vec())
        );
    }
}
