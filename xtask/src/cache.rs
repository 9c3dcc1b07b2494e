//! The cache of downloads and builds that take minutes on a fresh clone.
//!
//! It lies in the user's cache directory, so every clone on the machine shares it. An
//! entry is a folder `NAME-KEY`, where the key is a hash of what the entry is made
//! from. An entry is made under a temporary name and renamed when it is complete, so
//! a folder with an entry's name can always be used.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::process_lock::ProcessLock;
use crate::{folder_users, stable_hash};

/// The cache's folder within the user's cache directory.
const FOLDER: &str = "directx-device-plugin";

/// Between an entry's name and the id of the process that makes it.
const PARTIAL: &str = ".partial-";

/// `cargo xtask cache`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let cache = Cache::open()?;
    match arguments {
        [] => cache.print()?,
        [action] if action == "clear" => cache.clear()?,
        [other, ..] => {
            bail!("unexpected argument `{}`\nhint: use `clear` or no argument", other.display())
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The cache of this user.
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Finds the cache. The folder need not exist yet.
    pub(crate) fn open() -> Result<Cache> {
        let (variable, default) = if cfg!(windows) {
            ("LOCALAPPDATA", Path::new("AppData").join("Local"))
        } else {
            ("XDG_CACHE_HOME", PathBuf::from(".cache"))
        };
        let home = std::env::home_dir();
        let user = user_cache(std::env::var_os(variable), home, &default);
        let user = user.with_context(|| format!("no cache directory\nhint: set {variable}"))?;
        Ok(Cache { folder: user.join(FOLDER) })
    }

    /// Returns the folder of the entry `name` that is made from `made_from`. If it
    /// does not exist, `fill` gets an empty folder that becomes the entry. If two
    /// processes need the same entry, one makes it and the other waits.
    pub(crate) fn entry(
        &self,
        name: &str,
        made_from: &[&str],
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let entry = self.path(name, made_from);
        if entry.exists() {
            return Ok(entry);
        }
        let _lock = ProcessLock::wait(&entry)?;
        if entry.exists() {
            return Ok(entry);
        }
        create(&self.folder)?;
        remove_abandoned(&self.folder, name)?;
        let mut partial = entry.clone().into_os_string();
        partial.push(format!("{PARTIAL}{}", std::process::id()));
        let partial = PathBuf::from(partial);
        create(&partial)?;
        let filled = fill(&partial).and_then(|()| {
            fs::rename(&partial, &entry)
                .with_context(|| format!("cannot rename {}", partial.display()))
        });
        if filled.is_err() {
            // What cannot be removed now, a later run removes.
            let _ = remove_unused(&partial);
        }
        filled.map(|()| entry)
    }

    /// The file that records what is written while the entry `name` is made.
    pub(crate) fn log(&self, name: &str) -> Result<PathBuf> {
        create(&self.folder)?;
        Ok(self.folder.join(format!("{name}.log")))
    }

    fn path(&self, name: &str, made_from: &[&str]) -> PathBuf {
        let parts: Vec<&[u8]> = made_from.iter().map(|part| part.as_bytes()).collect();
        self.folder.join(format!("{name}-{}", stable_hash::hash(&parts)))
    }

    fn print(&self) -> Result<()> {
        println!("{}", self.folder.display());
        let mut total = 0;
        for path in children(&self.folder)? {
            let size = size(&path)?;
            total += size;
            println!("{:>10}  {}", mebibytes(size), file_name(&path));
        }
        println!("{:>10}  total", mebibytes(total));
        Ok(())
    }

    /// Removes the cache's folder, unless something in it is mounted or in use.
    fn clear(&self) -> Result<()> {
        if !self.folder.exists() {
            println!("{} does not exist", self.folder.display());
            return Ok(());
        }
        for path in children(&self.folder)? {
            if maker(&path).is_some_and(folder_users::is_running) {
                bail!("another process is making {}", path.display());
            }
        }
        remove_unused(&self.folder)?;
        println!("removed {}", self.folder.display());
        Ok(())
    }
}

/// The directory that a variable names, or `default` in the home directory. As the XDG Base
/// Directory Specification says, a variable that is not an absolute path is ignored.
fn user_cache(
    variable: Option<OsString>,
    home: Option<PathBuf>,
    default: &Path,
) -> Option<PathBuf> {
    let home = home.filter(|home| home.is_absolute()).map(|home| home.join(default));
    variable.map(PathBuf::from).filter(|path| path.is_absolute()).or(home)
}

/// Removes what ended processes left of the entry `name`. A partial entry that is still
/// in use, for example by a child of a killed process, stays for a later run.
fn remove_abandoned(folder: &Path, name: &str) -> Result<()> {
    for path in children(folder)? {
        let abandoned = maker(&path).is_some_and(|process| !folder_users::is_running(process));
        if !abandoned || !file_name(&path).starts_with(&format!("{name}-")) {
            continue;
        }
        if let Err(error) = remove_unused(&path) {
            eprintln!("warning: {error:#}");
        }
    }
    Ok(())
}

/// The id of the process that makes or made the partial entry `path`.
fn maker(path: &Path) -> Option<u32> {
    file_name(path).rsplit_once(PARTIAL)?.1.parse().ok()
}

/// Removes `folder` after checking that nothing in it is mounted or in use: deleting
/// through a mount would delete the files of what is mounted.
fn remove_unused(folder: &Path) -> Result<()> {
    let users = folder_users::of(folder);
    if !users.is_empty() {
        bail!(
            "cannot remove {}: {}\nhint: stop these processes; for Wine run `cargo xtask wine --prefix NAME --stop`",
            folder.display(),
            users.join(", ")
        );
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// The paths in `folder`, sorted; none if it does not exist.
fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The size of all files below `path`, in bytes. Symbolic links are not followed.
fn size(path: &Path) -> Result<u64> {
    let metadata =
        fs::symlink_metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    children(path)?.iter().map(|child| size(child)).sum()
}

fn mebibytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(OsStr::new("")).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has this id: Linux allows at most 2^22, and on Windows they are small
    /// multiples of four.
    const NO_PROCESS: u32 = 999_999_999;

    fn cache() -> (tempfile::TempDir, Cache) {
        let temporary = tempfile::tempdir().unwrap();
        let cache = Cache { folder: temporary.path().join(FOLDER) };
        (temporary, cache)
    }

    #[test]
    fn only_an_absolute_path_replaces_the_default_cache_directory() {
        let absolute = if cfg!(windows) { r"C:\home" } else { "/home" };
        let home = || Some(PathBuf::from(absolute));
        let cache = |variable: Option<&str>, home| {
            user_cache(variable.map(OsString::from), home, Path::new(".cache"))
        };
        let default = home().map(|home| home.join(".cache"));
        assert_eq!(cache(None, home()), default);
        assert_eq!(cache(Some("relative"), home()), default);
        assert_eq!(cache(Some(""), home()), default);
        assert_eq!(cache(Some(absolute), None), home());
        assert_eq!(cache(None, None), None);
    }

    #[test]
    fn an_entry_is_made_once_for_what_it_is_made_from() {
        let (_temporary, cache) = cache();
        let entry_of = |from: &str| {
            let mut is_new = false;
            let entry = cache.entry("tool", &[from], |folder| {
                is_new = true;
                Ok(fs::write(folder.join("file"), from)?)
            });
            (entry.unwrap(), is_new)
        };
        let (first, is_new) = entry_of("1");
        assert!(is_new && fs::read(first.join("file")).unwrap() == b"1");
        assert_eq!(entry_of("1"), (first.clone(), false));
        let (second, is_new) = entry_of("2");
        assert!(is_new && second != first);
    }

    #[test]
    fn an_entry_that_could_not_be_made_does_not_exist() {
        let (_temporary, cache) = cache();
        let failure = cache.entry("tool", &["1"], |folder| {
            fs::write(folder.join("half"), "")?;
            bail!("no network")
        });
        assert_eq!(failure.unwrap_err().to_string(), "no network");
        let entry = cache.entry("tool", &["1"], |_| Ok(())).unwrap();
        assert!(!entry.join("half").exists());
    }

    #[cfg(any(target_os = "linux", windows))]
    #[test]
    fn only_partial_entries_of_ended_processes_are_removed() {
        let (_temporary, cache) = cache();
        let partial = |name: &str, process: u32| {
            let path = cache.folder.join(format!("{name}-0{PARTIAL}{process}"));
            fs::create_dir_all(&path).unwrap();
            path
        };
        let abandoned = partial("root", NO_PROCESS);
        let running = partial("root", std::process::id());
        let other_entry = partial("tool", NO_PROCESS);
        cache.entry("root", &["1"], |_| Ok(())).unwrap();
        assert!(!abandoned.exists() && running.exists() && other_entry.exists());
        assert!(cache.clear().unwrap_err().to_string().starts_with("another process is making"));
    }

    #[test]
    fn two_runs_at_once_make_an_entry_once() {
        let (_temporary, cache) = cache();
        let count = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    cache.entry("tool", &["1"], |_| {
                        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(50));
                        Ok(())
                    })
                });
            }
        });
        assert_eq!(count.into_inner(), 1);
    }

    #[test]
    fn clear_removes_the_folder_and_nothing_else() {
        let (temporary, cache) = cache();
        cache.entry("tool", &["1"], |folder| Ok(fs::write(folder.join("file"), "text")?)).unwrap();
        fs::write(temporary.path().join("other"), "").unwrap();
        assert_eq!(size(&cache.folder).unwrap(), 4);
        cache.clear().unwrap();
        assert!(!cache.folder.exists() && temporary.path().join("other").exists());
        cache.clear().unwrap();
    }

    #[test]
    fn sizes_are_printed_in_mebibytes() {
        assert_eq!(mebibytes(0), "0.0 MiB");
        assert_eq!(mebibytes(3 << 19), "1.5 MiB");
    }
}
