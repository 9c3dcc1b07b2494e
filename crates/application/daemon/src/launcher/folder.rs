//! The folder on the host with the files of `directx-visible`, which containers mount.
//!
//! Each content has a folder with its own name, which everybody may read and only administrators
//! may change. The folders of other contents stay: the kubelet gives a container the paths of its
//! allocation whenever it restarts, and several daemons may run on a node.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use command_line::error_chain;
use devices::LAUNCHER_FILES;
use tempfile::{Builder, NamedTempFile};

use crate::LauncherError;

/// The folder of a content and its two parents below `ProgramData` belong to this program.
const OWN_LEVELS: usize = 3;

/// The folders on this host.
pub(crate) struct LauncherFolder {
    /// The folder with the folder of each content.
    pub(crate) root: PathBuf,
    /// The folders in which the files are looked for, the preferred one first.
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) rights: Rights,
}

/// Who may use a file or a folder. Everybody may read what is created, and only administrators may
/// change it.
pub(crate) struct Rights {
    /// Creates a folder.
    pub(crate) create_folder: fn(&Path) -> io::Result<()>,
    /// Creates a file and opens it to write.
    pub(crate) create_file: fn(&Path) -> io::Result<fs::File>,
    /// Fails if it is a link, or if others may change it.
    pub(crate) check: fn(&Path) -> io::Result<()>,
}

impl LauncherFolder {
    /// Makes a folder contain the files of the first source, and returns it.
    pub(crate) fn provide(&self) -> Result<String, LauncherError> {
        let files = self.source_files()?;
        let folder = self.root.join(checksum(&files));
        self.fill(&folder, &files)?;
        Ok(folder.display().to_string())
    }

    /// Names and contents of the files of the first source that has those that are needed.
    fn source_files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, LauncherError> {
        let mut problems = Vec::new();
        for folder in &self.sources {
            match read_files(folder) {
                Ok(files) => return Ok(files),
                Err(error) => problems.push(error_chain(&error)),
            }
        }
        Err(LauncherError::Missing(problems.join("; ")))
    }

    fn fill(&self, folder: &Path, files: &[(&'static str, Vec<u8>)]) -> Result<(), LauncherError> {
        let own: Vec<&Path> = folder.ancestors().take(OWN_LEVELS).collect();
        for level in own.into_iter().rev() {
            self.create(level).map_err(|error| failure("cannot use", level, error))?;
        }
        for (name, content) in files {
            let path = folder.join(name);
            self.write(&path, content).map_err(|error| failure("cannot write", &path, error))?;
        }
        Ok(())
    }

    /// Creates a folder, if it does not exist. Users may create folders in `ProgramData`. Such a
    /// folder is not taken over: who created it may have it open with any right.
    fn create(&self, folder: &Path) -> io::Result<()> {
        match (self.rights.create_folder)(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => (self.rights.check)(folder),
            created => created,
        }
    }

    /// Writes a file, unless it is equal. Nobody sees a part of it.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        remove_placeholder(path)?;
        if (self.rights.check)(path).is_ok() && fs::read(path)? == content {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(path);
        let create = self.rights.create_file;
        let new = temporary_file(folder, content, create)?.into_temp_path();
        // Windows does not replace a file that runs, but it moves it.
        let old = temporary_file(folder, b"", create)?.into_temp_path();
        if fs::symlink_metadata(path).is_ok() {
            fs::rename(path, &old)?;
        }
        Ok(new.persist(path)?)
    }
}

/// The name of the folder for these files: plugins of every version give the same content the same
/// name.
fn checksum(files: &[(&str, Vec<u8>)]) -> String {
    let mut checksum = crc32fast::Hasher::new();
    for (name, content) in files {
        checksum.update(name.as_bytes());
        checksum.update(&content.len().to_le_bytes());
        checksum.update(content);
    }
    format!("{:08x}", checksum.finalize())
}

/// Writes `content` to a new file with a random name. `create` creates it, or fails if it exists.
///
/// No error contains the name, so equal errors have equal texts and are logged once. The errors of
/// [`NamedTempFile`] contain it.
///
/// # Errors
/// The error of the operating system.
fn temporary_file(
    folder: &Path,
    content: &[u8],
    create: fn(&Path) -> io::Result<fs::File>,
) -> io::Result<NamedTempFile> {
    let new = Builder::new().make_in(folder, create)?;
    new.as_file().write_all(content)?;
    Ok(new)
}

/// Removes an empty folder in the place of a file. containerd creates such a folder when it starts a
/// container whose file no longer exists.
fn remove_placeholder(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    fs::remove_dir(path).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty => io::Error::other("it is a folder that is not empty"),
        _ => error,
    })
}

/// Names and contents of the files of `folder`. Only the first two of [`LAUNCHER_FILES`] are
/// needed.
///
/// `directx-visible --install` removes the first file before it changes the others, and writes it
/// after them, so all are of one version if the first one is the same before and after.
fn read_files(folder: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, LauncherError> {
    let mut files = Vec::new();
    for (n, name) in LAUNCHER_FILES.into_iter().enumerate() {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(content) => files.push((name, content)),
            Err(error) if n >= 2 && error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failure("cannot read", &path, error)),
        }
    }
    let first = folder.join(LAUNCHER_FILES[0]);
    if !fs::read(&first).is_ok_and(|content| content == files[0].1) {
        return Err(failure("cannot read", &first, io::Error::other("it is being replaced")));
    }
    Ok(files)
}

/// The folder with the folders of this host.
#[cfg(windows)]
#[must_use]
pub fn root_of_this_host() -> PathBuf {
    let root = std::env::var("SystemRoot").ok().and_then(|root| root.parse().ok());
    PathBuf::from(devices::launcher_root(&root.unwrap_or_default()))
}

/// System32 of this host.
#[cfg(windows)]
pub(crate) fn system32() -> PathBuf {
    let root = std::env::var("SystemRoot").unwrap_or_else(|_| r"C:\Windows".to_owned());
    Path::new(&root).join("System32")
}

/// Removes the folders of all contents, and says whether there were any.
pub fn remove_all(root: &Path) -> Result<bool, LauncherError> {
    let removed = match fs::remove_dir_all(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        removed => removed.map_err(|error| failure("cannot remove", root, error)),
    };
    // The parent stays as long as there is something in it.
    let _ = root.parent().map(fs::remove_dir);
    removed.map(|()| true)
}

fn failure(what: &'static str, path: &Path, source: io::Error) -> LauncherError {
    LauncherError::File { what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
