//! The configuration of this process: its options, environment and files.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use command_line::Failure;
#[cfg(windows)]
use config::Trust;
use config::{Config, Environment, Flags, ModelSummary, ProcessEnvironment, SettingText};
use devices::DriverModel;

/// The configuration at one moment.
pub struct Reading {
    /// An invalid configuration is wrong usage.
    pub result: Result<Config, Failure>,
    /// Every file that was looked for.
    pub(crate) files: Vec<ConfigFile>,
    /// Whether one of them is ignored because others may change it.
    pub(crate) has_distrusted: bool,
}

/// A file that was looked for.
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    /// Whether it exists, is trusted and can be read.
    pub(crate) is_readable: bool,
}

/// Reads and checks the configuration with the default device plugin directory.
///
/// # Errors
/// An invalid configuration is wrong usage.
pub fn load(driver_models: &[DriverModel], config: Option<PathBuf>) -> Result<Config, Failure> {
    let driver_models = driver_models.to_vec();
    read(&Flags { driver_models, config, device_plugin_dir: None }).result
}

/// Reads and checks the configuration.
#[must_use]
pub fn read(flags: &Flags) -> Reading {
    let environment = RecordedReads::default();
    let result = config::load(flags, &environment).map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        Failure::usage(error).hint_if_any(hint)
    });
    let has_distrusted = environment.has_distrusted.get();
    Reading { result, files: environment.files.into_inner(), has_distrusted }
}

/// The environment of this process. It records the files that are read.
#[derive(Default)]
struct RecordedReads {
    files: RefCell<Vec<ConfigFile>>,
    has_distrusted: Cell<bool>,
}

impl Environment for RecordedReads {
    fn variable(&self, name: &str) -> Option<OsString> {
        ProcessEnvironment.variable(name)
    }

    fn variable_names(&self) -> Vec<String> {
        ProcessEnvironment.variable_names()
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        ProcessEnvironment.working_directory()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let result = ProcessEnvironment.read(path);
        let file = ConfigFile { path: path.to_owned(), is_readable: result.is_ok() };
        self.files.borrow_mut().push(file);
        result
    }

    /// Only Windows needs the check: ordinary users may create folders on its system drive.
    #[cfg(windows)]
    fn trust(&self, path: &Path) -> Trust {
        let trust = match win32::directory_access::distrust(path) {
            Ok(None) => return Trust::Trusted,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Trust::Absent,
            Ok(Some((reason, fix))) => {
                Trust::Distrusted(format!("{reason}; {fix}, or name the file with --config"))
            }
            Err(error) => Trust::Distrusted(format!("{error}; name the file with --config")),
        };
        if matches!(trust, Trust::Distrusted(_)) {
            self.has_distrusted.set(true);
        }
        // The file is watched even if it was not read: it may be created or trusted later.
        self.files.borrow_mut().push(ConfigFile { path: path.to_owned(), is_readable: false });
        trust
    }
}

/// Logs the file and the variables of each driver model, every value, defaults at a lower level,
/// and what has no effect.
pub fn log(config: &Config) {
    if let Some(directory) = &config.device_plugin_dir {
        let directory = directory.display();
        tracing::info!(key = "device-plugin-dir", value = %directory, "configuration");
    }
    for ModelSummary { model, file, variables, settings } in &config.models {
        let model: &str = model.into();
        let file = file.as_deref().unwrap_or("none");
        let variables = Some(variables.join(", ")).filter(|names| !names.is_empty());
        tracing::info!(model, file, variables, "configuration");
        for SettingText { key, value, is_default } in settings {
            if *is_default {
                tracing::debug!(model, key, value, "configuration");
            } else {
                tracing::info!(model, key, value, "configuration");
            }
        }
    }
    for notice in &config.notices {
        log_notice(notice);
    }
}

/// Logs the values and notices that `before` does not have.
pub(crate) fn log_changes(before: &Config, after: &Config) {
    for ModelSummary { model, file, settings, .. } in &after.models {
        let before = before.models.iter().find(|before| before.model == *model);
        let before: &[SettingText] = before.map_or(&[], |before| &before.settings);
        for setting in settings.iter().filter(|setting| !before.contains(setting)) {
            let SettingText { key, value, .. } = setting;
            let model: &str = model.into();
            tracing::info!(model, key, value, file, "configuration changed");
        }
    }
    for notice in after.notices.iter().filter(|notice| !before.notices.contains(notice)) {
        log_notice(notice);
    }
}

/// Logs a part of the configuration that has no effect.
pub fn log_notice(notice: &str) {
    tracing::warn!(%notice, "part of the configuration has no effect");
}
