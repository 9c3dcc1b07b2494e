//! The notifications of Windows and other systems.

use std::io;
use std::path::Path;

use notify::event::{AccessKind, AccessMode, EventKind as Kind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::{EventKind, FolderEvent};

/// Watches folders until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderWatcher(RecommendedWatcher);

impl FolderWatcher {
    pub(crate) fn new(
        on_event: impl Fn(FolderEvent) + Send + 'static,
    ) -> io::Result<FolderWatcher> {
        let translated = move |event| {
            if let Some(event) = translate(event) {
                on_event(event);
            }
        };
        notify::recommended_watcher(translated).map(FolderWatcher).map_err(io::Error::other)
    }

    pub(crate) fn watch(&mut self, folder: &Path) -> io::Result<()> {
        self.0.watch(folder, RecursiveMode::NonRecursive).map_err(io::Error::other)
    }

    pub(crate) fn unwatch(&mut self, folder: &Path) {
        // A deleted folder has no watch any more.
        let _ = self.0.unwatch(folder);
    }
}

fn translate(event: notify::Result<Event>) -> Option<FolderEvent> {
    let unknown = || FolderEvent { kind: EventKind::Unknown, paths: Vec::new() };
    let Ok(event) = event else { return Some(unknown()) };
    if event.need_rescan() || event.paths.is_empty() {
        return Some(unknown());
    }
    let kind = match event.kind {
        // Reading a file, as the owner of the watch does, is not a change.
        Kind::Access(kind) if kind != AccessKind::Close(AccessMode::Write) => return None,
        Kind::Modify(ModifyKind::Name(_)) | Kind::Remove(_) => EventKind::Replaced,
        Kind::Create(_) => EventKind::Created,
        _ => EventKind::Written,
    };
    Some(FolderEvent { kind, paths: event.paths })
}
