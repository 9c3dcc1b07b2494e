//! The `resources` list of a configuration file, and rules that can never match.

use devices::{
    AllocationPolicy, DescriptionPattern, DeviceMatch, DriverModel, LocationPattern, PciPattern,
    ResourceName, ResourceRule, Visibility,
};
use host::{DeviceKind, Vendor};
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::any_case::AnyCase;
use crate::reference::KeyReference;
use crate::values::{Choice, MAX_MEMORY_MIB, MAX_MULTITENANCY, Number, Parsed, positive, present};
use crate::{Place, ReadError};

/// The keys of a rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RuleFile {
    name: Parsed<ResourceName>,
    // An empty `match` would claim every device; that is certainly a mistake.
    #[serde(default, rename = "match", deserialize_with = "present")]
    matches: Option<AnyCase<MatchFile>>,
    multitenancy: Option<Number<0, MAX_MULTITENANCY>>,
    allocation_policy: Option<Parsed<Choice<AllocationPolicy>>>,
    visibility: Option<Parsed<Choice<Visibility>>>,
}

/// The keys of a rule's conditions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct MatchFile {
    #[serde(default, deserialize_with = "present")]
    vendor: Option<Parsed<Vendor>>,
    #[serde(default, deserialize_with = "present")]
    kind: Option<Parsed<Choice<DeviceKind>>>,
    #[serde(default, deserialize_with = "present")]
    description: Option<Parsed<DescriptionPattern>>,
    #[serde(default, deserialize_with = "present")]
    pci_id: Option<Parsed<PciPattern>>,
    #[serde(default, rename = "minMemoryMiB", deserialize_with = "present")]
    min_memory_mib: Option<Number<1, MAX_MEMORY_MIB>>,
    #[serde(default, deserialize_with = "present")]
    driver_model: Option<Parsed<Choice<DriverModel>>>,
    #[serde(default, deserialize_with = "present")]
    location_path: Option<Parsed<LocationPattern>>,
}

/// The key of the list of rules.
pub(crate) fn reference() -> KeyReference {
    KeyReference {
        key: "resources",
        values: "list of [rules](#rules)".to_owned(),
        default: None,
        meaning: "separate resources for some of the devices",
        example: "[{name: example.com/t4, match: {vendor: nvidia, kind: gpu, \
                  description: 'tesla t4|L4$', pciId: '10de:*', minMemoryMiB: 15000, \
                  driverModel: wddm, locationPath: 'PCIROOT(0)*'}, multitenancy: 2, \
                  allocationPolicy: distributed, visibility: off}, {name: example.com/rest}]",
    }
}

/// A rule and its place.
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

