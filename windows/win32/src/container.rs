//! Whether this program runs inside a container.
//!
//! The registry of a container has a value that no host has; .NET and `PerfView` use it for the
//! same purpose. A `HostProcess` container sees the registry of its host, and so counts as the
//! host. The driver's folder does not decide: Windows names it `HostDriverStore` in
//! containers, but also in virtual machines with a paravirtualized GPU (GPU-PV).

use devices::DiscoveredFrom;

use crate::copy_to_vm::RawValue;

/// The value's name, in `HKLM\SYSTEM\CurrentControlSet\Control`. Its data is the kind of
/// container, which does not matter here.
pub(crate) const VALUE: &str = "ContainerType";

/// Where this program runs, given the value [`VALUE`].
pub(crate) fn discovered_from(value: Option<&RawValue>) -> DiscoveredFrom {
    match value {
        Some(_) => DiscoveredFrom::Container,
        None => DiscoveredFrom::Host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_container_type_is_a_container() {
        assert_eq!(discovered_from(None), DiscoveredFrom::Host);
        for number in [0_u32, 1, 2] {
            let data = number.to_le_bytes().to_vec();
            let value = RawValue { name: VALUE.to_owned(), kind: 4, data };
            assert_eq!(discovered_from(Some(&value)), DiscoveredFrom::Container, "{number}");
        }
    }
}
