//! Reads a file, if it is a regular one.
//!
//! A FIFO, a socket or a device can make a read wait for ever, and opening one can have
//! effects of its own. In goes a path; out come the bytes, or an error that names the kind.
//! Symbolic links are followed, because the files of a mounted `ConfigMap` are links.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::MAX_BYTES;

/// How long one file may take. Files of a network or of user space can take for ever.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// How many reads over their time limit may wait for their file at once.
const MAX_STUCK_READS: usize = 4;

/// Reads at most one byte more than [`MAX_BYTES`], so that [`crate::parse()`] refuses a file
/// that is larger.
///
/// # Errors
/// Those of the operating system; a path that refers to no regular file (its text names the
/// [`FileKind`]); a file that takes longer than ten seconds. [`read_hint`] has the fix.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    static READS: AtomicUsize = AtomicUsize::new(0);
    let path = path.to_owned();
    within(TIME_LIMIT, &READS, move || read_regular(&path))
}

/// Advice about an error of [`read_bytes`].
#[must_use]
pub fn read_hint(error: &io::Error) -> Option<&'static str> {
    error.get_ref()?.downcast_ref::<ReadFailure>().map(|failure| match failure {
        ReadFailure::NotRegular(FileKind::Directory) => "name a file in the folder",
        ReadFailure::NotRegular(_) => "copy what it holds into a regular file, and name that file",
        ReadFailure::TimedOut(_) | ReadFailure::Stuck(_) => {
            "copy the file to a local disk, and name the copy"
        }
    })
}

/// What a path refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A file with bytes of its own.
    Regular,
    /// A folder.
    Directory,
    /// A named or anonymous pipe of Unix.
    Fifo,
    /// A socket.
    Socket,
    /// A device, or on Windows also a named pipe (`CON`, `NUL`, `\\.\pipe\x`).
    Device,
    /// Something else that the operating system can open.
    Other,
}

impl FileKind {
    /// What `path` refers to after following symbolic links.
    pub fn of(path: &Path) -> io::Result<FileKind> {
        if is_device_name(path)? {
            return Ok(FileKind::Device);
        }
        Ok(FileKind::from_metadata(&path.metadata()?))
    }

    fn from_metadata(metadata: &Metadata) -> FileKind {
        let kind = metadata.file_type();
        if kind.is_file() {
            FileKind::Regular
        } else if kind.is_dir() {
            FileKind::Directory
        } else {
            special(kind)
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Regular => "a regular file",
            FileKind::Directory => "a directory",
            FileKind::Fifo => "a FIFO",
            FileKind::Socket => "a socket",
            FileKind::Device => "a device",
            FileKind::Other => "a special file",
        })
    }
}

/// Why a file is not read although the operating system might.
#[derive(Debug, thiserror::Error)]
enum ReadFailure {
    #[error("it is {0}, not a regular file")]
    NotRegular(FileKind),
    #[error("reading it took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("{0} earlier reads have not ended")]
    Stuck(usize),
}

impl From<ReadFailure> for io::Error {
    fn from(failure: ReadFailure) -> io::Error {
        let kind = match failure {
            ReadFailure::NotRegular(_) => ErrorKind::InvalidInput,
            ReadFailure::TimedOut(_) | ReadFailure::Stuck(_) => ErrorKind::TimedOut,
        };
        io::Error::new(kind, failure)
    }
}

/// The result of `read` if it ends in time. A thread that does not end is left behind, at
/// most [`MAX_STUCK_READS`] of them; nothing can interrupt it.
fn within<T: Send + 'static>(
    limit: Duration,
    running: &'static AtomicUsize,
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (send, result) = channel();
    let others = running.fetch_add(1, Ordering::Relaxed);
    let slot = Slot(running);
    if others >= MAX_STUCK_READS {
        return Err(ReadFailure::Stuck(others).into());
    }
    let thread = std::thread::Builder::new().name("read-file".to_owned()).spawn(move || {
        let result = read();
        drop(slot);
        // The receiver is gone after its time limit.
        let _ = send.send(result);
    })?;
    let received = result.recv_timeout(limit);
    if received.is_ok() {
        // The process may exit next. Wine loses the exit status if a thread ends at that moment.
        let _ = thread.join();
    }
    received.map_err(|error| match error {
        RecvTimeoutError::Timeout => ReadFailure::TimedOut(limit).into(),
        RecvTimeoutError::Disconnected => io::Error::other("the thread that reads it panicked"),
    })?
}

/// One of the reads in progress.
struct Slot(&'static AtomicUsize);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    // Before opening, because to open a device can have effects.
    check(FileKind::of(path)?)?;
    let file = open(path)?;
    // Again, because the file may have been replaced since.
    check(FileKind::from_metadata(&file.metadata()?))?;
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn check(kind: FileKind) -> io::Result<()> {
    if kind == FileKind::Regular { Ok(()) } else { Err(ReadFailure::NotRegular(kind).into()) }
}

/// Opens a file; never waits for the other end of a FIFO.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        /// `O_NONBLOCK`: `asm-generic/fcntl.h` of Linux, `fcntl.h` of macOS and the BSDs.
        const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0x4 };
        options.custom_flags(O_NONBLOCK);
    }
    options.open(path)
}

