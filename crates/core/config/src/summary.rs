//! The configuration of a driver model as text, for logs and explanations.

use std::fmt;

use devices::DriverModel;

/// What is configured for a driver model, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelSummary {
    pub model: DriverModel,
    /// The configuration file that was read.
    pub file: Option<String>,
    /// The environment variables that are set. They take precedence over the file.
    pub variables: Vec<String>,
    /// Every setting, in the order of the reference, and the names of the rules.
    pub settings: Vec<SettingText>,
}

/// The value of a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingText {
    /// The key, as the reference spells it.
    pub key: &'static str,
    pub value: String,
    /// Whether this is the default.
    pub is_default: bool,
}

impl ModelSummary {
    /// The file and the variables.
    #[must_use]
    pub fn sources(&self) -> Vec<String> {
        let variables = self.variables.iter().map(|name| format!("variable {name}"));
        self.file.iter().cloned().chain(variables).collect()
    }
}

/// Prints the settings that differ from their defaults, and the sources.
impl fmt::Display for ModelSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = self.settings.iter().filter(|setting| !setting.is_default);
        let changed: Vec<String> = changed.map(SettingText::to_string).collect();
        let model = self.model;
        if changed.is_empty() {
            write!(f, "every value of {model} is a default")?;
        } else {
            write!(f, "{model} {}", changed.join(", "))?;
        }
        let sources = self.sources();
        if !sources.is_empty() {
            write!(f, " ({})", sources.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for SettingText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}
