//! The folder of the host with the files of `directx-visible`, which containers mount.
//!
//! In come the files beside this program; out goes a folder of this version with equal files, which
//! everybody may read and only administrators may change. The folders of other versions are removed
//! when no container can have their files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cli::Failure;
use devices::LAUNCHER_FILES;

/// The folder and its two parents below `ProgramData` belong to this program.
const OWN_LEVELS: usize = 3;

const MISSING: &str = "directx-visible.exe and directx-visible-filter.dll belong beside the plugin: copy them there, or set \
     visibility: off";
const REFUSED: &str = "remove the folder if it is a link or belongs to another account, and look for an antivirus program \
     that locks the file; the plugin tries again with the next read of the host";

/// The folder of this version.
pub(crate) struct LauncherFolder {
    folder: PathBuf,
    /// The folder of this program.
    source: PathBuf,
    /// Lets everybody read a file or a folder, and only administrators change it.
    share: fn(&Path) -> io::Result<()>,
    /// Whether a container can have got files of the folder since the start.
    used: Mutex<bool>,
}

impl LauncherFolder {
    /// The folder `folder`, whose files are copied from `source`.
    pub(crate) fn new(
        folder: PathBuf,
        source: PathBuf,
        share: fn(&Path) -> io::Result<()>,
    ) -> LauncherFolder {
        LauncherFolder { folder, source, share, used: Mutex::new(false) }
    }

    /// Makes the folder contain the files of this version.
    pub(crate) fn provide(&self) -> Result<(), Failure> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = true;
        let files = self.source_files().map_err(|failure| failure.hint(MISSING))?;
        let mut folders: Vec<&Path> = self.folder.ancestors().take(OWN_LEVELS).collect();
        folders.reverse();
        let own = folders.into_iter().try_for_each(|folder| {
            self.create(folder).map_err(|error| failure("cannot create", folder, error))
        });
        own.and_then(|()| files.iter().try_for_each(|(name, content)| self.write(name, content)))
            .map_err(|failure| failure.hint(REFUSED))
    }

    /// The files beside this program. Only the first two of [`LAUNCHER_FILES`] are needed.
    fn source_files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
        let mut files = Vec::new();
        for (n, name) in LAUNCHER_FILES.into_iter().enumerate() {
            let path = self.source.join(name);
            match fs::read(&path) {
                Ok(content) => files.push((name, content)),
                Err(error) if n >= 2 && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failure("cannot read", &path, error)),
            }
        }
        Ok(files)
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
        (self.share)(folder)
    }

    /// Writes a file, unless it is equal. Nobody sees a part of it.
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
            if is_file && fs::read(&path)? == content {
                return (self.share)(&path);
            }
            fs::write(&new, content)?;
            (self.share)(&new)?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| failure("cannot write", &path, error))
    }

    /// Removes the folders of other versions, and that of this version if it was never used. The
    /// caller knows that no container has their files. A file that is in use keeps its folder.
    pub(crate) fn remove_unused(&self) {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = self.folder.parent() else { return };
        for folder in others(all, used.then_some(&*self.folder)) {
            let mut name = folder.clone().into_os_string();
            name.push(".removed");
            // Windows renames no folder with a file in use, so no folder is removed in part.
            let removed = fs::rename(&folder, &name).and_then(|()| fs::remove_dir_all(&name));
            let folder = folder.display();
            match removed {
                Ok(()) => tracing::info!(%folder, "removed an unused folder of directx-visible"),
                Err(error) => tracing::debug!(%folder, %error, "the folder is in use"),
            }
        }
        // They stay as long as there is something in them.
        let _ = fs::remove_dir(all).and_then(|()| all.parent().map_or(Ok(()), fs::remove_dir));
    }

    /// Whether [`remove_unused`](LauncherFolder::remove_unused) would try to remove something.
    pub(crate) fn has_unused(&self) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.folder.parent();
        all.is_some_and(|all| !others(all, used.then_some(&*self.folder)).is_empty())
    }
}

/// What `folder` contains, except `kept`.
fn others(folder: &Path, kept: Option<&Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| Some(path.as_path()) != kept).collect()
}

fn failure(what: &'static str, path: &Path, error: io::Error) -> Failure {
    Failure::runtime(anyhow::Error::new(error).context(format!("{what} {}", path.display())))
}

#[cfg(test)]
mod tests;
