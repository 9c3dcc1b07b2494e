//! The output folder, which gets its name when it is complete.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::summary::MANIFEST;

/// A folder that becomes the output folder. If it does not, it is removed.
pub(super) struct Output {
    target: PathBuf,
    temporary: tempfile::TempDir,
}

impl Output {
    /// Creates a temporary folder next to `target`. An error if `target` contains anything
    /// but an earlier release.
    pub(super) fn create(target: &Path) -> Result<Output> {
        check_replaceable(target)?;
        let parent = target.parent().context("the output folder cannot be `/`")?;
        let hint = "hint: name another folder with --output";
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}\n{hint}", parent.display()))?;
        let temporary = tempfile::Builder::new()
            .prefix(".release-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot write into {}\n{hint}", parent.display()))?;
        Ok(Output { target: target.to_owned(), temporary })
    }

    /// Where the files are written.
    pub(super) fn folder(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the folder its name, in place of an earlier release.
    pub(super) fn finish(self) -> Result<PathBuf> {
        let Output { target, temporary } = self;
        check_replaceable(&target)?;
        if target.exists() {
            fs::remove_dir_all(&target)
                .with_context(|| format!("cannot remove {}", target.display()))?;
        }
        // Temporary folders belong to their user only.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o755))?;
        }
        fs::rename(temporary.path(), &target)
            .with_context(|| format!("cannot create {}", target.display()))?;
        // Nothing is left to remove.
        let _ = temporary.keep();
        Ok(target)
    }
}

fn check_replaceable(target: &Path) -> Result<()> {
    if !target.exists() {
        return Ok(());
    }
    let mut entries =
        fs::read_dir(target).with_context(|| format!("cannot read {}", target.display()))?;
    if entries.next().is_some() && !target.join(MANIFEST).is_file() {
        bail!(
            "{} exists and is not a release\nhint: remove it, or name another folder with --output",
            target.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_output_appears_complete_and_replaces_an_earlier_release() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b");
        for content in ["1", "2"] {
            let output = Output::create(&target).unwrap();
            fs::write(output.folder().join(MANIFEST), content).unwrap();
            assert_eq!(target.exists(), content == "2");
            assert_eq!(output.finish().unwrap(), target);
            assert_eq!(fs::read_to_string(target.join(MANIFEST)).unwrap(), content);
        }
        assert_eq!(names(&folder.path().join("a")), ["b"]);
    }

    #[test]
    fn a_failed_release_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::create(&folder.path().join("a")).unwrap();
        fs::write(output.folder().join("half"), "").unwrap();
        drop(output);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn other_files_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = |target: &Path| format!("{:#}", Output::create(target).err().unwrap());
        let found = error(folder.path());
        assert!(found.contains("exists and is not a release\nhint: "), "{found}");
        // A file in place of the parent folder: also root cannot write there.
        let found = error(&folder.path().join("file/output"));
        assert!(found.starts_with("cannot ") && found.contains("\nhint: name another"), "{found}");
        assert_eq!(names(folder.path()), ["file"]);
    }
}
