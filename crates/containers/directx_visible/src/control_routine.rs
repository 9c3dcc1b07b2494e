//! The function that handles console events, in another process.

use visibility_filter::{environment_block_32, export_32};
use windows::Win32::Foundation::HANDLE;
use windows::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows::core::{s, w};

/// The name of the function.
const NAME: &[u8] = b"CtrlRoutine";

/// The libraries that may contain it; the first one may refer to the second.
const LIBRARIES: [&str; 2] = ["kernel32.dll", "kernelbase.dll"];

/// Offsets in the 32-bit process environment block and in the data that it refers to: the loader's
/// data, its list of libraries, and the address and the name of each library (winternl.h).
const LOADER: u32 = 0x0C;
const LIST: u32 = 0x0C;
const BASE: u32 = 0x18;
const NAME_LENGTH: u32 = 0x2C;
const NAME_TEXT: u32 = 0x30;

/// The most libraries of a process that are searched. The libraries of Windows are the first.
const MOST: usize = 64;

/// The address of the function in `process`.
pub(crate) fn address(process: HANDLE) -> Option<usize> {
    match environment_block_32(process.0) {
        Some(block) => Process(process).address_32(u32::try_from(block).ok()?),
        None => address_64(),
    }
}

/// The address in every 64-bit process.
fn address_64() -> Option<usize> {
    // SAFETY: kernel32.dll is loaded in every process.
    let kernel32 = unsafe { GetModuleHandleW(w!("kernel32.dll")) }.ok()?;
    // SAFETY: the library is loaded, and the name is null-terminated.
    unsafe { GetProcAddress(kernel32, s!("CtrlRoutine")) }.map(|routine| routine as usize)
}

/// A 32-bit process.
struct Process(HANDLE);

impl Process {
    fn address_32(&self, block: u32) -> Option<usize> {
        LIBRARIES.into_iter().find_map(|library| {
            let base = self.library(block, library)?;
            let rva = export_32(|rva, bytes| self.read(base.checked_add(rva)?, bytes), NAME)?;
            Some(base.checked_add(rva)? as usize)
        })
    }

    /// The address of a library.
    fn library(&self, block: u32, name: &str) -> Option<u32> {
        let list = self.number(block.checked_add(LOADER)?)?.checked_add(LIST)?;
        let mut entry = self.number(list)?;
        for _ in 0..MOST {
            if entry == list {
                break;
            }
            let length = self.number(entry.checked_add(NAME_LENGTH)?)? & 0xFFFF;
            if length as usize == name.len() * 2 {
                let mut text = vec![0; length as usize];
                self.read(self.number(entry.checked_add(NAME_TEXT)?)?, &mut text)?;
                let characters = text.iter().step_by(2);
                if characters.zip(name.bytes()).all(|(a, b)| a.eq_ignore_ascii_case(&b)) {
                    return self.number(entry.checked_add(BASE)?);
                }
            }
            entry = self.number(entry)?;
        }
        None
    }

    fn number(&self, address: u32) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    fn read(&self, address: u32, bytes: &mut [u8]) -> Option<()> {
        let from = std::ptr::without_provenance(address as usize);
        // SAFETY: the function writes at most as many bytes as the slice has; it checks the
        // address in the process itself.
        unsafe { ReadProcessMemory(self.0, from, bytes.as_mut_ptr().cast(), bytes.len(), None) }
            .ok()
    }
}
