//! The files of `directx-visible`, which the daemon copies from the folder of its executable.

use std::path::Path;

use devices::LAUNCHER_FILES;

/// The files that the daemon needs and that are not in the folder of `program`.
pub(super) fn missing(program: &Path) -> Vec<&'static str> {
    let [launcher, filter, ..] = LAUNCHER_FILES;
    let is_missing = |name: &&str| !program.with_file_name(name).is_file();
    [launcher, filter].into_iter().filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_and_its_filter_belong_beside_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("directx-device-plugin.exe");
        let names = ["directx-visible.exe", "directx-visible-filter.dll"];
        assert_eq!(missing(&program), names);
        for (n, name) in names.iter().enumerate() {
            std::fs::write(folder.path().join(name), "").unwrap();
            assert_eq!(missing(&program), names[n + 1..]);
        }
    }
}
