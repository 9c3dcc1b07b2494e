//! Other words for the keys of a file. They are not typing mistakes.

/// Keys, each with other words for it. A word may stand for several keys: the struct of a mapping
/// says which of them it has. Words have no capitals, dashes and underscores.
const SYNONYMS: [(&str, &[&str]); 31] = [
    // Conditions of a rule.
    ("description", &["name", "model", "product", "gpu", "gpumodel", "card", "adapter", "device"]),
    ("pciId", &["id", "pci", "deviceid", "hardwareid", "pciids"]),
    (
        "minMemoryMiB",
        &[
            "memory",
            "memorymib",
            "memorygib",
            "minmemory",
            "minmemorygib",
            "vram",
            "dedicatedmemory",
        ],
    ),
    ("driverModel", &["driver", "mode", "drivermode"]),
    ("locationPath", &["location", "path", "slot", "bus", "busid", "pcibusid", "address"]),
    ("kind", &["type", "class", "category", "devicetype"]),
    ("vendor", &["manufacturer", "brand", "make"]),
    // A rule.
    ("name", &["resource", "resourcename"]),
    ("match", &["matches", "matchlabels", "selector", "filter", "where", "when", "conditions"]),
    // A rule or the top of a file.
    ("multitenancy", &["count", "shares", "shared", "tenants", "slots", "maxpods", "timeslices"]),
    ("allocationPolicy", &["policy", "allocation", "placement", "strategy"]),
    // The top of a configuration.
    ("resources", &["rules", "resourcerules", "groups"]),
    ("resourceName", &["name", "resource"]),
    ("removalGraceSeconds", &["grace", "graceperiod", "graceseconds", "graceperiodseconds"]),
    ("cordonedDevices", &["cordon", "cordoned", "excludedevices", "ignoredevices", "disabled"]),
    ("excludeMounts", &["exclude", "excludefiles", "skipmounts", "ignoremounts"]),
    ("additionalMounts", &["mounts", "files", "extramounts", "extrafiles"]),
    ("environmentHints", &["env", "envs", "environment", "hints", "variables"]),
    ("publishNuma", &["numa", "topology"]),
    ("includeIntegrated", &["integrated", "igpu"]),
    ("includeDetachable", &["detachable", "external", "egpu"]),
    // A mount.
    ("source", &["src", "from", "path", "file", "hostpath"]),
    ("destination", &["dst", "dest", "to", "target", "containerpath", "mountpath"]),
    // An inventory.
    ("adapters", &["gpus", "devices", "cards"]),
    ("driverDescription", &["name", "model", "product", "description"]),
    ("dedicatedMemoryMiB", &["memory", "memorymib", "vram", "dedicatedmemory"]),
    ("hardwareId", &["vendorid", "deviceid", "pciid", "pci", "ids"]),
    ("driverVersion", &["version", "driver"]),
    ("pnp", &["pnpid", "instanceid", "deviceinstanceid"]),
    ("problemCode", &["problem", "code", "status", "error"]),
    ("build", &["version", "osversion", "os"]),
];

/// The key of `expected` that `word` stands for: its other spelling, or a word for the same thing.
pub(crate) fn synonym(word: &str, expected: &[&'static str]) -> Option<&'static str> {
    let word = plain(word);
    let keys = || expected.iter().copied();
    // `gpuName` is the name of a GPU.
    let stem = word.strip_suffix("name").unwrap_or(&word);
    let means = |key: &&str| {
        let is_word = |other: &&str| *other == word || *other == stem;
        SYNONYMS.iter().any(|(meant, words)| meant == key && words.iter().any(is_word))
    };
    let is_key = |key: &&str| plain(key) == word || plain(key) == stem;
    keys().find(is_key).or_else(|| keys().find(means))
}

/// A name as it is compared: without case, dashes and underscores.
pub(crate) fn plain(name: &str) -> String {
    name.replace(['-', '_', ' '], "").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_the_key_that_the_mapping_has() {
        let of_match = ["vendor", "description", "pciId"];
        let of_adapter = ["driverDescription", "pnp", "hardwareId"];
        for (word, in_match, in_adapter) in [
            ("model", Some("description"), Some("driverDescription")),
            ("Name", Some("description"), Some("driverDescription")),
            ("device-id", Some("pciId"), Some("hardwareId")),
            ("PCI_ID", Some("pciId"), Some("hardwareId")),
            ("manufacturer", Some("vendor"), None),
            ("modelName", Some("description"), Some("driverDescription")),
            ("nonsense", None, None),
        ] {
            assert_eq!(synonym(word, &of_match), in_match, "{word}");
            assert_eq!(synonym(word, &of_adapter), in_adapter, "{word}");
        }
    }

    #[test]
    fn every_word_is_compared_as_it_is_written() {
        for (key, words) in SYNONYMS {
            for word in words {
                assert_eq!(plain(word), *word, "{key}");
            }
        }
    }
}
