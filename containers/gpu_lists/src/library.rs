//! Libraries and their functions, found at run time: a program that imports a graphics
//! library does not start on a system without it.

use windows::Win32::Foundation::{ERROR_MOD_NOT_FOUND, HMODULE};
use windows::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};
use windows::core::{Error, HRESULT, PCSTR, PCWSTR};

use crate::Unlisted;

/// A library that stays loaded until the process ends.
#[derive(Clone, Copy)]
pub(crate) struct Library(HMODULE);

impl Library {
    pub(crate) fn load(name: &str) -> Result<Library, Unlisted> {
        let wide: Vec<u16> = name.encode_utf16().chain([0]).collect();
        // SAFETY: the name is null-terminated. The code of a driver that runs now is what a
        // list of its devices needs.
        let module = unsafe { LoadLibraryW(PCWSTR(wide.as_ptr())) };
        module.map(Library).map_err(|error| {
            if error.code() == ERROR_MOD_NOT_FOUND.to_hresult() {
                return Unlisted::Absent(format!("{name} not found"));
            }
            failed(name)(error)
        })
    }

    /// A function of the type `F`, which whoever calls it answers for.
    pub(crate) fn function<F: Copy>(self, name: PCSTR) -> Result<F, Unlisted> {
        const { assert!(size_of::<F>() == size_of::<unsafe extern "system" fn()>()) };
        // SAFETY: the library is loaded, and the name is null-terminated.
        let found = unsafe { GetProcAddress(self.0, name) };
        // SAFETY: both are pointers to functions.
        let typed = found.map(|found| unsafe { std::mem::transmute_copy::<_, F>(&found) });
        typed.ok_or_else(|| {
            // SAFETY: the name is a constant of this crate.
            let name = unsafe { name.display() };
            Unlisted::Absent(format!("no function {name}"))
        })
    }
}

/// The error of `call`.
pub(crate) fn failed(call: &str) -> impl Fn(Error) -> Unlisted + '_ {
    move |error| Unlisted::Failed(format!("{call} failed: {:08X}", error.code().0))
}

/// An error unless `call` succeeded.
pub(crate) fn check(call: &str, result: HRESULT) -> Result<(), Unlisted> {
    result.ok().map_err(failed(call))
}
