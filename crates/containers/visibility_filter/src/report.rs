//! Writes a line to the process's standard error about what is not filtered.

use core::ptr::{null, null_mut};

use crate::nt::{self, Handle, IO_STATUS_BLOCK};

/// The longest line.
const LENGTH: usize = 400;

/// Writes a line of `parts`, and of `code` as hexadecimal digits.
pub(crate) fn line(parts: &[&[u8]], code: &[u8]) {
    let mut text = [0; LENGTH];
    let mut length = add(&mut text, 0, b"directx-visible: ");
    for part in parts {
        length = add(&mut text, length, part);
    }
    for byte in code {
        length = add(&mut text, length, &[digit(byte >> 4), digit(byte & 0xF)]);
    }
    length = add(&mut text, length, b"\r\n");
    if let Some(error) = standard_error() {
        write(error, text.get(..length).unwrap_or_default());
    }
}

/// Writes `part` into `text` after its first `length` bytes, as much as fits, and returns the new
/// length.
#[inline(never)]
fn add(text: &mut [u8; LENGTH], mut length: usize, part: &[u8]) -> usize {
    for byte in part {
        if let Some(place) = text.get_mut(length) {
            *place = *byte;
            length += 1;
        }
    }
    length
}

fn digit(half: u8) -> u8 {
    half + if half < 10 { b'0' } else { b'A' - 10 }
}

fn standard_error() -> Option<Handle> {
    // SAFETY: every process has a process environment block, which is never freed.
    let peb = unsafe { nt::RtlGetCurrentPeb().as_ref() }?;
    // SAFETY: the loader sets the parameters before any library runs.
    let parameters = unsafe { peb.parameters.as_ref() }?;
    let handle = parameters.standard_error;
    (!handle.is_null() && handle != nt::CURRENT_PROCESS).then_some(handle)
}

fn write(file: Handle, text: &[u8]) {
    let mut io_status = IO_STATUS_BLOCK::default();
    let length = u32::try_from(text.len()).unwrap_or_default();
    // SAFETY: the text and the status live until the write is complete: a write that
    // continues is waited for below. A handle that is not a file is an error.
    let status = unsafe {
        nt::NtWriteFile(
            file,
            null_mut(),
            None,
            null(),
            &raw mut io_status,
            text.as_ptr().cast(),
            length,
            null(),
            null(),
        )
    };
    if status == nt::STATUS_PENDING {
        // SAFETY: the write used this handle.
        let _ = unsafe { nt::NtWaitForSingleObject(file, false, null_mut()) };
    }
}
