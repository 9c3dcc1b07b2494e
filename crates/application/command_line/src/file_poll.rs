//! Finds out whether files have changed, by looking at them again and again.
//!
//! This needs no special case for symbolic links, such as those of a mounted `ConfigMap`, for
//! folders that come and go, and for network file systems.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// How often to call [`FilePoll::has_changed`].
pub const INTERVAL: Duration = Duration::from_secs(1);

/// How long a changed file must stay the same. A part of a YAML file can be valid. Programs that
/// write a file piece by piece pause for less.
const SETTLING_TIME: Duration = Duration::from_millis(200);

/// Files and how they were at the last look.
#[derive(Clone, Debug, Default)]
pub struct FilePoll {
    paths: Vec<PathBuf>,
    seen: Vec<Stamp>,
}

/// What changes with a file and its content: its length, the time of the last write, and its
/// number. `None` for a file that cannot be looked at.
type Stamp = Option<(u64, SystemTime, u64)>;

impl FilePoll {
    /// The files at `paths` as they are now. Read them afterwards, so that no change is lost.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> FilePoll {
        FilePoll { seen: stamps(&paths), paths }
    }

    /// Looks at the files at `paths` from now on. If they are others than before, they count as
    /// changed.
    pub fn set_paths(&mut self, paths: Vec<PathBuf>) {
        self.paths = paths;
    }

    /// Whether the files have changed since the last call. Files that are still being written have
    /// not: a later call reports them.
    pub fn has_changed(&mut self) -> bool {
        self.has_settled(SETTLING_TIME, || sleep(SETTLING_TIME))
    }

    /// Whether the files have changed, and stay the same during a `pause` if the last write is not
    /// older than `settling_time`.
    fn has_settled(&mut self, settling_time: Duration, pause: impl FnOnce()) -> bool {
        let now = stamps(&self.paths);
        if now == self.seen {
            return false;
        }
        let is_settled = !now.iter().any(|stamp| is_newer(stamp, settling_time)) || {
            pause();
            now == stamps(&self.paths)
        };
        if is_settled {
            self.seen = now;
        }
        is_settled
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    paths.iter().map(|path| stamp(path)).collect()
}

fn is_newer(stamp: &Stamp, limit: Duration) -> bool {
    stamp.is_some_and(|(_, written, _)| written.elapsed().is_ok_and(|age| age < limit))
}

fn stamp(path: &Path) -> Stamp {
    let found = path.metadata().ok()?;
    Some((found.len(), found.modified().ok()?, number(&found)))
}

/// The number of a file. Files that Linux creates within some milliseconds have the same times.
#[cfg(unix)]
fn number(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

/// Times on Windows are exact.
#[cfg(not(unix))]
fn number(_found: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A program that writes a file in place makes it empty first.
    #[test]
    fn a_file_that_is_being_written_has_not_changed_yet() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        fs::write(&file, "multitenancy: 2").unwrap();
        let mut poll = FilePoll::new(vec![file.clone()]);
        assert!(!poll.has_settled(Duration::MAX, || panic!("nothing was written")));
        fs::write(&file, "").unwrap();
        let writes_on = || fs::write(&file, "multitenancy: 5 # then more").unwrap();
        assert!(!poll.has_settled(Duration::MAX, writes_on));
        assert!(poll.has_settled(Duration::MAX, || {}));
        assert!(!poll.has_settled(Duration::MAX, || panic!("nothing was written")));
        fs::write(&file, "multitenancy: 9").unwrap();
        assert!(poll.has_settled(Duration::ZERO, || panic!("the write is old enough")));
    }
}
