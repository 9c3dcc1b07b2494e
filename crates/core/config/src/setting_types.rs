//! The types of the settings, as a file and a variable spell them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use devices::{AdditionalMount, AdditionalMounts, Destination, DestinationError, DriverModel};
use host::{StorePattern, Vendor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use crate::Place;
use crate::any_case::AnyCase;
use crate::values::{Entries, Parsed, TextOr, present};

/// The type of a setting of a driver model.
pub(crate) trait Setting: Sized {
    /// What a file contains, which several driver models may read.
    type InFile: DeserializeOwned;

    /// The value for `model`; `None` if the file sets none for it.
    fn of(file: Self::InFile, model: DriverModel) -> Option<Self>;
}

/// What a file contains for a setting.
pub(crate) type InFile<T> = <T as Setting>::InFile;

/// A type that a file contains as it is has one value for every driver model.
impl<T: DeserializeOwned> Setting for T {
    type InFile = T;

    fn of(file: T, _model: DriverModel) -> Option<T> {
        Some(file)
    }
}

/// A value for which a file may map driver models to values. It does not implement `Deserialize`,
/// so that a file cannot contain it without the driver models.
#[derive(Debug)]
pub(crate) struct PerModel<T>(pub(crate) T);

impl<T: FromStr<Err: Display>> Setting for PerModel<T> {
    type InFile = ModelValues<T>;

    fn of(file: ModelValues<T>, model: DriverModel) -> Option<PerModel<T>> {
        match file {
            ModelValues::Every(value) => Some(PerModel(value)),
            ModelValues::Each(mut values) => {
                values.remove(&model).map(|Parsed(value)| PerModel(value))
            }
        }
    }
}

/// One value for every driver model, or driver model → value.
#[derive(Deserialize, Debug)]
#[serde(bound = "T: FromStr<Err: Display>", try_from = "TextOr<Entries<DriverModel, Parsed<T>>>")]
pub(crate) enum ModelValues<T> {
    Every(T),
    Each(BTreeMap<DriverModel, Parsed<T>>),
}

impl<T: FromStr> TryFrom<TextOr<Entries<DriverModel, Parsed<T>>>> for ModelValues<T> {
    type Error = T::Err;

    fn try_from(file: TextOr<Entries<DriverModel, Parsed<T>>>) -> Result<Self, T::Err> {
        match file {
            TextOr::Text(text) => text.parse().map(ModelValues::Every),
            TextOr::Several(Entries(values)) => Ok(ModelValues::Each(values)),
        }
    }
}

/// A value and its line, if it is in a file. Errors that compare several settings name the line.
#[derive(Clone, Debug)]
pub(crate) struct AtLine<T> {
    pub(crate) value: T,
    line: Option<u32>,
}

impl<T> AtLine<T> {
    /// The place of this value of `key`, if it is in `file`.
    pub(crate) fn place(&self, file: Option<&str>, key: &str) -> Option<Place> {
        Some(Place::at(file?, self.line?, key))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AtLine<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        let line = u32::try_from(spanned.referenced.line()).ok();
        Ok(AtLine { value: spanned.value, line })
    }
}

impl<T: FromStr> FromStr for AtLine<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(|value| AtLine { value, line: None })
    }
}

/// `true` or `false`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Switch(pub(crate) bool);

/// Variables may also have the spellings of Go's `strconv.ParseBool`, which the earlier plugins
/// used, and of YAML 1.1.
impl FromStr for Switch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "yes" | "on" => Ok(Switch(true)),
            "0" | "f" | "false" | "no" | "off" => Ok(Switch(false)),
            _ => Err("expected true or false"),
        }
    }
}

/// A list of texts.
#[derive(Deserialize, Clone, Debug)]
#[serde(bound = "T: FromStr<Err: Display>")]
pub(crate) struct List<T>(Vec<Parsed<T>>);

impl<T> From<List<T>> for Vec<T> {
    fn from(list: List<T>) -> Vec<T> {
        list.0.into_iter().map(|Parsed(value)| value).collect()
    }
}

/// Additional mounts: vendor → list of files.
#[derive(Deserialize, Clone, Debug)]
#[serde(from = "Entries<Vendor, Option<Vec<AnyCase<Mount>>>>")]
pub(crate) struct Mounts(pub(crate) AdditionalMounts);

impl From<Entries<Vendor, Option<Vec<AnyCase<Mount>>>>> for Mounts {
    fn from(file: Entries<Vendor, Option<Vec<AnyCase<Mount>>>>) -> Mounts {
        let entries = file.0.into_iter().map(|(vendor, list)| {
            let mounts = list.unwrap_or_default().into_iter().map(|AnyCase(Mount(mount))| mount);
            (vendor, mounts.collect())
        });
        Mounts(entries.collect())
    }
}

/// One additional mount.
#[derive(Deserialize)]
#[serde(try_from = "MountFile")]
struct Mount(AdditionalMount);

/// The keys of a mount; without a destination the file keeps its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountFile {
    source: Parsed<StorePattern>,
    #[serde(default, deserialize_with = "present")]
    destination: Option<Parsed<Destination>>,
}

impl TryFrom<MountFile> for Mount {
    type Error = String;

    fn try_from(file: MountFile) -> Result<Mount, String> {
        let source = file.source.0;
        let destination = match file.destination {
            Some(destination) => destination.0,
            None => source.file_name().try_into().map_err(|error: DestinationError| {
                format!("source `{source}`: {error}; name another destination")
            })?,
        };
        Ok(Mount(AdditionalMount { source, destination }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;
    use crate::values::Number;

    /// The value of a key with the type `PerModel<T>` for `wddm`.
    fn for_wddm<T: FromStr<Err: Display>>(text: &str) -> Result<Option<T>, String> {
        let read = parse::<AnyKey<T>>("f.yaml", format!("key: {text}\n").as_bytes());
        let file = read.map_err(|error| error.to_string())?;
        Ok(PerModel::of(file.key, DriverModel::Wddm).map(|PerModel(value)| value))
    }

    #[derive(Deserialize)]
    #[serde(bound = "T: FromStr<Err: Display>")]
    struct AnyKey<T> {
        key: ModelValues<T>,
    }

    #[test]
    fn a_value_for_every_driver_model_may_be_a_number_or_a_switch() {
        type Digit = Number<0, 9>;
        for text in ["4", "'4'", "{wddm: 4}", "{wddm: '4', mcdm: 5}"] {
            assert_eq!(for_wddm::<Digit>(text), Ok(Some(Number(4))), "{text}");
        }
        assert_eq!(for_wddm::<Digit>("{mcdm: 5}"), Ok(None));
        for text in ["10", "-1", "4.0", "true", "[4]"] {
            assert!(for_wddm::<Digit>(text).is_err(), "{text}");
        }
        for text in ["true", "'true'", "{wddm: true}"] {
            assert_eq!(for_wddm::<Switch>(text), Ok(Some(Switch(true))), "{text}");
        }
    }
}
