//! When changed files can be read.
//!
//! A file that is renamed into place is complete at once. One that is written in place may
//! be cut anywhere, and YAML that is cut between two list items is valid; such a file is
//! read after nothing has changed for a while. [`Settling`] decides, from values; the thread
//! that follows the file announces the result to readers through [`Stillness`].

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long nothing may change before a file that is written in place is read. Programs that
/// write a file piece by piece pause for less.
const QUIET: Duration = Duration::from_millis(200);
/// How long to wait for more renames and removals, so that several cause one read.
const BURST: Duration = Duration::from_millis(10);
/// The longest such wait.
const LONGEST_BURST: Duration = Duration::from_millis(50);
/// How long a file may change until that is reported as an error.
pub(crate) const CHANGE_LIMIT: Duration = Duration::from_secs(10);

/// How a file changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// A rename or a removal: what the path refers to now is complete.
    Replaced,
    /// It was created or written in place, and more may follow.
    Written,
}

/// What changes with the content of files: length, time of the last write, and time of creation,
/// which another file has. `None` for a file that cannot be looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(Vec<Option<FileStamp>>);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct FileStamp {
    length: u64,
    written: Option<SystemTime>,
    created: Option<SystemTime>,
}

/// The stamp of the files at `paths`.
pub(crate) fn stamp(paths: &[PathBuf]) -> Stamp {
    let of_file = |path: &PathBuf| {
        let found = path.metadata().ok()?;
        let (written, created) = (found.modified().ok(), found.created().ok());
        Some(FileStamp { length: found.len(), written, created })
    };
    Stamp(paths.iter().map(of_file).collect())
}

/// A file that has changed and may not be complete.
#[derive(Clone, Debug)]
pub(crate) struct Settling {
    change: Change,
    first: Instant,
    last: Instant,
    stamp: Stamp,
}

impl Settling {
    /// The file changed at `now` and then had the stamp `stamp`.
    pub(crate) fn new(change: Change, now: Instant, stamp: Stamp) -> Settling {
        Settling { change, first: now, last: now, stamp }
    }

    /// The file changed again.
    pub(crate) fn add(&mut self, change: Change, now: Instant, stamp: Stamp) {
        match (self.change, change) {
            // A rename can be followed by events that change no content.
            (Change::Replaced, Change::Written) if self.stamp == stamp => {}
            (before, _) if before == change => {
                (self.last, self.stamp) = (now, stamp);
            }
            _ => *self = Settling::new(change, now, stamp),
        }
    }

    /// When to call [`Settling::is_settled`].
    pub(crate) fn due(&self) -> Instant {
        match self.change {
            Change::Replaced => (self.last + BURST).min(self.first + LONGEST_BURST),
            Change::Written => self.last + QUIET,
        }
    }

    /// Whether the file can be read at `now`, when it has the stamp `stamp`. The stamp
    /// detects writes that were not reported, or not yet.
    pub(crate) fn is_settled(&mut self, now: Instant, stamp: Stamp) -> bool {
        if now < self.due() {
            return false;
        }
        let same = self.change == Change::Replaced || self.stamp == stamp;
        if !same {
            self.add(Change::Written, now, stamp);
        }
        same
    }

    /// Since when the file is being written in place.
    pub(crate) fn written_since(&self) -> Option<Instant> {
        (self.change == Change::Written).then_some(self.first)
    }
}

/// Whether the file is being written, as far as the thread that follows it knows.
#[derive(Debug, Default)]
pub(crate) struct Stillness {
    state: Mutex<State>,
    still: Condvar,
}

#[derive(Debug, Default)]
struct State {
    written_since: Option<Instant>,
    /// The number of writes so far.
    writes: u64,
}

/// A file has been changing for too long.
#[derive(Debug, thiserror::Error)]
#[error("the file has not stopped changing for {} s", CHANGE_LIMIT.as_secs())]
pub struct KeepsChanging;

impl Stillness {
    /// Announces the state of the file.
    pub(crate) fn set(&self, written_since: Option<Instant>) {
        let mut state = self.lock();
        state.written_since = written_since;
        state.writes += u64::from(written_since.is_some());
        self.still.notify_all();
    }

