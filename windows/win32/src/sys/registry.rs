//! Reads registry keys and values of any size.
#![allow(unsafe_code, reason = "calls the registry functions of advapi32.dll")]

use std::io;

use windows::Win32::Foundation::{ERROR_MORE_DATA, ERROR_NO_MORE_ITEMS, WIN32_ERROR};
use windows::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, KEY_READ, KEY_WOW64_64KEY, REG_VALUE_TYPE, RegCloseKey,
    RegEnumKeyExW, RegEnumValueW, RegOpenKeyExW, RegQueryInfoKeyW, RegQueryValueExW,
};
use windows::core::{HSTRING, PWSTR};

use crate::copy_to_vm::RawValue;

/// The maximum length of a key name in UTF-16 units, with the null character (winreg.h).
const KEY_NAME_UNITS: usize = 256;

/// How often a read is repeated because another program made the value longer.
const GROWTH_ATTEMPTS: u32 = 8;

/// An open key, which `Drop` closes.
#[derive(Debug)]
pub(crate) struct Key(HKEY);

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the handle is open and owned by this value. There is no useful reaction to
        // an error.
        let _ = unsafe { RegCloseKey(self.0) };
    }
}

impl Key {
    /// Opens a key below `HKEY_LOCAL_MACHINE` for reading.
    pub(crate) fn local_machine(path: &str) -> io::Result<Self> {
        open(HKEY_LOCAL_MACHINE, path)
    }

    /// Opens a key below this one for reading.
    pub(crate) fn open(&self, path: &str) -> io::Result<Self> {
        open(self.0, path)
    }

    /// The names of the direct subkeys.
    pub(crate) fn subkeys(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut buffer = [0_u16; KEY_NAME_UNITS];
        for index in 0.. {
            let mut length = u32::try_from(buffer.len()).expect("256 fits in 32 bits");
            let name = PWSTR(buffer.as_mut_ptr());
            // SAFETY: the buffer holds `length` units.
            let result = unsafe {
                RegEnumKeyExW(self.0, index, Some(name), &raw mut length, None, None, None, None)
            };
            match result {
                ERROR_NO_MORE_ITEMS => break,
                other => check(other)?,
            }
            names.push(String::from_utf16_lossy(&buffer[..length as usize]));
        }
        Ok(names)
    }

    /// Every value, in the order of the key.
    pub(crate) fn values(&self) -> io::Result<Vec<RawValue>> {
        let (name_units, data_bytes) = self.longest_value()?;
        let mut buffers = (vec![0_u16; name_units], vec![0_u8; data_bytes]);
        let mut values = Vec::new();
        for index in 0.. {
            match self.value_at(index, &mut buffers)? {
                Some(value) => values.push(value),
                None => break,
            }
        }
        Ok(values)
    }

    /// The value with this name; `None` if it does not exist.
    pub(crate) fn value(&self, name: &str) -> io::Result<Option<RawValue>> {
        let wide = HSTRING::from(name);
        let mut data = vec![0_u8; 512];
        for _ in 0..GROWTH_ATTEMPTS {
            let mut kind = REG_VALUE_TYPE::default();
            let mut length = length_of(&data);
            let bytes = Some(data.as_mut_ptr());
            // SAFETY: `data` holds `length` bytes.
            let result = unsafe {
                RegQueryValueExW(
                    self.0,
                    &wide,
                    None,
                    Some(&raw mut kind),
                    bytes,
                    Some(&raw mut length),
                )
            };
            match check(result) {
                Ok(()) => {
                    data.truncate(length as usize);
                    return Ok(Some(RawValue { name: name.to_owned(), kind: kind.0, data }));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(_) if result == ERROR_MORE_DATA => grow(&mut data, length),
                Err(error) => return Err(error),
            }
        }
        check(ERROR_MORE_DATA).map(|()| None)
    }

    /// The longest value name in units with its null character, and the longest data in bytes.
    fn longest_value(&self) -> io::Result<(usize, usize)> {
        let (mut name, mut data) = (0_u32, 0_u32);
        // SAFETY: both pointers refer to writable numbers.
        let result = unsafe {
            RegQueryInfoKeyW(
                self.0,
                None,
                None,
                None,
                None,
                None,
                None,
                None,
                Some(&raw mut name),
                Some(&raw mut data),
                None,
                None,
            )
        };
        check(result).map(|()| (name as usize + 1, data as usize))
    }

    /// The value at `index`; `None` after the last value. Buffers grow if a value became
    /// longer after they were allocated.
    fn value_at(
        &self,
        index: u32,
        (name, data): &mut (Vec<u16>, Vec<u8>),
    ) -> io::Result<Option<RawValue>> {
        for _ in 0..GROWTH_ATTEMPTS {
            let mut units = u32::try_from(name.len()).unwrap_or(u32::MAX);
            let mut bytes = length_of(data);
            let mut kind = 0;
            // SAFETY: `name` holds `units` units and `data` holds `bytes` bytes.
            let result = unsafe {
                RegEnumValueW(
                    self.0,
                    index,
                    Some(PWSTR(name.as_mut_ptr())),
                    &raw mut units,
                    None,
                    Some(&raw mut kind),
                    Some(data.as_mut_ptr()),
                    Some(&raw mut bytes),
                )
            };
            match result {
                ERROR_NO_MORE_ITEMS => return Ok(None),
                ERROR_MORE_DATA => {
                    // The error does not say which of the two buffers is too small.
                    name.resize(name.len() * 2, 0);
                    grow(data, bytes);
                }
                other => {
                    check(other)?;
                    let name = String::from_utf16_lossy(&name[..units as usize]);
                    let data = data[..bytes as usize].to_vec();
                    return Ok(Some(RawValue { name, kind, data }));
                }
            }
        }
        check(ERROR_MORE_DATA).map(|()| None)
    }
}

fn open(parent: HKEY, path: &str) -> io::Result<Key> {
    let mut key = HKEY::default();
    let wide = HSTRING::from(path);
    // SAFETY: `parent` is open, `wide` is null-terminated and `key` is writable.
    let result =
        unsafe { RegOpenKeyExW(parent, &wide, None, KEY_READ | KEY_WOW64_64KEY, &raw mut key) };
    check(result).map(|()| Key(key))
}

fn grow(data: &mut Vec<u8>, required: u32) {
    let length = data.len().saturating_mul(2).max(required as usize).max(64);
    data.resize(length, 0);
}

fn length_of(data: &[u8]) -> u32 {
    u32::try_from(data.len()).unwrap_or(u32::MAX)
}

fn check(result: WIN32_ERROR) -> io::Result<()> {
    match result {
        WIN32_ERROR(0) => Ok(()),
        WIN32_ERROR(code) => Err(io::Error::from_raw_os_error(code.cast_signed())),
    }
}

#[cfg(test)]
mod tests {
    use windows::Win32::System::Registry::RegSetValueExW;
    use windows_registry::{Key as Writer, LOCAL_MACHINE};

