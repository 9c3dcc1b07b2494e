//! A second software GPU: Mesa's software Vulkan driver under another name.
//!
//! Wine makes an adapter of every Vulkan device and finds it again by the device's UUID, which
//! Mesa makes of its version. So a copy of the driver with another version is another GPU.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace;

/// The driver's library.
const LIBRARY: &str = "libvulkan_lvp.so";
/// How the name of its manifest begins; the rest depends on the architecture.
const MANIFEST: &str = "lvp_icd";
/// Where manifests lie.
const MANIFESTS: &str = "usr/share/vulkan/icd.d";

/// The manifests of both GPUs in the system `root`, as in `VK_ICD_FILENAMES`.
pub(super) fn manifests(root: &Path) -> Result<String> {
    let first = find(&root.join(MANIFESTS), |name| name.starts_with(MANIFEST))?;
    let library = library(root)?;
    let content =
        fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
    let content = with_other_uuid(&content)
        .with_context(|| format!("{} does not contain its version", library.display()))?;
    let folder = workspace::target_dir().join("wine").join("second-gpu");
    fs::create_dir_all(&folder)?;
    let (copy, second) = (folder.join(LIBRARY), folder.join("second_icd.json"));
    write(&copy, &content)?;
    let manifest = fs::read_to_string(&first)?.replace(LIBRARY, &copy.display().to_string());
    write(&second, manifest.as_bytes())?;
    let first = Path::new("/").join(MANIFESTS).join(first.file_name().unwrap_or_default());
    Ok(format!("{}:{}", first.display(), second.display()))
}

/// The driver in the folder of the architecture.
fn library(root: &Path) -> Result<PathBuf> {
    let folders = root.join("usr/lib");
    let has_library = |name: &str| folders.join(name).join(LIBRARY).is_file();
    Ok(find(&folders, has_library)?.join(LIBRARY))
}

/// The first entry of `folder` whose name is wanted.
fn find(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let found =
        paths.find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&is_wanted));
    found.with_context(|| format!("{} lacks the software GPU", folder.display()))
}

/// Writes a file unless it has this content: a running program may have loaded it.
fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    // A new file, so that a program which has loaded the old one keeps it.
    let _ = fs::remove_file(path);
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// The driver with another first character of its version, which is the start of the UUID.
fn with_other_uuid(driver: &[u8]) -> Option<Vec<u8>> {
    const BEFORE: &[u8] = b"Mesa ";
    let is_version = |rest: &&[u8]| {
        rest.strip_prefix(BEFORE).and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
    };
    let start = (0..driver.len()).filter_map(|n| driver.get(n..)).find(is_version)?;
    let version = start.get(BEFORE.len()..)?;
    let length = version.iter().position(|c| !c.is_ascii_graphic())?;
    let version = version.get(..length)?;
    let other = if version.first() == Some(&b'9') { b'8' } else { b'9' };
    let mut copy = driver.to_vec();
    for at in positions(driver, version) {
        *copy.get_mut(at)? = other;
    }
    Some(copy)
}

/// Where `part` begins in `whole`.
fn positions<'a>(whole: &'a [u8], part: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = whole.windows(part.len()).enumerate();
    windows.filter(move |(_, window)| *window == part).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_in_the_driver_changes() {
        let other = |text: &str| {
            let changed = with_other_uuid(text.as_bytes())?;
            Some(String::from_utf8(changed).unwrap())
        };
        assert_eq!(
            other("Mesa driver\0mesa25.0.7-2\0Mesa 25.0.7-2 (LLVM 19)\0x").as_deref(),
            Some("Mesa driver\0mesa95.0.7-2\0Mesa 95.0.7-2 (LLVM 19)\0x")
        );
        assert_eq!(other("Mesa 95.0\0").as_deref(), Some("Mesa 85.0\0"));
        assert_eq!(other("Mesa driver\0 25.0"), None);
    }
}
