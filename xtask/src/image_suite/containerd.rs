//! Debian's containerd with folders of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use super::build::run;
use super::daemon::Daemon;
use super::tools::Tools;

/// The name of its socket.
const SOCKET: &str = "socket";

pub(super) struct Containerd {
    ctr: PathBuf,
    folder: tempfile::TempDir,
    _daemon: Daemon,
}

impl Containerd {
    pub(super) fn start(tools: &Tools) -> Result<Containerd> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let config = format!(
            "version = 2\nroot = '{0}/root'\nstate = '{0}/state'\n\
             disabled_plugins = ['io.containerd.grpc.v1.cri']\n\
             [grpc]\naddress = '{0}/{SOCKET}'\n\
             [plugins.'io.containerd.internal.v1.opt']\npath = '{0}/opt'\n",
            folder.path().display(),
        );
        fs::write(path("config.toml"), config)?;
        let mut command = tools.isolated_daemon("containerd");
        command.arg("--config").arg(path("config.toml"));
        let mut daemon = Daemon::start(command, &path("log"))?;
        daemon.wait(|log| log.contains("containerd successfully booted").then_some(()))?;
        Ok(Containerd { ctr: tools.program("ctr"), folder, _daemon: daemon })
    }

    /// What `ctr` prints.
    pub(super) fn ctr(&self, arguments: &[&str]) -> Result<String> {
        let mut ctr = Command::new(&self.ctr);
        ctr.arg("--address").arg(self.folder.path().join(SOCKET));
        run(ctr.args(["--namespace", "test", "--timeout", "60s"]).args(arguments))
    }

    /// Fails unless containerd has every blob of `image`, whose manifest has `digest`.
    pub(super) fn check_complete(&self, image: &str, digest: &str) -> Result<()> {
        let list = self.ctr(&["images", "check"])?;
        let row = list.lines().find(|line| line.split_whitespace().next() == Some(image));
        let is_complete = row.is_some_and(|row| row.contains(digest) && row.contains(" complete "));
        ensure!(is_complete, "{image} with {digest} is not complete:\n{list}");
        Ok(())
    }
}
