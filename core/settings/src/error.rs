//! Why a configuration cannot be used. Each is a usage error of the program.

use std::path::PathBuf;

use strict_yaml::ReadError;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// What a file says, with its line and key.
    #[error(transparent)]
    Content(#[from] ReadError),
    /// A file that cannot be read.
    #[error("cannot read the configuration file `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
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
    /// Flags or variables that do not go together.
    #[error("{what}")]
    Conflict {
        /// What does not go together, with where each comes from.
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
            SettingsError::File { .. } => None,
            SettingsError::Variable { hint, .. } | SettingsError::Conflict { hint, .. } => {
                Some(hint)
            }
        }
    }
}
