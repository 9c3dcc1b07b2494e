//! The configuration of this process: its options, environment and files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, Environment, Flags, ProcessEnvironment, Trust};

/// The configuration at one moment.
pub struct Reading {
    /// The valid configuration.
    pub result: Result<Config, ConfigError>,
    /// Every file that was looked for.
    pub files: BTreeMap<PathBuf, FileState>,
}

/// What became of a file that was looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileState {
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
#[must_use]
pub fn read(flags: &Flags) -> Reading {
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
