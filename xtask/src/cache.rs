//! Tools that are installed once for all clones on this machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder of a tool in the user's cache directory. If it does not exist, `install` gets an
/// empty folder that becomes it.
pub(crate) fn installed(
    name: &str,
    version: &str,
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let user = user.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let user = user.context("no cache directory\nhint: set XDG_CACHE_HOME")?;
    let cache = user.join("directx-device-plugin");
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    lock.lock().with_context(|| format!("cannot lock {name}"))?;
    let folder = cache.join(format!("{name}-{version}"));
    if !folder.exists() {
        eprintln!("installing {name} {version}");
        let partial = cache.join(format!("{name}.partial"));
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir(&partial)?;
        install(&partial)?;
        fs::rename(&partial, &folder)?;
    }
    Ok(folder)
}
