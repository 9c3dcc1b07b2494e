//! A log file of limited size, and the one before it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The largest size of the file. With the one before it, twice as much is on the disk.
const FILE_BYTES: u64 = 10 * 1024 * 1024;

/// A file that lines are appended to. One that is full is renamed to `<name>.1` and replaces the
/// earlier one of that name.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
}

impl LogFile {
    /// Opens or creates the file, and its folder if there is none.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn open(path: &Path) -> io::Result<LogFile> {
        Self::with_limit(path, FILE_BYTES)
    }

    fn with_limit(path: &Path, limit: u64) -> io::Result<LogFile> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = append(path)?;
        let size = file.metadata()?.len();
        Ok(LogFile { path: path.to_owned(), file, size, limit })
    }

    fn replace(&mut self) -> io::Result<()> {
        let mut earlier = OsString::from(&self.path);
        earlier.push(".1");
        match fs::rename(&self.path, earlier) {
            Ok(()) => self.file = append(&self.path)?,
            // Another program has one of the files open. Losing lines is better than filling the
            // disk.
            Err(_) => self.file.set_len(0)?,
        }
        self.size = 0;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.size > 0 && self.size + line.len() as u64 > self.limit {
            self.replace()?;
        }
        let written = self.file.write(line)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_full_file_replaces_the_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("plugin.log");
        let earlier = path.with_extension("log.1");
        let mut log = LogFile::with_limit(&path, 8).unwrap();
        for line in ["aaa\n", "bbb\n", "ccc\n", "ddd\n", "eee\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!((text(&path), text(&earlier)), ("eee\n".into(), "ccc\nddd\n".into()));
        // A line that is longer than a file is written whole.
        log.write_all(b"longer than 8\n").unwrap();
        assert_eq!((text(&path), text(&earlier)), ("longer than 8\n".into(), "eee\n".into()));
    }

    #[test]
    fn a_restarted_program_appends_and_counts_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin.log");
        for line in ["aaa\n", "bbb\n", "ccc\n"] {
            LogFile::with_limit(&path, 8).unwrap().write_all(line.as_bytes()).unwrap();
        }
        let earlier = path.with_extension("log.1");
        assert_eq!((text(&path), text(&earlier)), ("ccc\n".into(), "aaa\nbbb\n".into()));
    }

    #[test]
    fn a_file_that_cannot_be_renamed_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin.log");
        fs::create_dir(path.with_extension("log.1")).unwrap();
        let mut log = LogFile::with_limit(&path, 8).unwrap();
        for line in ["aaa\n", "bbb\n", "ccc\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(text(&path), "ccc\n");
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(LogFile::open(&file.join("plugin.log")).is_err());
    }
}
