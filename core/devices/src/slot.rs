//! Slots: the units that the kubelet counts and allocates. A slot is one replica of one
//! device; the kubelet calls its ID a device ID.

use std::fmt;

use crate::PnpId;
use crate::decimal::parse_decimal;

/// A slot's ID, `<PnP instance ID>\<replica>`; replicas are counted from 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId {
    /// The device.
    pub device: PnpId,
    /// The replica.
    pub replica: u32,
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\\{}", self.device, self.replica)
    }
}

/// Splits a slot ID at its last backslash. Accepts only the spelling that [`SlotId`]
/// prints, so that two different texts never name the same slot.
pub(crate) fn split(text: &str) -> Option<(&str, u32)> {
    let (device, number) = text.rsplit_once('\\')?;
    if device.is_empty() || (number.len() > 1 && number.starts_with('0')) {
        return None;
    }
    Some((device, parse_decimal(number)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_printed_spelling_is_accepted() {
        let id = r"PCI\VEN_10DE\3&13C0B0C5&1&D8\12";
        assert_eq!(split(id), Some((r"PCI\VEN_10DE\3&13C0B0C5&1&D8", 12)));
        for bad in
            ["", "x", r"x\", r"\1", r"x\-1", r"x\+1", r"x\01", r"x\1 ", r"x\4294967296", r"x\a"]
        {
            assert_eq!(split(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn slot_ids_round_trip(device in r"\PC{1,40}", replica: u32) {
            let slot = SlotId { device: PnpId::new(&*device), replica };
            let text = slot.to_string();
            prop_assert_eq!(split(&text), Some((&*device, replica)));
        }

        #[test]
        fn parsing_never_panics_and_is_exact(text in r"\PC*") {
            if let Some((device, replica)) = split(&text) {
                let slot = SlotId { device: PnpId::new(device), replica };
                prop_assert_eq!(slot.to_string(), text);
            }
        }
    }
}
