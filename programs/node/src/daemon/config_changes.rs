//! The keys in which two configurations differ. Pure.

use config::Config;
use devices::DriverModel;

/// The key of the resource rules.
const RULES: &str = "resources";

/// A key with another value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyChange {
    /// The driver model it applies to; `None` means the whole program.
    pub(crate) model: Option<DriverModel>,
    pub(crate) key: &'static str,
    pub(crate) before: String,
    /// Equal to `before` if only the conditions or options of rules have changed.
    pub(crate) after: String,
}

/// The keys in which `after` differs from `before`.
pub(crate) fn changed_keys(before: &Config, after: &Config) -> Vec<KeyChange> {
    let mut changes: Vec<KeyChange> = Vec::new();
    for value in after.effective.iter().chain(&before.effective) {
        let (model, key) = (value.model, value.key);
        if changes.iter().any(|change| change.model == model && change.key == key) {
            continue;
        }
        let (old, new) = (value_of(before, model, key), value_of(after, model, key));
        if old != new || key == RULES && rules(before, model) != rules(after, model) {
            changes.push(KeyChange { model, key, before: old, after: new });
        }
    }
    changes
}

/// The value of a key; for rules, the names of their resources.
fn value_of(config: &Config, model: Option<DriverModel>, key: &str) -> String {
    let values = config.effective.iter().filter(|value| value.model == model && value.key == key);
    values.map(|value| value.value.as_str()).collect::<Vec<_>>().join(", ")
}

fn rules(config: &Config, model: Option<DriverModel>) -> Option<&[devices::ResourceRule]> {
    let policy = config.policy.models.iter().find(|policy| Some(policy.model) == model)?;
    Some(&policy.rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::config_source;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, text).unwrap();
        config_source::load(&[DriverModel::Wddm], Some(file)).unwrap()
    }

    fn changes(before: &str, after: &str) -> Vec<String> {
        let changes = changed_keys(&config(before), &config(after));
        let text = |c: KeyChange| format!("{}: {} -> {}", c.key, c.before, c.after);
        changes.into_iter().map(text).collect()
    }

    #[test]
    fn every_key_with_another_value_is_named_once() {
        assert_eq!(changes("multitenancy: 2", "# moved\nmultitenancy: 2"), [""; 0]);
        assert_eq!(changes("multitenancy: 2", ""), ["multitenancy: 2 -> 1"]);
        assert_eq!(
            changes("", "multitenancy: 2\nmultiDevice: reject"),
            ["multitenancy: 1 -> 2", "multiDevice: class -> reject"]
        );
        let rules = "resources: [{name: a/b, match: {vendor: amd}}, {name: c/d}]";
        assert_eq!(changes("", rules), ["resources:  -> a/b, c/d"]);
        assert_eq!(changes(rules, ""), ["resources: a/b, c/d -> "]);
        let other = rules.replace("amd", "nvidia");
        assert_eq!(changes(rules, &other), ["resources: a/b, c/d -> a/b, c/d"]);
    }
}
