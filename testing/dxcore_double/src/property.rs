//! What `GetProperty` answers: bytes as the documentation lays them out.

use devices::{Adapter, AdapterKind, Attachment, Placement};

/// What an adapter says to a question for a property.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The value.
    Value(Vec<u8>),
    /// The host knows the property; this adapter has none.
    NotOfThisAdapter,
    /// The host does not know the property.
    Unknown,
}

/// The adapter's answer; `property` counts as in the enumeration `DXCoreAdapterProperty`.
pub(crate) fn answer(adapter: &Adapter, property: u32) -> Answer {
    let value = match property {
        0 => Some(adapter.luid.0.to_le_bytes().to_vec()),
        1 => adapter.driver_version.map(|version| version.0.to_le_bytes().to_vec()),
        2 => Some([adapter.driver_description.as_bytes(), b"\0"].concat()),
        3 => Some(hardware_id(adapter)),
        // Model version and preemption granularities, memory of the system, guard compatibility:
        // inventories do not have them.
        4..=6 | 8..=10 => None,
        7 => adapter.dedicated_memory_mib.map(|mib| (mib << 20).to_le_bytes().to_vec()),
        11 => Some(boolean(adapter.kind == AdapterKind::Hardware)),
        12 => Some(boolean(adapter.placement == Placement::Integrated)),
        13 => Some(boolean(adapter.attachment == Attachment::Detachable)),
        14 => Some(hardware_id_parts(adapter)),
        _ => return Answer::Unknown,
    };
    value.map_or(Answer::NotOfThisAdapter, Answer::Value)
}

/// C++'s `bool`.
fn boolean(value: bool) -> Vec<u8> {
    vec![u8::from(value)]
}

/// `DXCoreHardwareID`.
fn hardware_id(adapter: &Adapter) -> Vec<u8> {
    let id = adapter.hardware_id;
    words(&[id.vendor, id.device, id.subsystem, id.revision])
}

/// `DXCoreHardwareIDParts`.
fn hardware_id_parts(adapter: &Adapter) -> Vec<u8> {
    let id = adapter.hardware_id;
    words(&[id.vendor, id.device, id.subsystem >> 16, id.subsystem & 0xFFFF, id.revision])
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use devices::{Attributes, DriverVersion, HardwareId, Luid};

    use super::*;

    fn adapter() -> Adapter {
        Adapter {
            luid: Luid(-2),
            attributes: Attributes::default(),
            kind: AdapterKind::Hardware,
            placement: Placement::Discrete,
            attachment: Attachment::Fixed,
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
    fn values_are_laid_out_as_documented() {
        let value = |property| match answer(&adapter(), property) {
            Answer::Value(bytes) => bytes,
            other => panic!("property {property}: {other:?}"),
        };
        assert_eq!(value(0), (-2i64).to_le_bytes());
        assert_eq!(value(1), [4, 0, 3, 0, 2, 0, 1, 0]);
        assert_eq!(value(2), "é\0".as_bytes());
        assert_eq!(value(3), words(&[0x10DE, 2, 0x0003_0004, 5]));
        assert_eq!((value(11), value(12), value(13)), (vec![1], vec![0], vec![0]));
        assert_eq!(value(14), words(&[0x10DE, 2, 3, 4, 5]));
    }

    #[test]
    fn missing_and_unknown_properties_are_told_apart() {
        assert_eq!(answer(&adapter(), 7), Answer::NotOfThisAdapter);
        assert_eq!(answer(&adapter(), 15), Answer::Unknown);
        let with_memory = Adapter { dedicated_memory_mib: Some(3), ..adapter() };
        assert_eq!(answer(&with_memory, 7), Answer::Value((3u64 << 20).to_le_bytes().to_vec()));
    }
}
