//! The configuration of this process: its options, environment and files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use config::{
    Config, ConfigError, Environment, Flags, ModelSummary, ProcessEnvironment, SettingText, Trust,
};

/// The configuration at one moment.
pub(crate) struct Reading {
    /// The valid configuration.
    pub(crate) result: Result<Config, ConfigError>,
    /// Every file that was looked for.
    pub(crate) files: BTreeMap<PathBuf, FileState>,
}

/// What became of a file that was looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileState {
    /// It was read.
    Read,
    /// It does not exist, or cannot be read.
    Missing,
    /// It is ignored because others may change it.
    Distrusted,
}

/// Reads and checks the configuration.
pub fn load(flags: &Flags) -> Result<Config, ConfigError> {
    read(flags).result
}

/// Like [`load`], with the files that were looked for.
pub(crate) fn read(flags: &Flags) -> Reading {
    let environment = RecordedReads::default();
    let result = config::load(flags, &environment);
    Reading { result, files: environment.0.into_inner() }
}

/// The environment of this process. It records the files that are read.
#[derive(Default)]
struct RecordedReads(RefCell<BTreeMap<PathBuf, FileState>>);

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
        let state = if result.is_ok() { FileState::Read } else { FileState::Missing };
        self.0.borrow_mut().insert(path.to_owned(), state);
        result
    }

    fn is_file(&self, path: &Path) -> bool {
        ProcessEnvironment.is_file(path)
    }

    fn trust(&self, path: &Path) -> Trust {
        let trust = trust(path);
        let state = match trust {
            Trust::Trusted => return trust,
            Trust::Absent => FileState::Missing,
            Trust::Distrusted(_) => FileState::Distrusted,
        };
        // The file is watched even if it was not read: it may be created or trusted later.
        self.0.borrow_mut().insert(path.to_owned(), state);
        trust
    }
}

/// Whether others may change the file or create it.
#[cfg(windows)]
fn trust(path: &Path) -> Trust {
    match win32::directory_access::distrust(path) {
        Ok(None) => Trust::Trusted,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Trust::Absent,
        Ok(Some((reason, fix))) => {
            Trust::Distrusted(format!("{reason}; {fix}, or name the file with --config"))
        }
        Err(error) => Trust::Distrusted(format!("{error}; name the file with --config")),
    }
}

/// Only Windows needs the check: ordinary users may create folders on its system drive.
#[cfg(not(windows))]
fn trust(_: &Path) -> Trust {
    Trust::Trusted
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

#[cfg(test)]
mod tests {
    use devices::DriverModel;

    use super::*;
    use crate::logging::test_log::Log;

    #[test]
    fn what_is_set_is_logged_and_then_what_is_new_for_a_driver_model() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        let config = |text: &str, notices: &[&str]| {
            std::fs::write(&file, text).unwrap();
            let driver_models = vec![DriverModel::Wddm, DriverModel::Mcdm];
            let flags = Flags { driver_models, config: Some(file.clone()), ..Flags::default() };
            let mut config = load(&flags).unwrap();
            config.notices = notices.iter().map(|notice| (*notice).to_owned()).collect();
            config
        };
        let before = config("", &["known"]);
        let after = config("multitenancy: 2", &["known", "unknown until now"]);
        let log = Log::start();
        log_changes(&before, &after);
        let text = log.text();
        assert_eq!(text.matches("configuration changed").count(), 2, "{text}");
        for model in ["wddm", "mcdm"] {
            let line = format!("model=\"{model}\" key=\"multitenancy\" value=\"2\"");
            assert!(text.contains(&line), "{text}");
        }
        assert_eq!(text.matches("has no effect").count(), 1, "{text}");
        assert!(text.contains("unknown until now"), "{text}");
        super::log(&after);
        let all = log.text();
        let later = all.strip_prefix(&text).unwrap();
        let set = later.lines().filter(|line| line.contains("INFO") && line.contains(" value="));
        assert_eq!((set.count(), later.matches("has no effect").count()), (2, 2), "{later}");
    }
}
