//! The first rule that claims a device, without comparing each device with each rule.
//!
//! Devices that differ only in their location are one class. The rules that a class may
//! match are collected once; a device then looks up its location among them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::case_folding::fold_case;
use crate::pattern::LocationKey;
use crate::{Device, DriverModel, ResourceRule, Vendor};

/// Finds rules for the devices of one driver model.
pub(crate) struct RuleFinder<'a> {
    rules: &'a [ResourceRule],
    model: DriverModel,
    classes: HashMap<Class, ClassRules<'a>>,
}

/// What the conditions of a rule compare, except the location.
#[derive(PartialEq, Eq, Hash)]
struct Class {
    description: String,
    vendor: Vendor,
    hardware_id: (u32, u32),
    memory_mib: Option<u64>,
}

/// The rules that match a class of devices, by their condition for the location. Of several
/// rules with the same condition, only the first is kept.
#[derive(Default)]
struct ClassRules<'a> {
    exact: HashMap<&'a str, usize>,
    prefixes: Vec<(&'a str, usize)>,
    any: Option<usize>,
}

impl<'a> RuleFinder<'a> {
    pub(crate) fn new(rules: &'a [ResourceRule], model: DriverModel) -> Self {
        RuleFinder { rules, model, classes: HashMap::new() }
    }

    /// The index of the first rule that matches `device`.
    pub(crate) fn find(&mut self, device: &Device) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        let class = match self.classes.entry(Class::of(device)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(ClassRules::of(self.rules, device, self.model)),
        };
        let location = device.location_path.as_ref().map(|path| fold_case(path.as_str()));
        class.find(location.as_deref())
    }
}

impl Class {
    fn of(device: &Device) -> Class {
        Class {
            description: device.description.clone(),
            vendor: device.vendor,
            hardware_id: (device.hardware_id.vendor, device.hardware_id.device),
            memory_mib: device.dedicated_memory_mib,
        }
    }
}

impl<'a> ClassRules<'a> {
    fn of(rules: &'a [ResourceRule], device: &Device, model: DriverModel) -> ClassRules<'a> {
        let mut class = ClassRules::default();
        for (n, rule) in rules.iter().enumerate() {
            if !rule.matches.matches_apart_from_location(device, model) {
                continue;
            }
            match rule.matches.location.as_ref().map(|pattern| pattern.key()) {
                Some(LocationKey::Path(path)) => {
                    class.exact.entry(path).or_insert(n);
                }
                Some(LocationKey::Prefix(prefix)) => class.prefixes.push((prefix, n)),
                None => {
                    class.any = Some(n);
                    // Later rules cannot be the first.
                    break;
                }
            }
        }
        class
    }

    fn find(&self, location: Option<&str>) -> Option<usize> {
        let by_location = location.and_then(|path| {
            let prefix = self.prefixes.iter().find(|(prefix, _)| path.starts_with(prefix));
            let exact = self.exact.get(path).copied();
            exact.into_iter().chain(prefix.map(|(_, n)| *n)).min()
        });
        by_location.or(self.any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DriverFiles;
    use crate::{
        Adapter, AdapterKind, Attachment, Attribute, DeviceMatch, HardwareId, LocationPath, Luid,
        Placement, PnpDevice, PnpId,
    };
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn rule() -> impl Strategy<Value = ResourceRule> {
        let description = option::of(select(vec!["t4", "tesla"]));
        let location = option::of(select(vec!["A*", "a#b", "A#B", "a#b*", "B", "*"]));
        (description, option::of(1_u64..3), location).prop_map(|(description, memory, location)| {
            let location = location.filter(|text| *text != "*");
            ResourceRule {
                name: "a/b".parse().unwrap(),
                matches: DeviceMatch {
                    description: description.map(|text| text.parse().unwrap()),
                    min_memory_mib: memory,
                    location: location.map(|text| text.parse().unwrap()),
                    ..DeviceMatch::default()
                },
                replicas: None,
                allocation: None,
                visibility: None,
            }
        })
    }

    fn device() -> impl Strategy<Value = Device> {
        let description = select(vec!["Tesla M60", "Tesla T4", "L4"]);
        let location = option::of(select(vec!["A", "A#B", "a#bc", "B"]));
        (description, option::of(1_u64..3), location).prop_map(|(description, memory, location)| {
            let pnp = PnpDevice {
                id: PnpId::new("PCI"),
                description: description.to_owned(),
                manufacturer: String::new(),
                driver_key: None,
                driver_date: None,
                location_paths: location.into_iter().map(LocationPath::new).collect(),
                numa_node: None,
                problem_code: 0,
            };
            let adapter = Adapter {
                luid: Luid(1),
                attributes: [Attribute::D3d12Graphics].into_iter().collect(),
                kind: AdapterKind::Hardware,
                placement: Placement::Discrete,
                attachment: Attachment::Fixed,
                hardware_id: HardwareId::default(),
                driver_description: String::new(),
                driver_version: None,
                dedicated_memory_mib: memory,
                pnp: None,
                driver_store: None,
            };
            Device::new(&adapter, &pnp, DriverFiles::default())
        })
    }

    proptest! {
        #[test]
        fn finds_the_rule_that_comparing_with_each_finds(
            rules in vec(rule(), 0..8),
            devices in vec(device(), 1..8),
        ) {
            let model = DriverModel::Wddm;
            let mut finder = RuleFinder::new(&rules, model);
            for device in &devices {
                let first = rules.iter().position(|rule| rule.matches.matches(device, model));
                prop_assert_eq!(finder.find(device), first);
            }
        }
    }
}
