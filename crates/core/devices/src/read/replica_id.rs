//! The IDs of replicas, the units that the kubelet counts and allocates. The kubelet calls the ID
//! of a replica a device ID.

use std::fmt;

use crate::PnpId;
use crate::text::parse::parse_decimal;

/// A replica's ID, `<PnP instance ID>\<number>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplicaId {
    /// The device.
    pub device: PnpId,
    /// The number of the replica, from 0.
    pub number: u32,
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\\{}", self.device, self.number)
    }
}

/// Splits a replica ID at its last backslash. Accepts only the spelling that [`ReplicaId`]
/// prints, so that two different texts never name the same replica.
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
        fn ids_round_trip(device in r"\PC{1,40}", number: u32) {
            let replica = ReplicaId { device: PnpId::new(&*device), number };
            let text = replica.to_string();
            prop_assert_eq!(split(&text), Some((&*device, number)));
        }

        #[test]
        fn parsing_never_panics_and_is_exact(text in r"\PC*") {
            if let Some((device, number)) = split(&text) {
                let replica = ReplicaId { device: PnpId::new(device), number };
                prop_assert_eq!(replica.to_string(), text);
            }
        }
    }
}
