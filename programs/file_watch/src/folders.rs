//! Changes in folders, as the operating system reports them.
//!
//! In go folders; out come events, on a thread of the watcher. Each operating system has a
//! [`FolderWatcher`]:
//!
//! - `new` takes the function that receives the events, which must return immediately.
//! - `watch` reports what happens in a folder, and to it, until `unwatch`. An error if the folder
//!   cannot be watched.
//! - Nothing is reported that changes no file. On Linux the thread then sleeps.

use std::path::PathBuf;

use crate::stillness::Change;

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
mod notify;

#[cfg(target_os = "linux")]
pub(crate) use self::inotify::FolderWatcher;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::notify::FolderWatcher;

/// Something happened in a watched folder, or to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FolderEvent {
    pub(crate) kind: EventKind,
    /// What it happened to; nothing if that is unknown.
    pub(crate) paths: Vec<PathBuf>,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventKind {
    /// A rename or a removal.
    Replaced,
    Created,
    /// Its content or its attributes changed.
    Written,
    /// Events were lost.
    Unknown,
}

impl EventKind {
    /// What it means for a file that it happened to.
    pub(crate) fn change(self) -> Change {
        match self {
            EventKind::Replaced => Change::Replaced,
            EventKind::Created | EventKind::Written | EventKind::Unknown => Change::Written,
        }
    }
}
