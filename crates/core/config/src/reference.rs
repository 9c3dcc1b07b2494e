//! What the documentation says about the keys of a configuration file.

use strum::VariantNames;

use crate::keys::keys_of;
use crate::setting_types::{AtLine, List, MountFile, Mounts, PerModel, Switch};
use crate::values::{Choice, Number, Parsed};

/// A key of a configuration file, as the documentation describes it in Markdown.
#[derive(Clone, Debug)]
pub struct KeyReference {
    pub key: &'static str,
    /// The values that it can have.
    pub values: String,
    /// The default for the driver model `wddm`, if there is one.
    pub default: Option<String>,
    pub meaning: &'static str,
    /// A value in YAML. The examples of all keys together are a valid file.
    pub example: &'static str,
}

/// A type whose values the documentation describes.
pub(crate) trait Described {
    /// The values in Markdown.
    fn values() -> String;

    /// The keys of a mapping in a value, if it has some.
    fn nested_keys() -> &'static [&'static str] {
        &[]
    }
}

impl<const MIN: u64, const MAX: u64> Described for Number<MIN, MAX> {
    fn values() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }
}

impl Described for Switch {
    fn values() -> String {
        "`true` or `false`".to_owned()
    }
}

impl<T: VariantNames> Described for Choice<T> {
    fn values() -> String {
        let names = T::VARIANTS.iter().map(|name| format!("`{name}`"));
        let names = names.collect::<Vec<_>>().join(", ");
        match names.rsplit_once(", ") {
            Some((first, last)) => format!("{first} or {last}"),
            None => names,
        }
    }
}

impl<T: Described> Described for Parsed<T> {
    fn values() -> String {
        T::values()
    }
}

impl<T: Described> Described for AtLine<T> {
    fn values() -> String {
        T::values()
    }
}

impl<T: Described> Described for PerModel<T> {
    fn values() -> String {
        let values = T::values();
        format!("{values}, or driver model → {values}")
    }
}

impl<T: Described> Described for List<T> {
    fn values() -> String {
        format!("list of {}", T::values())
    }
}

impl Described for Mounts {
    fn values() -> String {
        "vendor → list of [mounts](#mounts)".to_owned()
    }

    fn nested_keys() -> &'static [&'static str] {
        keys_of::<MountFile>()
    }
}
