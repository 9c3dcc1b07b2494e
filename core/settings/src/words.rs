//! Values in words: the ones that files are written in, and for telling people.

use std::num::NonZeroU32;
use std::time::Duration;

use devices::{
    AdditionalMounts, AllocationPolicy, DeviceScope, EnvironmentHints, FileName, MultiDevice,
    NumaTopology, ResourceName, RuntimeMounts,
};

pub(crate) const RUNTIME_MOUNTS: [(&str, RuntimeMounts); 3] = [
    ("auto", RuntimeMounts::Auto),
    ("always", RuntimeMounts::Always),
    ("never", RuntimeMounts::Never),
];
pub(crate) const ALLOCATION: [(&str, AllocationPolicy); 2] =
    [("distributed", AllocationPolicy::Distributed), ("packed", AllocationPolicy::Packed)];
pub(crate) const MULTI_DEVICE: [(&str, MultiDevice); 2] =
    [("class", MultiDevice::Class), ("reject", MultiDevice::Reject)];

/// A value as it is told.
pub(crate) trait Words {
    fn words(&self) -> String;
}

impl Words for RuntimeMounts {
    fn words(&self) -> String {
        named(&RUNTIME_MOUNTS, self)
    }
}

impl Words for AllocationPolicy {
    fn words(&self) -> String {
        named(&ALLOCATION, self)
    }
}

impl Words for MultiDevice {
    fn words(&self) -> String {
        named(&MULTI_DEVICE, self)
    }
}

impl Words for DeviceScope {
    fn words(&self) -> String {
        (*self == DeviceScope::Include).to_string()
    }
}

impl Words for NumaTopology {
    fn words(&self) -> String {
        (*self == NumaTopology::Publish).to_string()
    }
}

impl Words for EnvironmentHints {
    fn words(&self) -> String {
        (*self == EnvironmentHints::Set).to_string()
    }
}

impl Words for Duration {
    fn words(&self) -> String {
        self.as_secs().to_string()
    }
}

impl Words for NonZeroU32 {
    fn words(&self) -> String {
        self.to_string()
    }
}

impl Words for ResourceName {
    fn words(&self) -> String {
        self.to_string()
    }
}

impl Words for String {
    fn words(&self) -> String {
        self.clone()
    }
}

impl Words for Vec<FileName> {
    fn words(&self) -> String {
        listed(self.iter().map(ToString::to_string))
    }
}

impl Words for AdditionalMounts {
    fn words(&self) -> String {
        listed(self.iter().flat_map(|(vendor, files)| {
            files.iter().map(move |f| format!("{vendor}: {} => {}", f.source, f.destination))
        }))
    }
}

fn named<T: PartialEq>(table: &[(&str, T)], value: &T) -> String {
    let entry = table.iter().find(|(_, named)| named == value);
    entry.expect("the tables name every value").0.to_owned()
}

fn listed(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