    /// The result of `read` from a moment at which nobody wrote the file.
    pub(crate) fn read<T>(&self, mut read: impl FnMut() -> T) -> Result<T, KeepsChanging> {
        loop {
            let before = self.wait()?;
            let result = read();
            if self.lock().writes == before {
                return Ok(result);
            }
        }
    }

    /// Waits until nobody writes the file, and returns the number of writes so far.
    fn wait(&self) -> Result<u64, KeepsChanging> {
        let mut state = self.lock();
        while let Some(since) = state.written_since {
            let left = (since + CHANGE_LIMIT).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(KeepsChanging);
            }
            let woken = self.still.wait_timeout(state, left);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(state.writes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn stamp_of(length: u64) -> Stamp {
        Stamp(vec![Some(FileStamp { length, ..FileStamp::default() })])
    }

    /// When a file can be read that changes at these times (in milliseconds), each time
    /// with another stamp. The stamps of the pairs are seen only when somebody looks.
    fn settled_after(changes: &[(u32, Change)], unreported: &[u32]) -> u32 {
        let start = Instant::now();
        let at = |ms: u32| start + ms * MS;
        let stamp_at = |ms: u32| {
            let reported = changes.iter().filter(|(time, _)| *time <= ms).count();
            let others = unreported.iter().filter(|time| **time <= ms).count();
            stamp_of((reported + others) as u64)
        };
        let mut settling = Settling::new(changes[0].1, at(0), stamp_at(0));
        for ms in 0..60_000 {
            for (_, change) in changes.iter().skip(1).filter(|(time, _)| *time == ms) {
                settling.add(*change, at(ms), stamp_at(ms));
            }
            if settling.due() <= at(ms) && settling.is_settled(at(ms), stamp_at(ms)) {
                return ms;
            }
        }
        panic!("{changes:?} never settles");
    }

    #[test]
    fn a_rename_is_complete_at_once_and_a_write_when_it_pauses() {
        use Change::{Replaced, Written};
        let written_with_pauses: Vec<_> = (0..100).map(|n| (50 * n, Written)).collect();
        let renames: Vec<_> = (0..100).map(|n| (5 * n, Replaced)).collect();
        for (changes, unreported, settled) in [
            (&[(0, Replaced)][..], &[][..], 10),
            (&[(0, Written)], &[], 200),
            (&written_with_pauses, &[], 99 * 50 + 200),
            (&renames, &[], 50),
            (&[(0, Written), (20, Replaced)], &[], 30),
            (&[(0, Replaced), (5, Written)], &[], 205),
            // Writes that the operating system has not reported.
            (&[(0, Written)], &[150, 300], 600),
        ] {
            assert_eq!(settled_after(changes, unreported), settled, "{changes:?} {unreported:?}");
        }
    }

    #[test]
    fn an_event_after_a_rename_that_changes_no_content_does_not_delay_it() {
        let start = Instant::now();
        let mut settling = Settling::new(Change::Replaced, start, stamp_of(7));
        settling.add(Change::Written, start + 5 * MS, stamp_of(7));
        assert_eq!((settling.due(), settling.written_since()), (start + BURST, None));
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_again() {
        let stillness = Stillness::default();
        let mut reads = 0;
        let result = stillness.read(|| {
            reads += 1;
            if reads == 1 {
                stillness.set(Some(Instant::now()));
                stillness.set(None);
            }
            reads
        });
        assert_eq!(result.unwrap(), 2);
    }

    #[test]
    fn a_file_that_keeps_changing_is_an_error() {
        let stillness = Stillness::default();
        let Some(since) = Instant::now().checked_sub(CHANGE_LIMIT) else { return };
        stillness.set(Some(since));
        let error = stillness.read(|| ()).unwrap_err();
        assert_eq!(error.to_string(), "the file has not stopped changing for 10 s");
        stillness.set(None);
        assert!(stillness.read(|| ()).is_ok());
    }
}
