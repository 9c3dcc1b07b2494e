//! What the configuration is read from, in addition to the command line.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Environment variables and files, of the process ([`ProcessEnvironment`]) or of a test.
pub trait Environment {
    /// The value of an environment variable; `None` if it is not set.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// The names of all environment variables that are Unicode text.
    fn variable_names(&self) -> Vec<String>;

    fn working_directory(&self) -> io::Result<PathBuf>;

    /// The bytes of a file; `NotFound` if it does not exist.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Whether a file exists that is never read, for a warning.
    fn is_file(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Whether a file in a default place may decide anything. It is read only if it is trusted.
    fn trust(&self, path: &Path) -> Trust {
        let _ = path;
        Trust::Trusted
    }
}

/// Whether a file may decide anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// The file may be used, if it exists.
    Trusted,
    /// The file does not exist. It is not read even if it is created now, because the account that
    /// creates it was not checked.
    Absent,
    /// The file may not be used, for this reason, such as another account that may change it.
    Distrusted(String),
}

/// An environment without variables and files, which gives the default configuration.
#[derive(Clone, Copy, Debug)]
pub struct EmptyEnvironment;

impl Environment for EmptyEnvironment {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        Ok("/".into())
    }

    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn variable_names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        crate::read_bytes(path)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }
}
