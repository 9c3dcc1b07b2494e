//! The program that runs in the container.

use std::io;
use std::path::{Path, PathBuf};

use cli::frontends::ctr_mount;
use tempfile::TempDir;

/// Where the program is in the container.
const FOLDER: &str = r"C:\directx-verify";
const FILE: &str = "directx-device-plugin.exe";

/// The program of this project that tests GPU APIs. Release and image have it beside this one.
const PROBE: &str = "gpu-probe";
const PROBE_FILE: &str = "gpu-probe.exe";

/// The program of this project that hides devices, and its filters, of which only the first is
/// always there. Release and image have them beside this one.
const LAUNCHER: &str = "directx-visible";
const LAUNCHER_FILE: &str = "directx-visible.exe";
const FILTERS: [&str; 2] = ["directx-visible-filter.dll", "directx-visible-filter32.dll"];

/// The program that runs in the container.
pub(super) enum Program {
    /// A copy of this program. In a `HostProcess` container the program itself is in a folder
    /// that containerd does not see.
    This(TempDir),
    /// A copy of `gpu-probe`, with these arguments.
    Probe(TempDir, Vec<String>),
    /// A copy of `directx-visible`, which compares what each API lists with the allocation.
    Check(TempDir),
    /// The command of the request.
    Given(Vec<String>),
}

impl Program {
    /// The program for a request's command, which is empty for this program.
    pub(super) fn for_command(command: &[String]) -> io::Result<Program> {
        let Some((name, arguments)) = command.split_first() else {
            return Ok(Program::This(copy(&[(std::env::current_exe()?, FILE)])?));
        };
        if [PROBE, PROBE_FILE].contains(&name.as_str())
            && let Some(probe) = beside(&program_file(PROBE))?
        {
            return Ok(Program::Probe(copy(&[(probe, PROBE_FILE)])?, arguments.to_vec()));
        }
        Ok(Program::Given(command.to_vec()))
    }

    /// The check of `directx-visible`, if that lies beside this program.
    pub(super) fn check() -> io::Result<Option<Program>> {
        let launcher = beside(&program_file(LAUNCHER))?;
        let [filter, filter32] = FILTERS.map(beside);
        let (Some(launcher), Some(filter)) = (launcher, filter?) else { return Ok(None) };
        let mut files = vec![(launcher, LAUNCHER_FILE), (filter, FILTERS[0])];
        files.extend(filter32?.map(|filter32| (filter32, FILTERS[1])));
        Ok(Some(Program::Check(copy(&files)?)))
    }

    /// The mount that the program needs.
    pub(super) fn flags(&self) -> Vec<String> {
        match self {
            Program::Given(_) => Vec::new(),
            Program::This(folder) | Program::Probe(folder, _) | Program::Check(folder) => {
                let source = folder.path().display().to_string();
                vec!["--mount".to_owned(), ctr_mount(&source, FOLDER)]
            }
        }
    }

    pub(super) fn command(&self) -> Vec<String> {
        let (file, arguments) = match self {
            Program::Given(command) => return command.clone(),
            Program::Probe(_, arguments) => (PROBE_FILE, arguments.clone()),
            Program::Check(_) => (LAUNCHER_FILE, ["--check", "--json"].map(str::to_owned).to_vec()),
            Program::This(_) => (FILE, ["devices", "--output", "json"].map(str::to_owned).to_vec()),
        };
        [vec![format!(r"{FOLDER}\{file}")], arguments].concat()
    }
}

fn program_file(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// A file in the folder of this program, if there is one.
fn beside(file: &str) -> io::Result<Option<PathBuf>> {
    let path = std::env::current_exe()?.with_file_name(file);
    Ok(path.is_file().then_some(path))
}

/// A folder with copies of `files`, under these names.
fn copy(files: &[(PathBuf, &str)]) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("directx-verify-").tempdir_in(parent())?;
    share(folder.path())?;
    for (file, name) in files {
        std::fs::copy(file, folder.path().join(name))?;
    }
    Ok(folder)
}

/// Where the folder is: not in the folder for temporary files of SYSTEM, which the account of a
/// container may not read.
fn parent() -> PathBuf {
    let program_data = if cfg!(windows) { std::env::var_os("ProgramData") } else { None };
    program_data.map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Lets everybody read and run what is copied to the folder, and only administrators change it.
/// Until then everybody could create files in it.
#[cfg(windows)]
fn share(folder: &Path) -> io::Result<()> {
    uds::access_rights::share_programs(folder)?;
    match std::fs::read_dir(folder)?.next() {
        None => Ok(()),
        Some(_) => Err(io::Error::other("another account created a file in the folder")),
    }
}

/// Containers of other systems are for tests.
#[cfg(not(windows))]
#[expect(clippy::unnecessary_wraps, reason = "as on Windows")]
fn share(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_a_container_may_read_the_copies_and_nobody_may_change_them() {
        let source = tempfile::tempdir().unwrap();
        let file = source.path().join("source");
        std::fs::write(&file, "program").unwrap();
        let folder = copy(&[(file, "copy")]).unwrap();
        assert_eq!(folder.path().parent().unwrap(), parent());
        let copied = folder.path().join("copy");
        assert_eq!(std::fs::read_to_string(&copied).unwrap(), "program");
        #[cfg(windows)]
        {
            assert!(parent().ends_with("ProgramData"), "{}", parent().display());
            let writers = win32::directory_access::directory_writers;
            assert!(writers(folder.path()).unwrap().is_empty());
            assert!(writers(&copied).unwrap().is_empty());
        }
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
