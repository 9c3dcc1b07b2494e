//! What the configuration is read from besides the command line.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Environment variables and files: the process's own ([`System`]), or made up.
pub trait Surroundings {
    /// The value of an environment variable, where it is set.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// The working directory.
    fn working_directory(&self) -> io::Result<PathBuf>;

    /// The bytes of a file; `NotFound` where there is none.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The surroundings of this process.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Surroundings for System {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        strict_yaml::read_bytes(path)
    }
}
