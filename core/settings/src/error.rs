//! Why a configuration cannot be used. To the program each is a usage error.

use std::path::PathBuf;

use documents::ReadError;

use crate::config_name::ConfigNameError;
use crate::origin::Origin;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The content of a file, with its line and key.
    #[error(transparent)]
    Content(#[from] ReadError),
    /// A file that cannot be read.
    #[error("cannot read the configuration file `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file with the name of a configuration, whose content is no name.
    #[error("invalid selection in `{}`", path.display())]
    Selection {
        /// The file of `--config-selection`.
        path: PathBuf,
        /// What is wrong with the name.
        source: ConfigNameError,
    },
    /// A named configuration that does not exist.
    #[error("no configuration is named `{name}` in `{}` (selected by {})", directory.display(), selected_by(origin))]
    UnknownConfig {
        /// The name.
        name: String,
        /// The folder of the named configurations.
        directory: PathBuf,
        /// What selects the name.
        origin: Origin,
    },
    /// An environment variable.
    #[error("variable {name}={value:?}: {what}")]
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// What is wrong with the value.
        what: String,
        /// What to write instead.
        hint: &'static str,
    },
    /// Flags or variables that contradict each other.
    #[error("{what}")]
    Conflict {
        /// What contradicts what, and where each comes from.
        what: String,
        /// What to do about it.
        hint: &'static str,
    },
}

impl SettingsError {
    /// Advice: what to write instead.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            SettingsError::Content(error) => error.hint(),
            SettingsError::File { source, .. } => documents::read_hint(source),
            SettingsError::Selection { .. } => Some(ConfigNameError::HINT),
            SettingsError::UnknownConfig { origin: Origin::Selection(_), .. } => {
                Some("add the configuration to the folder or its ConfigMap, or select another one")
            }
            SettingsError::UnknownConfig { .. } => Some(
                "add the configuration to the folder, or name another one with --config-default",
            ),
            SettingsError::Variable { hint, .. } | SettingsError::Conflict { hint, .. } => {
                Some(hint)
            }
        }
    }
}

/// What selects a named configuration.
fn selected_by(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        origin => format!("`{origin}`"),
    }
}
