//! What a plugin serves, and why it cannot be served.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::readiness::Notes;
use crate::resource::Resource;
use crate::resource_names::is_extended_resource_name;
use crate::socket_names::{is_prefix, socket_name};
use crate::unix_sockets::MAX_PATH_BYTES;

/// A time with as many digits as any until the year 2286, in Unix milliseconds.
const LATE: u64 = 9_999_999_999_999;

/// What a plugin serves. It may change while the plugin runs.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Served {
    /// The resources, each with another name. A resource that is added is registered, and one that is
    /// removed ends with its streams, calls and connections. The other resources keep their streams, as
    /// long as they are the same objects. Without resources, the plugin waits for some.
    pub resources: Vec<Arc<dyn Resource>>,
    /// What the status reports besides.
    pub notes: Notes,
}

impl Served {
    /// These resources, without notes.
    #[must_use]
    pub fn new(resources: Vec<Arc<dyn Resource>>) -> Self {
        Served { resources, notes: Notes::new() }
    }

    /// Whether every resource can be registered from a socket in `directory`.
    pub(crate) fn check(&self, directory: &Path) -> Result<(), RunError> {
        let mut names = HashSet::new();
        for resource in &self.resources {
            let (name, prefix) = (resource.name(), resource.socket_prefix());
            if !is_extended_resource_name(name) {
                return Err(RunError::InvalidName(name.to_owned()));
            }
            if !names.insert(name) {
                return Err(RunError::Duplicate(name.to_owned()));
            }
            if !is_prefix(&prefix) {
                return Err(RunError::InvalidSocketPrefix(prefix.into_owned()));
            }
            let socket = directory.join(socket_name(&prefix, LATE));
            if socket.as_os_str().len() > MAX_PATH_BYTES {
                return Err(RunError::SocketPathTooLong(socket));
            }
        }
        Ok(())
    }
}

/// Why a plugin ended before a shutdown was requested.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A kubelet does not accept the name of a resource: see
    /// [`is_extended_resource_name`].
    #[error(
        "invalid resource name `{0}`: it must have the form `domain/name`, must not contain \
         `kubernetes.io/` and must not start with `requests.`"
    )]
    InvalidName(String),
    /// The prefix of a resource's sockets cannot be part of a file name.
    #[error("invalid socket prefix `{0}`: use letters, digits, `-`, `_` and `.`")]
    InvalidSocketPrefix(String),
    /// The path of a socket in the device plugin directory is longer than the operating system
    /// allows.
    #[error(
        "the path of plugin socket `{}` would be longer than {MAX_PATH_BYTES} bytes", .0.display()
    )]
    SocketPathTooLong(PathBuf),
    /// Two resources have the same name. A kubelet would treat the second as a replacement of the
    /// first.
    #[error("duplicate resource `{0}`")]
    Duplicate(String),
}
