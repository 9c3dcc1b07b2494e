//! The configuration of this process: its options, environment and files.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use command_line::Failure;
#[cfg(windows)]
use config::Trust;
use config::{Config, Environment, Flags, Origin, ProcessEnvironment};
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

/// Logs every value, defaults at a lower level, and the values that have no effect.
pub fn log(config: &Config) {
    for value in &config.effective {
        let model = value.model.map(<&str>::from);
        let (key, setting, origin) = (value.key, value.value.as_str(), &value.origin);
        if value.origin == Origin::Default {
            tracing::debug!(model, key, value = setting, %origin, "configuration");
        } else {
            tracing::info!(model, key, value = setting, %origin, "configuration");
        }
    }
    for notice in &config.notices {
        log_notice(notice);
    }
}

/// Logs a part of the configuration that has no effect.
pub fn log_notice(notice: &str) {
    tracing::warn!(%notice, "part of the configuration has no effect");
}
