//! The `resources` list of a configuration file, and rules that can never match.

use devices::{
    DescriptionPattern, DeviceMatch, DriverModel, LocationPattern, PciPattern, ResourceRule, Vendor,
};
use strict_yaml::{KeyCase, Kind, Node, Place, ReadError};

use crate::MAX_MEMORY_MIB;
use crate::file::{allocation, multitenancy, resource_name, take};

/// The keys of a rule below `resources[]`.
pub const RULE_KEYS: [&str; 4] = ["name", "match", "multitenancy", "allocationPolicy"];

/// The keys of a rule's conditions below `resources[].match`.
pub const MATCH_KEYS: [&str; 6] =
    ["vendor", "description", "pciId", "minMemoryMiB", "driverModel", "locationPath"];

/// A rule and where it stands.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct FileRule {
    pub(crate) rule: ResourceRule,
    pub(crate) place: Place,
}

impl FileRule {
    /// Whether a device of `model` could match.
    pub(crate) fn is_for(&self, model: DriverModel) -> bool {
        self.rule.matches.model.is_none_or(|wanted| wanted == model)
    }
}

/// Reads the list, and refuses rules that can never match.
pub(crate) fn file_rules(node: &Node<'_>) -> Result<Vec<FileRule>, ReadError> {
    let mut rules: Vec<FileRule> = Vec::new();
    for node in node.list()? {
        let rule = FileRule { rule: rule(&node)?, place: node.place() };
        if let Some(earlier) = rules.iter().find(|e| covers(&e.rule.matches, &rule.rule.matches)) {
            let what = format!(
                "this rule can never match: the rule at line {} claims every device that it would",
                earlier.place.line()
            );
            return Err(rule.place.error(what).with_hint("put the narrower rule first"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(node: &Node<'_>) -> Result<ResourceRule, ReadError> {
    let mut map = node.mapping(KeyCase::Ignored)?;
    let rule = ResourceRule {
        name: resource_name(&map.require("name")?)?,
        // A `match` with nothing in it would claim everything, and nobody means that.
        matches: map.take("match").map(|n| conditions(&n)).transpose()?.unwrap_or_default(),
        replicas: take(&mut map, "multitenancy", multitenancy)?.map(|r| r.value),
        allocation: take(&mut map, "allocationPolicy", allocation)?.map(|a| a.value),
    };
    map.finish()?;
    Ok(rule)
}

fn conditions(node: &Node<'_>) -> Result<DeviceMatch, ReadError> {
    let mut map = node.mapping(KeyCase::Ignored)?;
    let mut condition = |key| map.take(key);
    let matches = DeviceMatch {
        vendor: condition("vendor").map(|n| n.parsed::<Vendor>()).transpose()?,
        description: condition("description").map(|n| description(&n)).transpose()?,
        pci: condition("pciId").map(|n| n.parsed::<PciPattern>()).transpose()?,
        min_memory_mib: condition("minMemoryMiB")
            .map(|n| n.integer(1..=MAX_MEMORY_MIB))
            .transpose()?,
        model: condition("driverModel").map(|n| driver_model(&n)).transpose()?,
        location: condition("locationPath").map(|n| n.parsed::<LocationPattern>()).transpose()?,
    };
    map.finish()?;
    Ok(matches)
}

fn description(node: &Node<'_>) -> Result<DescriptionPattern, ReadError> {
    if node.kind() == Kind::Text && node.text()?.is_empty() {
        let hint = "leave the key out to match every description";
        return Err(node.error("an empty pattern matches everything").with_hint(hint));
    }
    node.parsed().map_err(|e: ReadError| {
        e.with_hint(r"write a regular expression, such as tesla t4, with \( for a parenthesis")
    })
}

fn driver_model(node: &Node<'_>) -> Result<DriverModel, ReadError> {
    node.choice(&[DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy].map(|m| (m.name(), m)))
}

/// Whether every device that `narrow` matches is matched by `wide` for certain.
pub(crate) fn covers(wide: &DeviceMatch, narrow: &DeviceMatch) -> bool {
    fn implied<T>(wide: Option<&T>, narrow: Option<&T>, implies: fn(&T, &T) -> bool) -> bool {
        wide.is_none_or(|wide| narrow.is_some_and(|narrow| implies(wide, narrow)))
    }
    implied(wide.vendor.as_ref(), narrow.vendor.as_ref(), Vendor::eq)
        && implied(wide.description.as_ref(), narrow.description.as_ref(), DescriptionPattern::eq)
        && implied(wide.pci.as_ref(), narrow.pci.as_ref(), covers_prefix)
        && implied(wide.min_memory_mib.as_ref(), narrow.min_memory_mib.as_ref(), u64::le)
        && implied(wide.model.as_ref(), narrow.model.as_ref(), DriverModel::eq)
        && implied(wide.location.as_ref(), narrow.location.as_ref(), covers_prefix)
}

/// Patterns whose `*` can only be at the end: PCI ids and location paths. Of the
/// letters that Windows compares without case only ASCII's occur in them.
fn covers_prefix<T: ToString>(wide: &T, narrow: &T) -> bool {
    let (wide, narrow) = (wide.to_string(), narrow.to_string());
    let (wide, narrow) = (wide.to_ascii_uppercase(), narrow.to_ascii_uppercase());
    match wide.strip_suffix('*') {
        Some(start) => narrow.trim_end_matches('*').starts_with(start),
        None => wide == narrow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use devices::{
        Adapter, AdapterKind, Attachment, Attribute, Criteria, Device, DeviceScope, Filter,
        HardwareId, HostSnapshot, LocationPath, Luid, Placement, PnpDevice, PnpId, discover,
    };
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().expect("the tests write well-formed patterns")
    }

    /// Conditions of which many overlap.
    fn conditions() -> impl Strategy<Value = DeviceMatch> {
        (
            option::of(select(vec![Vendor::Amd, Vendor::Nvidia])),
            option::of(select(vec!["tesla", "t4"])),
            option::of(select(vec!["10de:*", "10de:0001", "10DE:0002", "1002:*", "1002:0001"])),
            option::of(1_u64..4),
            option::of(select(vec![DriverModel::Wddm, DriverModel::Mcdm])),
            option::of(select(vec!["A*", "a#b*", "A#B", "a#c", "A#BC", "b*"])),
        )
            .prop_map(|(vendor, description, pci, min_memory_mib, model, location)| {
                DeviceMatch {
                    vendor,
                    description: description.map(parsed),
                    pci: pci.map(parsed),
                    min_memory_mib,
                    model,
                    location: location.map(parsed),
                }
            })
    }

    fn device() -> impl Strategy<Value = Device> {
        (
            select(vec![0x10DE, 0x1002]),
            0_u32..3,
            option::of(1_u64..4),
            select(vec!["Tesla M60", "Tesla T4", "T4"]),
            select(vec!["A", "A#B", "a#bc", "A#C", "B"]),
        )
            .prop_map(|(vendor, device, memory, description, location)| {
                let adapter = Adapter {
                    luid: Luid(1),
                    attributes: [Attribute::D3d12Graphics].into_iter().collect(),
                    kind: AdapterKind::Hardware,
                    placement: Placement::Discrete,
                    attachment: Attachment::Fixed,
                    hardware_id: HardwareId { vendor, device, ..HardwareId::default() },
                    driver_description: description.to_owned(),
                    driver_version: None,
                    dedicated_memory_mib: memory,
                    pnp: Some(PnpDevice {
                        id: PnpId::new("PCI"),
                        description: description.to_owned(),
                        manufacturer: String::new(),
                        driver_key: None,
                        location_paths: vec![LocationPath::new(location)],
                        numa_node: None,
                        problem_code: 0,
                    }),
                    driver_store: None,
                };
                let all = Criteria {
                    filter: Filter::All,
                    integrated: DeviceScope::Include,
                    detachable: DeviceScope::Include,
                };
                let host = HostSnapshot { adapters: vec![adapter], ..HostSnapshot::default() };
                discover(&host, all).devices.remove(0)
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_refused_as_covered_could_never_match(
            wide in conditions(),
            narrow in conditions(),
            device in device(),
        ) {
            if covers(&wide, &narrow) && narrow.matches(&device, DriverModel::Wddm) {
                prop_assert!(wide.matches(&device, DriverModel::Wddm));
            }
        }

        #[test]
        fn a_rule_covers_itself_and_everything_is_covered_by_no_condition(one in conditions()) {
            prop_assert!(covers(&one, &one));
            prop_assert!(covers(&DeviceMatch::default(), &one));
        }
    }
}
