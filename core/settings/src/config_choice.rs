//! The configuration file that the command line chooses, if it does: one file, or one of several
//! named configurations.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::config_name::ConfigName;
use crate::origin::{Effective, Origin};
use crate::{Environment, SettingsError};

/// Which configuration file the command line chooses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ConfigChoice {
    /// None: each driver model has a file of its own.
    #[default]
    PerModel,
    /// `--config`: one file for all driver models.
    File(PathBuf),
    /// `--config-directory`: one of several files, for all driver models.
    Named(NamedConfigs),
}

/// Named configurations, of which one is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedConfigs {
    /// `--config-directory`: the folder, in which each file is a configuration and has its name.
    pub directory: PathBuf,
    /// `--config-selection`: a file with the name of the configuration to use. If the file is
    /// missing or empty, the default is used.
    pub selection: Option<PathBuf>,
    /// `--config-default`: the name without a selection.
    pub default: Option<ConfigName>,
}

/// The file that the command line has chosen.
pub(crate) struct ChosenFile {
    path: PathBuf,
    /// For a named configuration.
    named: Option<Named>,
}

struct Named {
    name: ConfigName,
    directory: PathBuf,
    origin: Origin,
}

impl ConfigChoice {
    /// The file to read now; `None` if each driver model has one of its own.
    pub(crate) fn file(
        &self,
        environment: &dyn Environment,
    ) -> Result<Option<ChosenFile>, SettingsError> {
        Ok(match self {
            ConfigChoice::PerModel => None,
            ConfigChoice::File(path) => Some(ChosenFile { path: path.clone(), named: None }),
            ConfigChoice::Named(named) => {
                let (name, origin) = named.name(environment)?;
                let directory = named.directory.clone();
                let path = directory.join(name.as_str());
                Some(ChosenFile { path, named: Some(Named { name, directory, origin }) })
            }
        })
    }
}

impl NamedConfigs {
    /// The name of the configuration to use, and what chooses it.
    fn name(&self, environment: &dyn Environment) -> Result<(ConfigName, Origin), SettingsError> {
        if let Some(path) = &self.selection
            && let Some(name) = selected(path, environment)?
        {
            return Ok((name, Origin::Selection(path.clone())));
        }
        Ok(match &self.default {
            Some(name) => (name.clone(), Origin::Flag("--config-default")),
            None => (ConfigName::default_name(), Origin::Default),
        })
    }
}

/// The name in a file; `None` if the file is missing or empty.
fn selected(
    path: &Path,
    environment: &dyn Environment,
) -> Result<Option<ConfigName>, SettingsError> {
    let bytes = match environment.read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(SettingsError::File { path: path.to_owned(), source }),
    };
    let text = documents::text(&path.display().to_string(), &bytes)?;
    match text.trim() {
        "" => Ok(None),
        name => name
            .parse()
            .map(Some)
            .map_err(|source| SettingsError::Selection { path: path.to_owned(), source }),
    }
}

impl ChosenFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The error about a file that cannot be read.
    pub(crate) fn unreadable(&self, source: std::io::Error) -> SettingsError {
        match &self.named {
            Some(Named { name, directory, origin }) if source.kind() == ErrorKind::NotFound => {
                let (name, directory) = (name.to_string(), directory.clone());
                SettingsError::UnknownConfig { name, directory, origin: origin.clone() }
            }
            _ => SettingsError::File { path: self.path.clone(), source },
        }
    }

    /// The name of the configuration, if it has one.
    pub(crate) fn effective(&self) -> Option<Effective> {
        let Named { name, origin, .. } = self.named.as_ref()?;
        let (value, origin) = (name.to_string(), origin.clone());
        Some(Effective { model: None, key: "config", value, origin })
    }
}
