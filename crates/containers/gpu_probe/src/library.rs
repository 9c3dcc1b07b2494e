//! GPU libraries, loaded at run time.
#![allow(unsafe_code, reason = "loads libraries and looks up their functions")]

use std::error::Error as _;
#[cfg(not(windows))]
use std::path::Path;

use libloading::Library as Handle;

use crate::advice;
use crate::api::Api;
use crate::outcome::{Fault, Library};
use crate::session::Refusal;

/// A library that stays loaded until the process ends. Drivers start threads, which would crash if
/// the library were unloaded.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    handle: &'static Handle,
    name: &'static str,
}

/// The fault of a `call` whose status is not 0.
pub(crate) fn check(call: &str, status: i32) -> Result<(), Fault> {
    if status == 0 {
        return Ok(());
    }
    Err(Fault::new(format!("{call} failed with {status}")))
}

/// The size of a structure, in the type of the functions of Windows.
#[cfg(windows)]
#[expect(clippy::cast_possible_truncation, reason = "no structure has 4 GiB")]
pub(crate) const fn structure_size<T>() -> u32 {
    size_of::<T>() as u32
}

/// The text before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Finds functions by their names.
pub(crate) trait Symbols {
    /// The address of a function.
    fn function(&self, symbol: &'static str) -> Result<*mut (), Fault>;
}

impl Symbols for Loaded {
    fn function(&self, symbol: &'static str) -> Result<*mut (), Fault> {
        // SAFETY: the address is only read; whoever calls the function states its type.
        let found = unsafe { self.handle.get::<*mut ()>(symbol) };
        found.map(|address| *address).map_err(|_| {
            Fault::new(format!("{} has no function `{symbol}`", self.name))
                .hint("the library is too old or not the driver's: check the driver's version")
        })
    }
}

impl Loaded {
    /// Loads the first library of `names` that loads, for `api`.
    pub(crate) fn open(api: Api, names: &[&'static str]) -> Result<Loaded, Refusal> {
        let mut unusable = None;
        for name in names {
            // SAFETY: the initializers of a GPU driver are what is tested here. They run in a
            // process that only tests this library.
            let error = match unsafe { Handle::new(*name) } {
                Ok(handle) => return Ok(Loaded { handle: Box::leak(Box::new(handle)), name }),
                Err(error) => match error.source() {
                    Some(cause) => format!("{error}: {cause}"),
                    None => error.to_string(),
                },
            };
            if unusable.is_none() && !advice::is_missing(name, &error) {
                let library = Library::new(*name);
                unusable = Some(Refusal::Broken(Some(library), advice::unusable(&error)));
            }
        }
        Err(unusable.unwrap_or_else(|| Refusal::Absent(advice::absent(api, names))))
    }

    /// The description of the library in reports.
    pub(crate) fn describe(&self, version: Option<String>) -> Library {
        let path = self.path().unwrap_or_else(|| self.name.to_owned());
        Library { version, ..Library::new(path) }
    }

    /// The path of the library's file. Only Linux has `/proc/self/maps`.
    #[cfg(not(windows))]
    fn path(&self) -> Option<String> {
        mapped_path(&std::fs::read_to_string("/proc/self/maps").ok()?, Path::new(self.name))
    }

    #[cfg(windows)]
    fn path(&self) -> Option<String> {
        use windows::Win32::System::LibraryLoader::{GetModuleFileNameW, GetModuleHandleW};
        use windows::core::HSTRING;
        // SAFETY: the name ends with a NUL, and the library stays loaded.
        let module = unsafe { GetModuleHandleW(&HSTRING::from(self.name)) }.ok()?;
        let mut path = [0; 1024];
        // SAFETY: the module is loaded, and the function gets the buffer's length.
        let length = unsafe { GetModuleFileNameW(Some(module), &mut path) };
        let path = path.get(..length as usize).filter(|path| !path.is_empty())?;
        Some(String::from_utf16_lossy(path))
    }
}

/// The file that is mapped for the library `name`, in the format of `/proc/PID/maps`. The name is
/// often a link to a file with another version: `libcuda.so.1` to `libcuda.so.550.54`.
#[cfg(not(windows))]
fn mapped_path(maps: &str, name: &Path) -> Option<String> {
    let file_name = name.file_name()?.to_str()?;
    let name = file_name.find(".so").map_or(file_name, |end| &file_name[..end + 3]);
    maps.lines()
        .filter_map(|line| line.find('/').map(|start| &line[start..]))
        .find(|path| {
            let file = path.rsplit('/').next().unwrap_or(path);
            file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .map(str::to_owned)
}

/// Declares a struct of functions that are looked up in a library by their names.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $symbol:literal
        fn($($argument:ty),*) -> $result:ty;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name { $($field: unsafe extern "system" fn($($argument),*) -> $result,)* }

        impl $name {
            fn load(
                library: &impl $crate::library::Symbols,
            ) -> Result<$name, $crate::outcome::Fault> {
                Ok($name {
                    $($field: {
                        let address = library.function($symbol)?;
                        // SAFETY: the library's public headers declare the function with this
                        // type, and the library stays loaded.
                        unsafe {
                            std::mem::transmute::<
                                *mut (),
                                unsafe extern "system" fn($($argument),*) -> $result,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;

#[cfg(not(windows))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapped_file_is_found_by_the_name_of_the_library() {
        let maps = "7f00-7f01 r--p 00000000 fe:00 1 /usr/lib/libvulkan_lvp.so\n\
                    7f01-7f02 rw-p 00000000 00:00 0\n\
                    7f02-7f03 r--p 00000000 fe:00 2 /opt/a b/libvulkan.so.1.3.239\n";
        assert_eq!(
            mapped_path(maps, Path::new("libvulkan.so.1")).as_deref(),
            Some("/opt/a b/libvulkan.so.1.3.239")
        );
        assert_eq!(mapped_path(maps, Path::new("libcuda.so.1")), None);
        let maps = "7f00-7f01 r--p 00000000 fe:00 1 /usr/lib/libcuda.so.550.54\n";
        assert_eq!(
            mapped_path(maps, Path::new("libcuda.so.1")).as_deref(),
            Some("/usr/lib/libcuda.so.550.54")
        );
    }
}
