//! Follows files: reports when they have changed and can be read.
//!
//! [`FileWatch`] uses the notifications of the operating system for the files, for symbolic links
//! on the way to them, and for their folders; nothing polls. A file that is written in place is
//! reported after it has stopped changing; one that is renamed into place, at once. Network file
//! systems report no changes.

mod folders;
mod stillness;
mod symlinks;
mod watch;

pub use stillness::KeepsChanging;
pub use watch::FileWatch;
