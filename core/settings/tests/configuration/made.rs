//! Surroundings that a test makes up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use devices::DriverModel;
use settings::{Config, Flags, SettingsError, Surroundings};

/// Variables and files; the working directory is `/here`.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) variables: BTreeMap<String, OsString>,
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Made {
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Made {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Made {
        self.files.insert(path.into(), text.into());
        self
    }

    pub(crate) fn load(&self, models: &[DriverModel]) -> Result<Config, SettingsError> {
        let flags = Flags { driver_models: models.to_vec(), ..Flags::default() };
        settings::load(&flags, self)
    }
}

impl Surroundings for Made {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        Ok("/here".into())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.ends_with("locked.yaml") || path.to_string_lossy().ends_with(r"\locked.yaml") {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The configuration that `text` alone makes as `--config`.
pub(crate) fn configured(text: &str, models: &[DriverModel]) -> Result<Config, SettingsError> {
    let made = Made::default().file("c.yaml", text);
    let config = Some("c.yaml".into());
    settings::load(&Flags { driver_models: models.to_vec(), config, ..Flags::default() }, &made)
}

/// An error and its hint, the same on every system.
pub(crate) fn told<T: std::fmt::Debug>(result: Result<T, SettingsError>) -> String {
    match result {
        Ok(value) => format!("accepted: {value:?}"),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            format!("{error}{hint}").replace(r"/here\", "/here/")
        }
    }
}

/// Every effective value, one a line.
pub(crate) fn effective(config: &Config) -> String {
    let lines: Vec<String> = config.effective.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
