//! `ctr`, containerd's command-line client.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use command_line::frontends::{Container, Frontend};
use devices::Plan;
use tokio::process::Command;

use super::program::Program;
use crate::request::Request;
use crate::stop::{Reason, Stop};

/// How long each command may take that removes a container.
const REMOVE_LIMIT: Duration = Duration::from_secs(15);

pub(super) struct Ctr {
    program: PathBuf,
    options: Vec<String>,
    image: String,
}

impl Ctr {
    pub(super) fn new(request: &Request) -> Ctr {
        let namespace = request.namespace.iter();
        Ctr {
            program: program(&|name| std::env::var_os(name).map(PathBuf::from), &Path::is_file),
            options: namespace.flat_map(|name| ["--namespace".to_owned(), name.clone()]).collect(),
            image: request.image.clone().unwrap_or_default(),
        }
    }

    pub(super) fn run_arguments(&self, plan: &Plan, program: &Program, name: &str) -> Vec<String> {
        let devices = [plan.device.clone()];
        let container =
            Container { devices: &devices, mounts: &plan.mounts, envs: Some(&plan.envs) };
        [
            self.options.clone(),
            vec!["run".to_owned(), "--rm".to_owned()],
            Frontend::Ctr.flags(container),
            program.flags(),
            vec![self.image.clone(), name.to_owned()],
            program.command.clone(),
        ]
        .concat()
    }

    pub(super) async fn run(
        &self,
        arguments: &[String],
        stop: &Stop,
    ) -> Result<io::Result<Output>, Reason> {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        stop.or_output(command).await
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
            // A command fails if there is nothing to remove.
            let _ = self.command(command).await;
        }
        let listed = self.command(&["containers", "list", "--quiet"]).await.ok()?.ok()?;
        if !listed.status.success() {
            return None;
        }
        Some(String::from_utf8_lossy(&listed.stdout).lines().any(|line| line == name))
    }

    async fn command(&self, arguments: &[&str]) -> Result<io::Result<Output>, Reason> {
        self.run(&self.with_options(arguments), &Stop::only_after(REMOVE_LIMIT)).await
    }

    pub(super) fn with_options(&self, arguments: &[&str]) -> Vec<String> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        self.options.iter().cloned().chain(arguments).collect()
    }
}

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