/// The rules of the file `name`; a rule that can never match is an error.
pub(crate) fn file_rules(
    name: &str,
    list: Vec<Spanned<AnyCase<RuleFile>>>,
) -> Result<Vec<FileRule>, ReadError> {
    let mut rules: Vec<FileRule> = Vec::new();
    for (n, file) in list.into_iter().enumerate() {
        let place = Place::of(name, &file, format!("resources[{n}]"));
        let rule = FileRule { rule: rule(file.value.0), place };
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

fn rule(file: RuleFile) -> ResourceRule {
    ResourceRule {
        name: file.name.0,
        matches: file.matches.map(|AnyCase(matches)| conditions(matches)).unwrap_or_default(),
        replicas: file.multitenancy.map(positive),
        allocation: file.allocation_policy.map(|policy| policy.0.0),
        visibility: file.visibility.map(|choice| choice.0.0),
    }
}

fn conditions(file: MatchFile) -> DeviceMatch {
    DeviceMatch {
        vendor: file.vendor.map(|vendor| vendor.0),
        kind: file.kind.map(|kind| kind.0.0),
        description: file.description.map(|description| description.0),
        pci: file.pci_id.map(|pattern| pattern.0),
        min_memory_mib: file.min_memory_mib.map(|memory| memory.0),
        model: file.driver_model.map(|model| model.0.0),
        location: file.location_path.map(|pattern| pattern.0),
    }
}

/// Whether `wide` certainly matches every device that `narrow` matches.
pub(crate) fn covers(wide: &DeviceMatch, narrow: &DeviceMatch) -> bool {
    fn implied<T>(wide: Option<&T>, narrow: Option<&T>, implies: fn(&T, &T) -> bool) -> bool {
        wide.is_none_or(|wide| narrow.is_some_and(|narrow| implies(wide, narrow)))
    }
    // Only a rule that names a basic adapter matches it.
    let needs_pci = narrow.pci.is_some_and(|pci| pci.names_basic_adapter());
    (wide.pci.is_some() || !needs_pci)
        && implied(wide.vendor.as_ref(), narrow.vendor.as_ref(), Vendor::eq)
        && implied(wide.kind.as_ref(), narrow.kind.as_ref(), DeviceKind::eq)
        && implied(wide.description.as_ref(), narrow.description.as_ref(), DescriptionPattern::eq)
        && implied(wide.pci.as_ref(), narrow.pci.as_ref(), PciPattern::covers)
        && implied(wide.min_memory_mib.as_ref(), narrow.min_memory_mib.as_ref(), u64::le)
        && implied(wide.model.as_ref(), narrow.model.as_ref(), DriverModel::eq)
        && implied(wide.location.as_ref(), narrow.location.as_ref(), LocationPattern::covers)
}

#[cfg(test)]
mod tests {
    use devices::{Criteria, Device, discover};
    use host::{
        Adapter, Attribute, HardwareId, HostSnapshot, LocationPath, Luid, PnpDevice, PnpId,
    };
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().expect("the tests write well-formed patterns")
    }

    /// Conditions. Many of them overlap.
    fn conditions() -> impl Strategy<Value = DeviceMatch> {
        (
            option::of(select(vec![Vendor::Amd, Vendor::Nvidia, Vendor::Microsoft])),
            option::of(select(vec![DeviceKind::Gpu, DeviceKind::Npu])),
            option::of(select(vec!["tesla", "t4"])),
            option::of(select(vec![
                "10de:*",
                "10de:0001",
                "10DE:0002",
                "1002:*",
                "1002:0001",
                "1414:*",
                "1414:008c",
                "1414:008e",
            ])),
            option::of(1_u64..4),
            option::of(select(vec![DriverModel::Wddm, DriverModel::Mcdm])),
            option::of(select(vec!["A*", "a#b*", "A#B", "a#c", "A#BC", "b*"])),
        )
            .prop_map(
                |(vendor, kind, description, pci, min_memory_mib, model, location)| DeviceMatch {
                    vendor,
                    kind,
                    description: description.map(parsed),
                    pci: pci.map(parsed),
                    min_memory_mib,
                    model,
                    location: location.map(parsed),
                },
            )
    }

    fn device() -> impl Strategy<Value = Device> {
        (
            prop_oneof![
                (select(vec![0x10DE, 0x1002]), 0_u32..3),
                (Just(0x1414), select(vec![0x008C, 0x008E])),
            ],
            select(vec![Attribute::D3d12Graphics, Attribute::Npu]),
            option::of(1_u64..4),
            select(vec!["Tesla M60", "Tesla T4", "T4"]),
            select(vec!["A", "A#B", "a#bc", "A#C", "B"]),
        )
            .prop_map(|((vendor, device), attribute, memory, description, location)| {
                let adapter = Adapter {
                    luid: Luid(1),
                    attributes: [attribute].into_iter().collect(),
                    hardware: true,
                    integrated: false,
                    detachable: false,
                    indirect_display: false,
                    hardware_id: HardwareId { vendor, device, ..HardwareId::default() },
                    driver_description: description.to_owned(),
                    driver_version: None,
                    dedicated_memory_mib: memory,
                    load: None,
                    nvidia: host::NvidiaFacts::default(),
                    pnp: Some(PnpDevice {
                        id: PnpId::new("PCI"),
                        description: description.to_owned(),
                        manufacturer: String::new(),
                        driver_key: None,
                        location_paths: vec![LocationPath::new(location)],
                        driver_date: None,
                        numa_node: None,
                        problem_code: 0,
                    }),
                    driver_store: None,
                };
                let all = Criteria { include_basic: true, ..Criteria::ALL };
                let host = HostSnapshot { adapters: vec![adapter], ..HostSnapshot::default() };
                discover(&host, all).devices.remove(0)
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_rule_refused_as_unreachable_can_never_match(
            wide in conditions(),
            narrow in conditions(),
            device in device(),
        ) {
            if covers(&wide, &narrow) && narrow.matches(&device, DriverModel::Wddm) {
                prop_assert!(wide.matches(&device, DriverModel::Wddm));
            }
        }

        #[test]
        fn a_rule_covers_itself_and_no_condition_covers_all_but_basic_adapters(
            one in conditions(),
        ) {
            prop_assert!(covers(&one, &one));
            let is_basic = one.pci == Some(parsed("1414:008c"));
            prop_assert_eq!(covers(&DeviceMatch::default(), &one), !is_basic);
        }
    }
}
