//! Following a file as the operating system tells of its changes.
//!
//! One thread owns the watches and calls back; it sleeps until something happens
//! in one of the watched folders. Dropping the watch ends the thread.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use devices::ChangeCallback;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::links::Way;

/// A file that is written in pieces is told of once: when nothing has happened for
/// [`QUIET`], but after [`LONGEST_WAIT`] in any case.
const QUIET: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// When to try again to watch a folder that could not be watched.
const RETRY: Duration = Duration::from_secs(1);
/// How often folders may change under our hands while we begin to watch them,
/// before we wait for [`RETRY`].
const MOST_PASSES: usize = 8;

/// A file that is being followed.
#[derive(Debug)]
pub(crate) struct FileWatch {
    orders: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Event(notify::Result<Event>),
    Stop,
}

impl FileWatch {
    /// Calls `on_change` after every change of `path` from now on.
    pub(crate) fn start(path: &Path, on_change: ChangeCallback) -> notify::Result<FileWatch> {
        if path.file_name().is_none() {
            return Err(notify::Error::path_not_found().add_path(path.to_owned()));
        }
        let (orders, messages) = channel();
        let events = orders.clone();
        let watcher = notify::recommended_watcher(move |event| {
            if is_change(&event) {
                // The thread that listens may be ending.
                let _ = events.send(Message::Event(event));
            }
        })?;
        let mut follower = Follower {
            path: std::path::absolute(path)?,
            watcher,
            way: Way::default(),
            watched: BTreeSet::new(),
        };
        follower.rewatch()?;
        let thread = std::thread::Builder::new()
            .name("inventory-watch".to_owned())
            .spawn(move || follower.run(&messages, &on_change))?;
        Ok(FileWatch { orders, thread: Some(thread) })
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        // An error means that the thread has ended.
        let _ = self.orders.send(Message::Stop);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the callback has been printed by its thread.
            let _ = thread.join();
        }
    }
}

/// Reading a file is no change; our own reading least of all.
fn is_change(event: &notify::Result<Event>) -> bool {
    match event {
        Ok(event) => match event.kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            _ => true,
        },
        Err(_) => true,
    }
}

struct Follower {
    path: PathBuf,
    watcher: RecommendedWatcher,
    /// What was found when the watches were set.
    way: Way,
    watched: BTreeSet<PathBuf>,
}

impl Follower {
    fn run(mut self, messages: &Receiver<Message>, on_change: &ChangeCallback) {
        let mut complete = true;
        loop {
            match self.next(messages, complete) {
                Next::Stop => return,
                Next::Nothing => continue,
                Next::Change => {}
            }
            if let Next::Stop = self.settle(messages) {
                return;
            }
            complete = self.rewatch().is_ok();
            on_change();
        }
    }

    /// Waits for the next message; while a folder is not watched, not for long.
    fn next(&mut self, messages: &Receiver<Message>, complete: bool) -> Next {
        let message = if complete {
            messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            messages.recv_timeout(RETRY)
        };
        match message {
            Ok(Message::Event(event)) => self.heed(&event),
            Err(RecvTimeoutError::Timeout) => Next::Change,
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => Next::Stop,
        }
    }

    /// Waits until the file is left alone.
    fn settle(&mut self, messages: &Receiver<Message>) -> Next {
        let end = Instant::now() + LONGEST_WAIT;
        let mut quiet = Instant::now() + QUIET;
        loop {
            let wait = quiet.min(end).saturating_duration_since(Instant::now());
            match messages.recv_timeout(wait) {
                Ok(Message::Event(event)) => {
                    if let Next::Change = self.heed(&event) {
                        quiet = Instant::now() + QUIET;
                    }
                    if Instant::now() >= end {
                        return Next::Change;
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Next::Change,
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return Next::Stop,
            }
        }
    }

    /// Whether an event is about the file, a link on the way to it, or a watched
    /// folder itself. Lost events and errors may be.
    fn heed(&mut self, event: &notify::Result<Event>) -> Next {
        let Ok(event) = event else { return Next::Change };
        let replaced = self.forget_replaced(event);
        let names = |path: &PathBuf| {
            let name = path.file_name().unwrap_or(OsStr::new(""));
            self.way.names.iter().any(|n| n.eq_ignore_ascii_case(name))
        };
        let lost = event.need_rescan() || event.paths.is_empty();
        if replaced || lost || event.paths.iter().any(names) { Next::Change } else { Next::Nothing }
    }

    /// A watch stays with its folder when that is renamed or removed: whatever has
    /// the name afterwards needs a watch of its own. Says whether that happened.
    fn forget_replaced(&mut self, event: &Event) -> bool {
        let is_replacement = match event.kind {
            EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_)),
            EventKind::Create(_) | EventKind::Remove(_) => true,
            _ => false,
        };
        if !is_replacement {
            return false;
        }
        let is_in = |folder: &PathBuf| {
            let folder = folder.as_os_str();
            event.paths.iter().any(|path| path.as_os_str().eq_ignore_ascii_case(folder))
        };
        let (stale, kept) = std::mem::take(&mut self.watched).into_iter().partition(is_in);
        self.watched = kept;
        self.unwatch(&stale);
        !stale.is_empty()
    }

    fn unwatch(&mut self, folders: &BTreeSet<PathBuf>) {
        for folder in folders {
            // A folder that is gone took its watch along.
            let _ = self.watcher.unwatch(folder);
        }
    }

    /// Watches the folders that matter now and no others, until they hold still.
    fn rewatch(&mut self) -> notify::Result<()> {
        let mut result = Ok(());
        for _ in 0..MOST_PASSES {
            let way = Way::to(&self.path)?;
            let same = way == self.way;
            self.way = way;
            let before = self.watched.clone();
            result = self.watch_folders();
            if same && result.is_ok() && before == self.watched {
                return Ok(());
            }
        }
        result
    }

    fn watch_folders(&mut self) -> notify::Result<()> {
        let stale: BTreeSet<PathBuf> = &self.watched - &self.way.folders;
        self.unwatch(&stale);
        self.watched = &self.watched - &stale;
        for folder in &self.way.folders - &self.watched {
            self.watcher.watch(&folder, RecursiveMode::NonRecursive)?;
            self.watched.insert(folder);
        }
        Ok(())
    }
}

enum Next {
    Change,
    Nothing,
    Stop,
}
