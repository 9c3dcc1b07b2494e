//! Reads the registry.
#![allow(unsafe_code, reason = "asks for the state of a key")]

use std::io;

use windows::Win32::Foundation::FILETIME;
use windows::Win32::System::Registry::{HKEY, RegQueryInfoKeyW};
use windows_registry::{Key, LOCAL_MACHINE, Value};

use super::library::os_error;

/// How often a list is read because another program changed the key in the meantime.
const CHANGE_ATTEMPTS: u32 = 4;

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

/// The names of the subkeys.
pub(crate) fn keys(key: &Key) -> io::Result<Vec<String>> {
    let read = || Ok(key.keys().map_err(|error| os_error(&error))?.collect());
    complete(|| Ok(State::of(key)?), read, |state| state.keys)
}

/// The values with their names.
pub(crate) fn values(key: &Key) -> io::Result<Vec<(String, Value)>> {
    let read = || Ok(key.values().map_err(|error| os_error(&error))?.collect());
    complete(|| Ok(State::of(key)?), read, |state| state.values)
}

/// What changes with the list of subkeys or values of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    keys: u32,
    values: u32,
    /// In 100 ns units.
    last_write: u64,
}

impl State {
    fn of(key: &Key) -> windows::core::Result<State> {
        let [mut keys, mut values] = [0; 2];
        let mut written = FILETIME::default();
        // SAFETY: the key is open, and the pointers refer to writable numbers or are absent.
        let result = unsafe {
            RegQueryInfoKeyW(
                HKEY(key.as_raw()),
                None,
                None,
                None,
                Some(&raw mut keys),
                None,
                None,
                Some(&raw mut values),
                None,
                None,
                None,
                Some(&raw mut written),
            )
        };
        result.ok()?;
        let last_write = u64::from(written.dwHighDateTime) << 32 | u64::from(written.dwLowDateTime);
        Ok(State { keys, values, last_write })
    }
}

/// The list that `read` returns, if it has as many items as the key, and the key did not change in
/// the meantime. The iterators of the registry crate end at any error, such as a value that became
/// longer, and skip items if others are removed.
fn complete<T>(
    state: impl Fn() -> io::Result<State>,
    read: impl Fn() -> io::Result<Vec<T>>,
    count: fn(&State) -> u32,
) -> io::Result<Vec<T>> {
    for _ in 0..CHANGE_ATTEMPTS {
        let before = state()?;
        let list = read()?;
        if list.len() == count(&before) as usize && state()? == before {
            return Ok(list);
        }
    }
    Err(io::Error::other("the key changed during each attempt to read it"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What is read of a key with two values, at these states of the key and with these numbers of
    /// items that an iterator returns.
    fn read(states: &[u64], items: &[usize]) -> Result<usize, String> {
        let [asked, reads] = [const { Cell::new(0) }; 2];
        let next = |counter: &Cell<usize>| counter.replace(counter.get() + 1);
        let last_write = || states[next(&asked).min(states.len() - 1)];
        let state = || Ok(State { keys: 9, values: 2, last_write: last_write() });
        let list = || Ok(vec![(); items[next(&reads).min(items.len() - 1)]]);
        let list = complete(state, list, |state| state.values);
        list.map(|list| list.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_that_is_cut_short_is_never_complete() {
        assert_eq!(read(&[1], &[2]), Ok(2));
        assert_eq!(read(&[1], &[1, 2]), Ok(2), "a value became longer while it was read");
        assert_eq!(read(&[1, 2, 2, 2], &[2]), Ok(2), "a value was replaced by another");
        let never = Err("the key changed during each attempt to read it".to_owned());
        assert_eq!(read(&[1], &[1]), never);
        assert_eq!(read(&[1, 2, 3, 4, 5, 6, 7, 8], &[2]), never);
    }

    #[test]
    fn the_state_changes_with_the_key() {
        let path = format!(r"SOFTWARE\directx-device-plugin-state-{}", std::process::id());
        let key = LOCAL_MACHINE.create(&path).unwrap();
        key.set_u32("a", 1).unwrap();
        key.create("sub").unwrap();
        let before = State::of(&key).unwrap();
        assert_eq!((before.keys, before.values), (1, 1));
        assert_eq!((keys(&key).unwrap().len(), values(&key).unwrap().len()), (1, 1));
        assert_eq!(State::of(&key).unwrap(), before);
        key.set_string("a", "longer").unwrap();
        let after = State::of(&key).unwrap();
        LOCAL_MACHINE.remove_tree(&path).unwrap();
        assert_ne!(after, before);
    }
}
