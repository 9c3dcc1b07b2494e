//! The disk of this machine, for plans.

use std::path::Path;

use devices::Disk;

/// Whether a file of a live host exists, read from this machine's disk.
#[must_use]
pub fn disk() -> Disk<'static> {
    Disk {
        exists: &|path| Path::new(path).is_file(),
        folders: &|path| win32::files::folders(Path::new(path)),
    }
}
