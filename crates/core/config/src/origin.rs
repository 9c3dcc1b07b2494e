//! The origin of each value of the configuration.

use std::fmt;

use serde_saphyr::Spanned;

use devices::DriverModel;

use crate::Place;

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug, strum::Display)]
pub enum Origin {
    /// A flag, such as `--device-plugin-dir`.
    #[strum(to_string = "{0}")]
    Flag(&'static str),
    /// An environment variable, by name.
    #[strum(to_string = "variable {0}")]
    Variable(String),
    /// A configuration file and the line in it.
    #[strum(to_string = "{0}")]
    File(Place),
    /// The setting is not set.
    #[strum(to_string = "default")]
    Default,
}

/// An effective value, for logs and explanations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effective {
    /// The driver model it applies to; `None` means the whole program.
    pub model: Option<DriverModel>,
    /// The key, as the reference spells it.
    pub key: &'static str,
    /// The value as text.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(model) = self.model {
            write!(f, "{model} ")?;
        }
        write!(f, "{} = {} ({})", self.key, self.value, self.origin)
    }
}

/// A value and where it comes from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Sourced<T> {
    /// The value of `key` in a file.
    pub(crate) fn of_file(file: &str, key: &str, value: Spanned<T>) -> Sourced<T> {
        let origin = Origin::File(Place::of(file, &value, key));
        Sourced { value: value.value, origin }
    }
}

impl<T: fmt::Display> Sourced<T> {
    /// The value as text.
    pub(crate) fn effective(&self, model: DriverModel, key: &'static str) -> Effective {
        let origin = self.origin.clone();
        Effective { model: Some(model), key, value: self.value.to_string(), origin }
    }
}