    use super::*;

    /// A key of the test's own, removed at the end.
    struct Scratch(String, Writer);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path =
                format!(r"SOFTWARE\directx-device-plugin-tests\{name}-{}", std::process::id());
            let writer = LOCAL_MACHINE.create(&path).unwrap();
            Self(path, writer)
        }

        fn open(&self) -> Key {
            Key::local_machine(&self.0).unwrap()
        }

        fn set(&self, name: &str, kind: u32, data: &[u8]) {
            let name = HSTRING::from(name);
            let key = HKEY(self.1.as_raw());
            // An empty slice has a dangling pointer, which the function rejects.
            let data = Some(data).filter(|data| !data.is_empty());
            // SAFETY: the key is open and `name` is null-terminated.
            let result = unsafe { RegSetValueExW(key, &name, None, REG_VALUE_TYPE(kind), data) };
            check(result).unwrap();
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = LOCAL_MACHINE.remove_tree(&self.0);
        }
    }

    fn raw(name: &str, kind: u32, data: &[u8]) -> RawValue {
        RawValue { name: name.to_owned(), kind, data: data.to_vec() }
    }

    #[test]
    fn values_of_any_type_and_length_are_read_unchanged() {
        let scratch = Scratch::new("values");
        let (name, long) = ("n".repeat(255), vec![7_u8; 100_001]);
        scratch.set("a", 7, &long);
        scratch.set(&name, 1, b"x\0y");
        scratch.set("", 4, &[1, 0, 0, 0]);
        scratch.set("empty", 3, &[]);
        let key = scratch.open();
        let mut values = key.values().unwrap();
        values.sort_by(|a, b| a.name.cmp(&b.name));
        let expected = [
            raw("", 4, &[1, 0, 0, 0]),
            raw("a", 7, &long),
            raw("empty", 3, &[]),
            raw(&name, 1, b"x\0y"),
        ];
        assert_eq!(values, expected);
        assert_eq!(key.value("A").unwrap().unwrap().data, long);
        assert_eq!(key.value("b").unwrap(), None);
    }

    #[test]
    fn buffers_grow_for_a_longer_value() {
        let scratch = Scratch::new("growth");
        let (name, data) = ("name".repeat(20), vec![5_u8; 3000]);
        scratch.set(&name, 1, &data);
        let mut buffers = (vec![0; 2], vec![0; 2]);
        let value = scratch.open().value_at(0, &mut buffers).unwrap();
        assert_eq!(value, Some(raw(&name, 1, &data)));
    }

    #[test]
    fn subkeys_are_listed_and_opened() {
        let scratch = Scratch::new("subkeys");
        let long = "k".repeat(255);
        scratch.1.create(&long).unwrap();
        scratch.1.create(r"softgpukmd\CopyToVmOverwrite").unwrap();
        let key = scratch.open();
        let mut names = key.subkeys().unwrap();
        names.sort();
        assert_eq!(names, [long.as_str(), "softgpukmd"]);
        assert_eq!(key.open(r"softgpukmd\CopyToVmOverwrite").unwrap().values().unwrap(), []);
        let error = key.open("missing").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_key_that_is_deleted_while_it_is_read_is_an_error() {
        let scratch = Scratch::new("deleted");
        let key = scratch.open();
        LOCAL_MACHINE.remove_tree(&scratch.0).unwrap();
        assert!(key.values().is_err());
        assert!(key.subkeys().is_err());
    }
}
