//! The IDs of replicas, the units that the kubelet counts and allocates. The kubelet calls the ID
//! of a replica a device ID.

use std::fmt;

use crate::PnpId;
use crate::text::parse::parse_decimal;

/// A replica's ID, `<PnP instance ID>\<number>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplicaId {
    pub device: PnpId,
    /// From 0.
    pub number: u32,
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\\{}", self.device, self.number)
    }
}

impl ReplicaId {
    /// Splits a replica ID at its last backslash. `None` if no replica ID prints as this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<ReplicaId> {
        let (device, number) = text.rsplit_once('\\')?;
        if device.is_empty() || (number.len() > 1 && number.starts_with('0')) {
            return None;
        }
        Some(ReplicaId { device: PnpId::new(device), number: parse_decimal(number)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_printed_spelling_is_accepted() {
        let id = r"PCI\VEN_10DE\3&13C0B0C5&1&D8\12";
        let device = PnpId::new(r"PCI\VEN_10DE\3&13C0B0C5&1&D8");
        assert_eq!(ReplicaId::parse(id), Some(ReplicaId { device, number: 12 }));
        for bad in
            ["", "x", r"x\", r"\1", r"x\-1", r"x\+1", r"x\01", r"x\1 ", r"x\4294967296", r"x\a"]
        {
            assert_eq!(ReplicaId::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn ids_round_trip(device in r"\PC{1,40}", number: u32) {
            let replica = ReplicaId { device: PnpId::new(&*device), number };
            let parsed = ReplicaId::parse(&replica.to_string()).unwrap();
            prop_assert_eq!(parsed.to_string(), replica.to_string());
            prop_assert_eq!(parsed, replica);
        }

        #[test]
        fn parsing_never_panics_and_is_exact(text in r"\PC*") {
            if let Some(replica) = ReplicaId::parse(&text) {
                prop_assert_eq!(replica.to_string(), text);
            }
        }
    }
}
