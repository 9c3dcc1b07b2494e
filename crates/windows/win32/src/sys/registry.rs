//! Reads the registry.

use std::io;

use windows_registry::{Key, LOCAL_MACHINE, Value};

use super::library::os_error;

/// Opens a key below `HKEY_LOCAL_MACHINE` for reading.
pub(crate) fn local_machine(path: &str) -> io::Result<Key> {
    LOCAL_MACHINE.open(path).map_err(|error| os_error(&error))
}

/// The value with this name; `None` if it does not exist.
pub(crate) fn value(key: &Key, name: &str) -> io::Result<Option<Value>> {
    match key.get_value(name).map_err(|error| os_error(&error)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        value => value.map(Some),
    }
}
