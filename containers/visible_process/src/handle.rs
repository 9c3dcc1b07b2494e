//! A handle that is closed when it is dropped.

use windows::Win32::Foundation::{CloseHandle, HANDLE};

/// An open handle.
pub(crate) struct Handle(pub(crate) HANDLE);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and owned by this value. There is no useful reaction to
        // an error.
        let _ = unsafe { CloseHandle(self.0) };
    }
}
