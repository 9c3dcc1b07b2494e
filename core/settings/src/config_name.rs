//! The name of a configuration.

use std::fmt;
use std::str::FromStr;

use devices::FileName;

/// The longest name, in characters: the longest value of a label in Kubernetes.
pub const MAX_CONFIG_NAME: usize = 63;

/// The name of a configuration: what a label of Kubernetes can hold and a file on Windows can be
/// called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigName(String);

/// A text that is no name of a configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}` is not the name of a configuration", printable::printable(.0))]
pub struct ConfigNameError(String);

impl ConfigNameError {
    /// Advice: what a name may contain.
    pub const HINT: &str = "a name has 1 to 63 letters, digits, `-`, `_` and `.`, starts and ends \
                            with a letter or digit, and is not a device of Windows, such as `nul`";
}

impl ConfigName {
    /// The name that is used without a selection and without `--config-default`.
    #[must_use]
    pub fn default_name() -> ConfigName {
        ConfigName("default".to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ConfigName {
    type Err = ConfigNameError;

    fn from_str(text: &str) -> Result<ConfigName, ConfigNameError> {
        let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_label = outer(text.chars().next())
            && outer(text.chars().next_back())
            && text.chars().all(inner)
            && text.len() <= MAX_CONFIG_NAME;
        if is_label && FileName::parse(text).is_ok() {
            Ok(ConfigName(text.to_owned()))
        } else {
            // Long enough to recognize it.
            Err(ConfigNameError(text.chars().take(MAX_CONFIG_NAME + 1).collect()))
        }
    }
}

impl fmt::Display for ConfigName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
