//! The program that runs in the container.

use std::io;
use std::path::{Path, PathBuf};

use command_line::frontends::ctr_mount;
use devices::LAUNCHER_FILES;
use tempfile::TempDir;

/// Where the program is in the container.
const FOLDER: &str = r"C:\directx-verify";
const FILE: &str = "directx-device-plugin.exe";

/// The program of this project that tests GPU APIs. Release and image have it next to this one.
const PROBE: &str = "gpu-probe.exe";

pub(super) struct Program {
    pub(super) kind: Kind,
    pub(super) command: Vec<String>,
    /// The folder that the container gets. In a `HostProcess` container this program itself is in a
    /// folder that containerd does not see.
    folder: Option<TempDir>,
}

/// The folder with the copies in a temporary folder, so that it is created with its rights.
const COPIES: &str = "files";

/// How the result of a program is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// This program lists its devices.
    List,
    /// `directx-visible` compares what each API lists with the allocation.
    Check,
    /// By its exit code.
    Other,
}

impl Program {
    /// The program for a request's command, which is empty for this program.
    pub(super) fn for_command(command: &[String]) -> io::Result<Program> {
        let Some((name, arguments)) = command.split_first() else {
            let this = (std::env::current_exe()?, FILE);
            return Program::copied(Kind::List, &[this], &["devices", "--output", "json"]);
        };
        let probe_name = format!("gpu-probe{}", std::env::consts::EXE_SUFFIX);
        let probe = std::env::current_exe()?.with_file_name(probe_name);
        if ["gpu-probe", PROBE].contains(&name.as_str()) && probe.is_file() {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            return Program::copied(Kind::Other, &[(probe, PROBE)], &arguments);
        }
        Ok(Program { kind: Kind::Other, command: command.to_vec(), folder: None })
    }

    /// The check of `directx-visible`, if this node has that program and its filter.
    pub(super) fn check() -> io::Result<Option<Program>> {
        let mut sources = command_line::launcher_sources().into_iter();
        let Some(folder) =
            sources.find(|folder| command_line::missing_launcher_files(folder).is_empty())
        else {
            return Ok(None);
        };
        let every_file = LAUNCHER_FILES.map(|name| (folder.join(name), name)).into_iter();
        let files: Vec<_> = every_file.filter(|(path, _)| path.is_file()).collect();
        Program::copied(Kind::Check, &files, &["--check", "--output", "json"]).map(Some)
    }

    /// The first of `files` runs, from a copy.
    fn copied(kind: Kind, files: &[(PathBuf, &str)], arguments: &[&str]) -> io::Result<Program> {
        let program = format!(r"{FOLDER}\{}", files[0].1);
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        let command = [program].into_iter().chain(arguments).collect();
        Ok(Program { kind, command, folder: Some(copy(files)?) })
    }

    /// The mount that the program needs.
    pub(super) fn flags(&self) -> Vec<String> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let source = folder.path().join(COPIES).display().to_string();
        vec!["--mount".to_owned(), ctr_mount(&source, FOLDER)]
    }
}

/// A temporary folder with copies of `files`, under these names. Everybody may read them and only
/// administrators may change them.
fn copy(files: &[(PathBuf, &str)]) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("directx-verify-").tempdir_in(parent())?;
    let copies = folder.path().join(COPIES);
    create_folder(&copies)?;
    for (file, name) in files {
        std::fs::copy(file, copies.join(name))?;
    }
    Ok(folder)
}

#[cfg(windows)]
fn create_folder(path: &Path) -> io::Result<()> {
    win32::directory_access::create_program_folder(path)
}

#[cfg(not(windows))]
fn create_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

/// Where the folder is: ordinary users may write to `ProgramData`, and the account of a container
/// may not read SYSTEM's folder for temporary files.
fn parent() -> PathBuf {
    let program_files = if cfg!(windows) { std::env::var_os("ProgramFiles") } else { None };
    program_files.map_or_else(std::env::temp_dir, PathBuf::from)
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
        let copies = folder.path().join(COPIES);
        let file = copies.join("copy");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "program");
        #[cfg(windows)]
        {
            // Wine stores no owner.
            for path in [&copies, &file] {
                let writers = win32::directory_access::directory_writers(path).unwrap();
                assert!(writers.iter().all(|writer| writer.is_owner), "{writers:?}");
            }
        }
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
