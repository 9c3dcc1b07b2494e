//! The folder on the host with the files of `directx-visible`, which containers mount.
//!
//! A folder of this version has files equal to those of a source, which everybody may read and
//! only administrators may change. The folders of other versions stay: the
//! kubelet gives a container the paths of its allocation whenever it restarts, and several daemons
//! may run on a node.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use devices::LAUNCHER_FILES;
use node::cli::Failure;

/// The folder and its two parents below `ProgramData` belong to this program.
const OWN_LEVELS: usize = 3;

const MISSING: &str = "set visibility.enabled of the chart, which copies directx-visible.exe and \
     directx-visible-filter.dll to %ProgramFiles%\\directx-visible; or copy them there or beside the \
     plugin, or set visibility: off";
const REFUSED: &str = "remove the folder if it is a link or belongs to another account, and look for an antivirus program \
     that locks the file; the plugin tries again every ten seconds";

/// The folder of this version.
pub(crate) struct LauncherFolder {
    pub(crate) folder: PathBuf,
    /// The folders in which the files are looked for, the preferred one first.
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) rights: Rights,
}

/// Who may use a file or a folder.
pub(crate) struct Rights {
    /// Lets everybody read it, and only administrators change it.
    pub(crate) share: fn(&Path) -> io::Result<()>,
    /// Whether only administrators may change it already.
    pub(crate) is_protected: fn(&Path) -> io::Result<bool>,
}

impl LauncherFolder {
    /// Makes the folder contain the files of this version.
    pub(crate) fn provide(&self) -> Result<(), Failure> {
        let files = self.source_files().map_err(|failure| failure.hint(MISSING))?;
        let mut folders: Vec<&Path> = self.folder.ancestors().take(OWN_LEVELS).collect();
        folders.reverse();
        let own = folders.into_iter().try_for_each(|folder| {
            self.create(folder).map_err(|error| failure("cannot create", folder, error))
        });
        own.and_then(|()| files.iter().try_for_each(|(name, content)| self.write(name, content)))
            .map_err(|failure| failure.hint(REFUSED))
    }

    /// Names and contents of the files of the first source that has those that are needed.
    fn source_files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
        let mut problems = Vec::new();
        for folder in &self.sources {
            match read_files(folder) {
                Ok(files) => return Ok(files),
                Err(failure) => problems.push(failure.chain()),
            }
        }
        Err(Failure::runtime(anyhow::Error::msg(problems.join("; "))))
    }

    /// Creates a folder, if it does not exist. Users may create folders in `ProgramData`, so an
    /// existing one is taken over, and no link is followed.
    fn create(&self, folder: &Path) -> io::Result<()> {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !fs::symlink_metadata(folder)?.is_dir() {
            return Err(io::Error::other("it is a link or a file"));
        }
        (self.rights.share)(folder)
    }

    /// Writes a file, unless it is equal. Nobody sees a part of it. A file that others could change is
    /// replaced: they may have it open.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        let new = self.folder.join(format!("{name}.new"));
        let write = || {
            // Of a start that was killed.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            if is_file && (self.rights.is_protected)(&path)? && fs::read(&path)? == content {
                return Ok(());
            }
            fs::write(&new, content)?;
            (self.rights.share)(&new)?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| failure("cannot write", &path, error))
    }
}

/// Names and contents of the files of `folder`. Only the first two of [`LAUNCHER_FILES`] are needed.
fn read_files(folder: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let mut files = Vec::new();
    for (n, name) in LAUNCHER_FILES.into_iter().enumerate() {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(content) => files.push((name, content)),
            Err(error) if n >= 2 && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failure("cannot read", &path, error)),
        }
    }
    Ok(files)
}

/// The folder of this version on this host.
#[cfg(windows)]
pub(crate) fn folder_of_this_host() -> PathBuf {
    let root = std::env::var("SystemRoot").ok().and_then(|root| root.parse().ok());
    PathBuf::from(devices::launcher_folder(&root.unwrap_or_default()))
}

/// Removes the folders of all versions, of which `folder` is one, and says whether there were any.
#[cfg_attr(not(windows), allow(dead_code, reason = "services exist on Windows"))]
pub(crate) fn remove_all(folder: &Path) -> Result<bool, Failure> {
    let all = folder.parent().unwrap_or(folder);
    let removed = match fs::remove_dir_all(all) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        removed => removed.map_err(|error| failure("cannot remove", all, error)),
    };
    // The parent stays as long as there is something in it.
    let _ = all.parent().map(fs::remove_dir);
    removed.map(|()| true)
}

fn failure(what: &'static str, path: &Path, error: io::Error) -> Failure {
    Failure::runtime(anyhow::Error::new(error).context(format!("{what} {}", path.display())))
}

#[cfg(test)]
mod tests;