#[cfg(unix)]
fn special(kind: std::fs::FileType) -> FileKind {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        FileKind::Fifo
    } else if kind.is_socket() {
        FileKind::Socket
    } else if kind.is_block_device() || kind.is_char_device() {
        FileKind::Device
    } else {
        FileKind::Other
    }
}

#[cfg(not(unix))]
fn special(_: std::fs::FileType) -> FileKind {
    FileKind::Other
}

/// Whether a path names a device or a pipe of Windows wherever it occurs, such as `NUL` or
/// `\\.\pipe\x` (Microsoft's "Naming Files, Paths, and Namespaces").
fn is_device_name(path: &Path) -> io::Result<bool> {
    use std::path::{Component, Prefix};
    // Windows turns reserved names into paths of devices: `CON` into `\\.\CON`.
    let path: PathBuf = if cfg!(windows) { std::path::absolute(path)? } else { return Ok(false) };
    let Some(Component::Prefix(prefix)) = path.components().next() else { return Ok(false) };
    Ok(match prefix.kind() {
        Prefix::DeviceNS(_) => true,
        Prefix::UNC(_, share) | Prefix::VerbatimUNC(_, share) => share.eq_ignore_ascii_case("pipe"),
        // A volume has files: `\\?\Volume{…}`.
        Prefix::Verbatim(name) => !name.to_string_lossy().to_lowercase().starts_with("volume{"),
        Prefix::VerbatimDisk(_) | Prefix::Disk(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;

    #[test]
    fn a_file_that_takes_too_long_is_an_error_and_so_are_more_than_a_few_of_them() {
        static READS: AtomicUsize = AtomicUsize::new(0);
        let limit = Duration::from_millis(10);
        let mut releases = Vec::new();
        for _ in 0..MAX_STUCK_READS {
            let (release, blocked): (_, Receiver<()>) = channel();
            releases.push(release);
            let error = within(limit, &READS, move || Ok(blocked.recv().is_ok())).unwrap_err();
            assert_eq!(error.to_string(), "reading it took longer than 0 s");
            assert!(read_hint(&error).is_some());
        }
        let error = within(limit, &READS, || Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "4 earlier reads have not ended");
        drop(releases);
        while READS.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        assert!(within(Duration::from_mins(1), &READS, || Ok(())).is_ok());
    }

    #[test]
    fn a_directory_and_a_missing_file_are_different_errors() {
        let folder = tempfile::tempdir().unwrap();
        let error = read_bytes(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "it is a directory, not a regular file");
        assert_eq!(read_hint(&error), Some("name a file in the folder"));
        let error = read_bytes(&folder.path().join("missing")).unwrap_err();
        assert_eq!((error.kind(), read_hint(&error)), (ErrorKind::NotFound, None));
    }

    #[cfg(unix)]
    mod unix {
        use super::*;
        use std::os::unix::fs::symlink;
        use std::os::unix::net::UnixListener;
        use std::process::Command;

        fn fifo(path: &Path) {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }

        #[test]
        fn what_is_no_regular_file_is_named_and_not_waited_for() {
            let folder = tempfile::tempdir().unwrap();
            let [pipe, socket] = ["pipe", "socket"].map(|name| folder.path().join(name));
            fifo(&pipe);
            let _listener = UnixListener::bind(&socket).unwrap();
            let link = folder.path().join("link");
            symlink(&pipe, &link).unwrap();
            for (path, kind) in [
                (&*pipe, "a FIFO"),
                (&*link, "a FIFO"),
                (&*socket, "a socket"),
                (Path::new("/dev/zero"), "a device"),
            ] {
                let error = read_bytes(path).unwrap_err();
                assert_eq!(error.to_string(), format!("it is {kind}, not a regular file"));
                assert!(read_hint(&error).is_some());
            }
        }

        /// The file may become a FIFO after it was looked at.
        #[test]
        fn opening_a_fifo_does_not_wait_for_a_writer() {
            let folder = tempfile::tempdir().unwrap();
            let pipe = folder.path().join("pipe");
            fifo(&pipe);
            let file = open(&pipe).unwrap();
            assert_eq!(FileKind::from_metadata(&file.metadata().unwrap()), FileKind::Fifo);
        }

        #[test]
        fn a_symbolic_link_to_a_regular_file_is_read() {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("file"), "text").unwrap();
            symlink("file", folder.path().join("link")).unwrap();
            assert_eq!(read_bytes(&folder.path().join("link")).unwrap(), b"text");
        }
    }

    #[cfg(windows)]
    #[test]
    fn names_of_devices_and_pipes_are_recognised() {
        for name in ["NUL", "CON", r"\\.\pipe\x", r"\\?\pipe\x", r"\\?\GLOBALROOT\Device\Null"] {
            assert_eq!(FileKind::of(Path::new(name)).unwrap(), FileKind::Device, "{name}");
        }
        assert_eq!(FileKind::of(Path::new(r"C:\")).unwrap(), FileKind::Directory);
    }
}
