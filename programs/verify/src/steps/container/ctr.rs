//! `ctr`, containerd's command-line client.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use devices::Plan;
use frontends::{Container, DeviceVariables, Frontend, ctr_mount};
use tempfile::TempDir;

use crate::process::{self, Ended, RunError};
use crate::request::ContainerRequest;
use crate::stop::Stop;

/// How long each command may take that removes a container.
const REMOVE_LIMIT: Duration = Duration::from_secs(15);

/// Where this program is in the container.
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
        let this = std::env::current_exe()?;
        let Some((name, arguments)) = command.split_first() else {
            return Ok(Program::This(copy(&[(this, FILE)])?));
        };
        let probe = this.with_file_name(format!("{PROBE}{}", std::env::consts::EXE_SUFFIX));
        if [PROBE, PROBE_FILE].contains(&name.as_str()) && probe.is_file() {
            return Ok(Program::Probe(copy(&[(probe, PROBE_FILE)])?, arguments.to_vec()));
        }
        Ok(Program::Given(command.to_vec()))
    }

    /// The check of `directx-visible`, if that lies beside this program.
    pub(super) fn check() -> io::Result<Option<Program>> {
        let this = std::env::current_exe()?;
        let beside = |file: &str| Some(this.with_file_name(file)).filter(|path| path.is_file());
        let launcher = beside(&format!("{LAUNCHER}{}", std::env::consts::EXE_SUFFIX));
        let [filter, filter32] = FILTERS.map(|name| Some((beside(name)?, name)));
        let (Some(launcher), Some(filter)) = (launcher, filter) else { return Ok(None) };
        let files: Vec<_> =
            [(launcher, LAUNCHER_FILE), filter].into_iter().chain(filter32).collect();
        Ok(Some(Program::Check(copy(&files)?)))
    }

    /// The mount that the program needs.
    fn flags(&self) -> Vec<String> {
        match self {
            Program::Given(_) => Vec::new(),
            Program::This(folder) | Program::Probe(folder, _) | Program::Check(folder) => {
                let source = folder.path().display().to_string();
                vec!["--mount".to_owned(), ctr_mount(&source, FOLDER)]
            }
        }
    }

    fn command(&self) -> Vec<String> {
        match self {
            Program::Given(command) => command.clone(),
            Program::Probe(_, arguments) => {
                [vec![format!(r"{FOLDER}\{PROBE_FILE}")], arguments.clone()].concat()
            }
            Program::Check(_) => {
                let program = format!(r"{FOLDER}\{LAUNCHER_FILE}");
                [program.as_str(), "--check", "--json"].map(str::to_owned).to_vec()
            }
            Program::This(_) => {
                let program = format!(r"{FOLDER}\{FILE}");
                [program.as_str(), "devices", "--output", "json"].map(str::to_owned).to_vec()
            }
        }
    }
}

/// A folder with copies of `files`, under these names.
fn copy(files: &[(PathBuf, &str)]) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("directx-verify-").tempdir()?;
    for (file, name) in files {
        std::fs::copy(file, folder.path().join(name))?;
    }
    Ok(folder)
}

/// `ctr`, with the options of every command.
pub(super) struct Ctr {
    program: PathBuf,
    options: Vec<String>,
    image: String,
}

impl Ctr {
    pub(super) fn new(request: &ContainerRequest) -> Ctr {
        let namespace = request.namespace.iter();
        Ctr {
            program: program(&|name| std::env::var_os(name).map(PathBuf::from), &Path::is_file),
            options: namespace.flat_map(|name| ["--namespace".to_owned(), name.clone()]).collect(),
            image: request.image.clone(),
        }
    }

    /// The arguments that start a container with the devices of `plan`.
    pub(super) fn run_arguments(&self, plan: &Plan, program: &Program, name: &str) -> Vec<String> {
        let devices = [plan.device.clone()];
        let container = Container { devices: &devices, mounts: &plan.mounts, envs: &plan.envs };
        let first = ["run".to_owned(), "--rm".to_owned()];
        [
            self.options.clone(),
            first.to_vec(),
            Frontend::Ctr.flags(container, DeviceVariables::Set),
            program.flags(),
            vec![self.image.clone(), name.to_owned()],
            program.command(),
        ]
        .concat()
    }

    pub(super) async fn run(&self, arguments: &[String], stop: &Stop) -> Result<Ended, RunError> {
        process::run(&self.program, arguments, stop).await
    }

    /// Removes the container `name`, which may run, have ended, or not exist. Returns whether it
    /// still exists, if `ctr` says so.
    pub(super) async fn remove(&self, name: &str) -> Option<bool> {
        let removing = [
            &["tasks", "kill", "--signal", "SIGKILL", name][..],
            &["tasks", "delete", "--force", name],
            &["containers", "delete", name],
        ];
        for command in removing {
            // Fails if there is nothing to remove.
            let _ = self.command(command).await;
        }
        let listed = self.command(&["containers", "list", "--quiet"]).await.ok()?;
        let exists = || listed.stdout.lines().any(|line| line.trim() == name);
        listed.status.success().then(exists)
    }

    /// The command that removes a container, for a reader.
    pub(super) fn delete_command(&self, name: &str) -> String {
        let delete = ["containers", "delete", name].map(str::to_owned);
        display(&[self.options.as_slice(), &delete].concat())
    }

    async fn command(&self, arguments: &[&str]) -> Result<Ended, RunError> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        let arguments: Vec<String> = self.options.iter().cloned().chain(arguments).collect();
        self.run(&arguments, &Stop::only_after(REMOVE_LIMIT)).await
    }
}

/// A command for a reader.
pub(super) fn display(arguments: &[String]) -> String {
    format!("ctr {}", arguments.join(" "))
}

/// Where `ctr` is: in the folders of containerd's installers, which are often not in PATH, or in
/// PATH.
fn program(variable: &dyn Fn(&str) -> Option<PathBuf>, is_file: &dyn Fn(&Path) -> bool) -> PathBuf {
    let installed = variable("ProgramFiles").into_iter().flat_map(|folder| {
        [r"containerd\ctr.exe", r"containerd\bin\ctr.exe"].map(|below| folder.join(below))
    });
    installed.into_iter().find(|path| is_file(path)).unwrap_or_else(|| PathBuf::from("ctr"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctr_is_in_the_folder_of_an_installer_or_in_path() {
        let folder = |_: &str| Some(PathBuf::from("P"));
        let installed = PathBuf::from("P").join(r"containerd\bin\ctr.exe");
        assert_eq!(program(&folder, &|path| path == installed), installed);
        assert_eq!(program(&folder, &|_| false), PathBuf::from("ctr"));
        assert_eq!(program(&|_| None, &|_| true), PathBuf::from("ctr"));
    }
}
