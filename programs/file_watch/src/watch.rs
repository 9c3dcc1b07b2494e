//! Follows files through change notifications of the operating system.
//!
//! One thread owns the watches and calls back; it sleeps until something happens in a watched
//! folder. A change is reported when the files can be read. Dropping the watch stops the thread.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::folders::{EventKind, FolderEvent, FolderWatcher};
use crate::stillness::{CHANGE_LIMIT, Change, KeepsChanging, Settling, Stillness, stamp};
use crate::symlinks::WatchList;

/// When to retry a folder that could not be watched.
const RETRY: Duration = Duration::from_secs(1);
/// How often folders may change while they are being watched for the first time, before
/// waiting for [`RETRY`].
const MAX_PASSES: usize = 8;

/// Files whose changes are reported, until this is dropped.
#[derive(Debug)]
pub struct FileWatch {
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
    stillness: Arc<Stillness>,
}

/// Called on the thread of the watch.
type OnChange = Box<dyn Fn() + Send>;

enum Message {
    Event(FolderEvent),
    Stop,
}

impl FileWatch {
    /// Calls `on_change` after every change of the files `paths` from now on. It must return
    /// immediately.
    ///
    /// # Errors
    /// A path has no file name, or the operating system cannot watch the folder of a file.
    pub fn start<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        on_change: impl Fn() + Send + 'static,
    ) -> io::Result<FileWatch> {
        let paths: Vec<PathBuf> = paths.into_iter().map(absolute).collect::<Result<_, _>>()?;
        let (sender, messages) = channel();
        let events = sender.clone();
        let watcher = FolderWatcher::new(move |event| {
            // The receiving thread may be stopping.
            let _ = events.send(Message::Event(event));
        })?;
        let stillness = Arc::new(Stillness::default());
        let mut follower = Follower {
            stillness: stillness.clone(),
            paths,
            watcher,
            list: WatchList::default(),
            watched: BTreeSet::new(),
        };
        follower.rewatch()?;
        let on_change: OnChange = Box::new(on_change);
        let thread = std::thread::Builder::new()
            .name("file-watch".to_owned())
            .spawn(move || follower.run(&messages, &on_change))?;
        Ok(FileWatch { messages: sender, thread: Some(thread), stillness })
    }

    /// The result of `read` from a moment at which nobody wrote the files. Waits for that moment,
    /// and repeats `read` if somebody wrote in the meantime.
    ///
    /// # Errors
    /// The files have been changing for ten seconds.
    pub fn read_still<T>(&self, read: impl FnMut() -> T) -> Result<T, KeepsChanging> {
        self.stillness.read(read)
    }
}

fn absolute(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    if path.file_name().is_none() {
        let what = format!("`{}` names no file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    std::path::absolute(path)
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        // An error means that the thread has stopped.
        let _ = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread has already printed a panic of the callback.
            let _ = thread.join();
        }
    }
}

struct Follower {
    paths: Vec<PathBuf>,
    stillness: Arc<Stillness>,
    watcher: FolderWatcher,
    /// The state for which the watches were set.
    list: WatchList,
    watched: BTreeSet<PathBuf>,
}

impl Follower {
    fn run(mut self, messages: &Receiver<Message>, on_change: &OnChange) {
        let mut complete = true;
        loop {
            let settled = match self.next(messages, complete) {
                Next::Stop => return,
                Next::Nothing => continue,
                Next::Change(change) => self.settle(change, messages, on_change),
            };
            if let Next::Stop = settled {
                return;
            }
            complete = self.rewatch().is_ok();
            self.stillness.set(None);
            on_change();
        }
    }

    /// Waits for the next message, at most [`RETRY`] while a folder is not watched.
    fn next(&mut self, messages: &Receiver<Message>, complete: bool) -> Next {
        let message = if complete {
            messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            messages.recv_timeout(RETRY)
        };
        match message {
            Ok(Message::Event(event)) => self.evaluate(&event),
            Err(RecvTimeoutError::Timeout) => Next::Change(Change::Replaced),
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => Next::Stop,
        }
    }

    /// Waits until the files can be read. A file that keeps changing is reported once, as a
    /// change; reading it then is an error.
    fn settle(
        &mut self,
        first: Change,
        messages: &Receiver<Message>,
        on_change: &OnChange,
    ) -> Next {
        let mut settling = Settling::new(first, Instant::now(), stamp(&self.paths));
        let mut reported = None;
        loop {
            let since = settling.written_since();
            self.stillness.set(since);
            let wait = settling.due().saturating_duration_since(Instant::now());
            match messages.recv_timeout(wait) {
                Ok(Message::Event(event)) => {
                    if let Next::Change(change) = self.evaluate(&event) {
                        settling.add(change, Instant::now(), stamp(&self.paths));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return Next::Stop,
            }
            if settling.is_settled(Instant::now(), stamp(&self.paths)) {
                return Next::Nothing;
            }
            if since.is_some_and(|since| since.elapsed() >= CHANGE_LIMIT) && reported != since {
                reported = since;
                on_change();
            }
        }
    }

    /// Whether an event concerns a file, a link on the way to it, or a watched folder
    /// itself. Lost events count as changes.
    fn evaluate(&mut self, event: &FolderEvent) -> Next {
        let replaced = self.forget_replaced(event);
        let names = |path: &PathBuf| {
            let name = path.file_name().unwrap_or(OsStr::new(""));
            self.list.names.iter().any(|n| n.eq_ignore_ascii_case(name))
        };
        let lost = event.kind == EventKind::Unknown;
        if replaced || lost || event.paths.iter().any(names) {
            Next::Change(event.kind.change())
        } else {
            Next::Nothing
        }
    }

    /// A watch follows its folder when that is renamed or removed; a new folder of the same
    /// name needs a new watch. Returns whether that happened, or may have.
    fn forget_replaced(&mut self, event: &FolderEvent) -> bool {
        if event.kind == EventKind::Written {
            return false;
        }
        let is_in = |folder: &PathBuf| {
            let folder = folder.as_os_str();
            event.kind == EventKind::Unknown
                || event.paths.iter().any(|path| path.as_os_str().eq_ignore_ascii_case(folder))
        };
        let (stale, kept) = std::mem::take(&mut self.watched).into_iter().partition(is_in);
        self.watched = kept;
        self.unwatch(&stale);
        !stale.is_empty()
    }

    fn unwatch(&mut self, folders: &BTreeSet<PathBuf>) {
        for folder in folders {
            self.watcher.unwatch(folder);
        }
    }

    /// Watches exactly the relevant folders; repeats until they no longer change.
    fn rewatch(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for _ in 0..MAX_PASSES {
            let list = WatchList::for_files(&self.paths);
            let same = list == self.list;
            self.list = list;
            let before = self.watched.clone();
            result = self.watch_folders();
            if same && result.is_ok() && before == self.watched {
                return Ok(());
            }
        }
        result
    }

    fn watch_folders(&mut self) -> io::Result<()> {
        let stale: BTreeSet<PathBuf> = &self.watched - &self.list.folders;
        self.unwatch(&stale);
        self.watched = &self.watched - &stale;
        for folder in &self.list.folders - &self.watched {
            self.watcher.watch(&folder)?;
            self.watched.insert(folder);
        }
        Ok(())
    }
}

enum Next {
    Change(Change),
    Nothing,
    Stop,
}
