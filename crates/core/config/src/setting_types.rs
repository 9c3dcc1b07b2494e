//! The types of the settings, as a file, a variable and the log spell them.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use devices::{
    AdditionalMount, AdditionalMounts, Destination, DestinationError, DeviceClass, DriverModel,
    ResetLimit, StorePattern, Vendor,
};

use crate::Place;
use crate::any_case::AnyCase;
use crate::values::{
    Entries, MAX_RESET_MINUTES, MAX_RESETS, Number, Parsed, TextOr, positive, present,
};

/// A value and its line, if it is in a file. Errors that compare several settings name the line.
#[derive(Clone, Debug)]
pub(crate) struct AtLine<T> {
    pub(crate) value: T,
    line: Option<u32>,
}

impl<T> AtLine<T> {
    /// A value that is not in a file.
    pub(crate) fn nowhere(value: T) -> AtLine<T> {
        AtLine { value, line: None }
    }

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
        text.parse().map(AtLine::nowhere)
    }
}

impl<T: Display> Display for AtLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// One value for every driver model, or driver model → value.
#[derive(Deserialize, Debug)]
#[serde(bound = "T: FromStr<Err: Display>", try_from = "TextOr<Entries<DriverModel, Parsed<T>>>")]
pub(crate) enum PerModel<T> {
    Every(T),
    Each(BTreeMap<DriverModel, Parsed<T>>),
}

impl<T> PerModel<T> {
    pub(crate) fn of(self, model: DriverModel) -> Option<T> {
        match self {
            PerModel::Every(value) => Some(value),
            PerModel::Each(mut values) => values.remove(&model).map(|value| value.0),
        }
    }
}

impl<T: FromStr> TryFrom<TextOr<Entries<DriverModel, Parsed<T>>>> for PerModel<T> {
    type Error = T::Err;

    fn try_from(file: TextOr<Entries<DriverModel, Parsed<T>>>) -> Result<Self, T::Err> {
        match file {
            TextOr::Text(text) => text.parse().map(PerModel::Every),
            TextOr::Several(Entries(values)) => Ok(PerModel::Each(values)),
        }
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

impl Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether integrated devices are included: `true`, `false`, or by default only on Linux.
#[derive(Deserialize, Clone, Copy, Debug)]
pub(crate) struct Integrated(pub(crate) Option<bool>);

impl Integrated {
    pub(crate) fn default_for(model: DriverModel) -> Integrated {
        Integrated((model == DriverModel::Legacy).then_some(true))
    }
}

impl FromStr for Integrated {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|Switch(included)| Integrated(Some(included)))
    }
}

impl Display for Integrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(included) => included.fmt(f),
            None => f.write_str("false, on Linux true"),
        }
    }
}

/// A list of texts.
#[derive(Deserialize, Clone, Debug)]
#[serde(bound = "T: FromStr<Err: Display>")]
pub(crate) struct List<T>(pub(crate) Vec<Parsed<T>>);

impl<T: Display> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(Parsed::to_string).collect();
        write!(f, "[{}]", names.join(", "))
    }
}

/// How many resets of a driver make a device unhealthy; by default, any number does not.
#[derive(Deserialize, Clone, Copy, Debug, Default)]
#[serde(from = "AnyCase<ResetsFile>")]
pub(crate) struct Resets(pub(crate) Option<ResetLimit>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetsFile {
    count: Number<1, MAX_RESETS>,
    minutes: Number<1, MAX_RESET_MINUTES>,
}

impl From<AnyCase<ResetsFile>> for Resets {
    fn from(AnyCase(file): AnyCase<ResetsFile>) -> Resets {
        Resets(Some(ResetLimit { count: positive(file.count), minutes: positive(file.minutes) }))
    }
}

impl Display for Resets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ResetLimit { count, minutes }) => {
                write!(f, "{{count: {count}, minutes: {minutes}}}")
            }
            None => f.write_str("off"),
        }
    }
}

/// Additional mounts: vendor → list of files.
#[derive(Deserialize, Clone, Debug, Default)]
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

impl Display for Mounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mounts = self.0.iter().flat_map(|(vendor, files)| {
            files.iter().map(move |f| format!("{vendor}: {} => {}", f.source, f.destination))
        });
        write!(f, "[{}]", mounts.collect::<Vec<_>>().join(", "))
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

/// The device class that a container gets, if it gets one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class(pub(crate) Option<DeviceClass>);

impl Class {
    pub(crate) fn default_for(model: DriverModel) -> Class {
        Class(DeviceClass::default_for(model))
    }
}

impl FromStr for Class {
    type Err = <DeviceClass as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|class| Class(Some(class)))
    }
}

impl Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(class) => class.fmt(f),
            None => f.write_str("none"),
        }
    }
}
