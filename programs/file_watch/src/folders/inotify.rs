//! inotify, without the events that change no file: most libraries also wake up for every open of a
//! file or folder, such as the daemon's own check of the kubelet's directory.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask, Watches};

use super::{EventKind, FolderEvent};

const REPORTED: WatchMask = WatchMask::ATTRIB
    .union(WatchMask::CREATE)
    .union(WatchMask::MODIFY)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::DELETE)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// Room for some events; one takes at most 272 bytes (inotify(7)).
const BUFFER_BYTES: usize = 1024;

/// Watches folders until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderWatcher {
    watches: Watches,
    folders: Arc<Mutex<Folders>>,
    stopped: Arc<AtomicBool>,
}

type Folders = HashMap<WatchDescriptor, PathBuf>;

impl FolderWatcher {
    pub(crate) fn new(
        on_event: impl Fn(FolderEvent) + Send + 'static,
    ) -> io::Result<FolderWatcher> {
        let inotify = Inotify::init()?;
        let watches = inotify.watches();
        let (folders, stopped) = (Arc::default(), Arc::default());
        let reader =
            Reader { inotify, folders: Arc::clone(&folders), stopped: Arc::clone(&stopped) };
        std::thread::Builder::new()
            .name("folder-watch".to_owned())
            .spawn(move || reader.run(&on_event))?;
        Ok(FolderWatcher { watches, folders, stopped })
    }

    pub(crate) fn watch(&mut self, folder: &Path) -> io::Result<()> {
        // Locked before, so that the first event finds the folder.
        let mut folders = lock(&self.folders);
        let watch = self.watches.add(folder, REPORTED)?;
        folders.insert(watch, folder.to_owned());
        Ok(())
    }

    pub(crate) fn unwatch(&mut self, folder: &Path) {
        let mut folders = lock(&self.folders);
        let watched = folders.iter().find(|(_, path)| *path == folder);
        if let Some(watch) = watched.map(|(watch, _)| watch.clone()) {
            folders.remove(&watch);
            // The watch of a removed folder no longer exists.
            let _ = self.watches.remove(watch);
        }
    }
}

impl Drop for FolderWatcher {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // The end of a watch is an event, for which the thread wakes up.
        if let Ok(watch) = self.watches.add("/", WatchMask::DELETE_SELF) {
            let _ = self.watches.remove(watch);
        }
    }
}

/// The thread's own state.
struct Reader {
    inotify: Inotify,
    folders: Arc<Mutex<Folders>>,
    stopped: Arc<AtomicBool>,
}

impl Reader {
    fn run(mut self, on_event: &dyn Fn(FolderEvent)) {
        let mut buffer = [0; BUFFER_BYTES];
        while !self.stopped.load(Ordering::Acquire) {
            match self.inotify.read_events_blocking(&mut buffer) {
                Ok(events) => {
                    events.filter_map(|event| translate(&event, &self.folders)).for_each(on_event);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    on_event(FolderEvent { kind: EventKind::Unknown, paths: Vec::new() });
                    return;
                }
            }
        }
    }
}

fn translate(event: &Event<&std::ffi::OsStr>, folders: &Mutex<Folders>) -> Option<FolderEvent> {
    if event.mask.contains(EventMask::Q_OVERFLOW) {
        return Some(FolderEvent { kind: EventKind::Unknown, paths: Vec::new() });
    }
    let replaced = EventMask::DELETE
        .union(EventMask::DELETE_SELF)
        .union(EventMask::MOVED_FROM)
        .union(EventMask::MOVED_TO)
        .union(EventMask::MOVE_SELF)
        .union(EventMask::UNMOUNT);
    let written = EventMask::ATTRIB.union(EventMask::MODIFY).union(EventMask::CLOSE_WRITE);
    let kind = if event.mask.intersects(replaced) {
        EventKind::Replaced
    } else if event.mask.contains(EventMask::CREATE) {
        EventKind::Created
    } else if event.mask.intersects(written) {
        EventKind::Written
    } else {
        // The end of a watch.
        return None;
    };
    // Events of a watch that was removed may follow.
    let folder = lock(folders).get(&event.wd)?.clone();
    Some(FolderEvent { kind, paths: vec![event.name.map_or(folder.clone(), |n| folder.join(n))] })
}

fn lock(folders: &Mutex<Folders>) -> MutexGuard<'_, Folders> {
    folders.lock().unwrap_or_else(PoisonError::into_inner)
}
