//! Why a configuration cannot be used. To the program each is a usage error.

use std::path::PathBuf;

use crate::{Place, ReadError};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The content of a file, with its line and key.
    #[error(transparent)]
    Content(#[from] ReadError),
    /// A file that cannot be read.
    #[error("cannot read the configuration file `{}`", path.display())]
    File {
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// An environment variable.
    #[error("variable {name}={value:?}: {what}")]
    Variable {
        name: String,
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

impl ConfigError {
    /// An error about a place in a file, if it is about one.
    pub(crate) fn at(place: Option<&Place>, what: String, hint: &'static str) -> ConfigError {
        match place {
            Some(place) => place.error(what).with_hint(hint).into(),
            None => ConfigError::Conflict { what, hint },
        }
    }

    /// Advice: what to write instead.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            ConfigError::Content(error) => error.hint(),
            ConfigError::File { source, .. } => crate::file_bytes::read_hint(source),
            ConfigError::Variable { hint, .. } | ConfigError::Conflict { hint, .. } => Some(hint),
        }
    }
}
