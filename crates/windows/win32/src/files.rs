//! Lists the files and folders of a driver store folder.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Every file below `folder`, as a relative path with backslashes, which is the format of
/// [`host::StoreFiles::Listed`]. Links are not followed.
///
/// # Errors
/// The folder or a subfolder cannot be read.
pub fn list(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut pending = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = pending.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                pending.push((entry.path(), name + "\\"));
            } else if kind.is_file() {
                files.insert(name);
            }
        }
    }
    Ok(files)
}

/// The names of the folders in `folder`; none if it cannot be read. A link is not a folder.
#[must_use]
pub fn folders(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_subfolders_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let sub = folder.path().join("B026261").join("x");
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        std::fs::write(folder.path().join("a.dll"), "").unwrap();
        std::fs::write(sub.join("amfrt64.dll"), "").unwrap();
        let listed = list(folder.path()).unwrap();
        let expected = ["a.dll", r"B026261\x\amfrt64.dll"].map(str::to_owned);
        assert_eq!(listed, expected.into());
    }

    #[test]
    fn folders_are_listed_without_files_and_links() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["B420000", "Ä"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("B.dll"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/", folder.path().join("Blink")).unwrap();
        let mut listed = folders(folder.path());
        listed.sort();
        assert_eq!(listed, ["B420000", "Ä"]);
        assert_eq!(folders(&folder.path().join("missing")), Vec::<String>::new());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(list(&folder.path().join("missing")).is_err());
    }
}
