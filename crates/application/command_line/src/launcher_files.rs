//! Where a node has the files of `directx-visible`.

use std::path::{Path, PathBuf};

use devices::LAUNCHER_FILES;

/// The folders to search: the folder of this program, then the folder to which the chart copies the
/// files. Only administrators may write to the second one.
#[must_use]
pub fn launcher_sources() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).map(Path::to_owned);
    let program_files = std::env::var_os("ProgramFiles").map(PathBuf::from);
    beside.into_iter().chain(program_files.map(|folder| folder.join("directx-visible"))).collect()
}

/// The files that are needed and that `folder` does not have.
#[must_use]
pub fn missing_launcher_files(folder: &Path) -> Vec<&'static str> {
    let [launcher, filter, _] = LAUNCHER_FILES;
    [launcher, filter].into_iter().filter(|name| !folder.join(name).is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_and_its_filter_are_needed() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["directx-visible.exe", "directx-visible-filter.dll"];
        assert_eq!(missing_launcher_files(folder.path()), names);
        for (n, name) in names.iter().enumerate() {
            std::fs::write(folder.path().join(name), "").unwrap();
            assert_eq!(missing_launcher_files(folder.path()), names[n + 1..]);
        }
    }

    #[test]
    fn the_folder_of_the_program_comes_first() {
        let sources = launcher_sources();
        assert_eq!(sources[0], std::env::current_exe().unwrap().parent().unwrap());
        let installed: Vec<_> = std::env::var_os("ProgramFiles").into_iter().collect();
        assert_eq!(sources[1..].len(), installed.len());
        assert!(sources[1..].iter().all(|folder| folder.ends_with("directx-visible")));
    }
}
