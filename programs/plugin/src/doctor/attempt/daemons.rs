//! `daemons`: whether daemons with different driver models serve one kubelet together, and whether a
//! daemon takes over from another one with the same driver model that is killed.
//!
//! They run in a temporary folder, with the kubelet of `simulate` behind a real socket.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kubelet::UnixSockets;
use kubelet::testing::{KubeletDouble, Options};
use tokio::time::{Instant, sleep, timeout};

use super::container::folder;
use super::last_lines;
use crate::doctor::finding::{Finding, Subject, millis};
use crate::doctor::stop::Stop;

pub(super) const SUBJECT: Subject = Subject("daemons");

/// How long a registration may take: a daemon waits a second for the adapters.
const LIMIT: Duration = Duration::from_secs(15);

/// How long the waiting daemon is watched.
const WATCHED: Duration = Duration::from_secs(2);

/// Tests daemons with the adapters of `inventory`, or of this host.
pub(super) async fn run(inventory: Option<&Path>, stop: &Stop) -> anyhow::Result<Finding> {
    let folder = folder().context("cannot create a folder for the daemons")?;
    let daemons = Daemons { folder: folder.path(), inventory };
    let tested = stop.or(daemons.test()).await?;
    Ok(tested.unwrap_or_else(|error| {
        // Without a daemon there is no log.
        let log = std::fs::read_to_string(daemons.log()).unwrap_or_default();
        SUBJECT.error(&error).detail(last_lines(&log))
    }))
}

/// Daemons with the same directory.
struct Daemons<'a> {
    folder: &'a Path,
    inventory: Option<&'a Path>,
}

impl Daemons<'_> {
    async fn test(&self) -> anyhow::Result<Finding> {
        let kubelet = KubeletDouble::start(UnixSockets, self.directory(), Options::default());
        let kubelet = kubelet.context("cannot create a socket for the kubelet")?;
        let began = Instant::now();
        let first = self.start("wddm")?;
        let registered = kubelet.wait_for(|resources| !resources.is_empty());
        let registered = timeout(LIMIT, registered).await;
        let registered = registered.ok().context("a daemon did not register its resource")?;
        let name = registered[0].name.as_str();
        let _second = self.start("mcdm")?;
        let both = timeout(LIMIT, kubelet.wait_for(|resources| resources.len() == 2)).await;
        let both = both.ok().context("a second daemon did not register its resource")?;
        let names: Vec<&str> = both.iter().map(|resource| resource.name.as_str()).collect();
        let lists = timeout(LIMIT, kubelet.wait_for_lists(&names)).await;
        lists.ok().context("the daemons did not send their device lists")?;
        let listed = began.elapsed();
        let _waiting = self.start("wddm")?;
        sleep(WATCHED).await;
        let count = kubelet.registrations(name);
        ensure!(count == 1, "a daemon did not wait for another one with its driver model");
        let began = Instant::now();
        drop(first);
        let replaced = timeout(LIMIT, kubelet.wait_for(|_| kubelet.registrations(name) > 1)).await;
        replaced.ok().context("a daemon did not take over from one that was killed")?;
        let what = "two daemons served their resources, and a third one took over";
        Ok(SUBJECT.ok(what).measured([
            ("listsReceivedMs", millis(listed)),
            ("takenOverMs", millis(began.elapsed())),
        ]))
    }

    fn directory(&self) -> PathBuf {
        self.folder.join("device-plugins")
    }

    /// The log of all daemons.
    fn log(&self) -> PathBuf {
        self.folder.join("daemons.log")
    }

    /// Starts a daemon with an empty configuration file.
    fn start(&self, driver_model: &str) -> anyhow::Result<Daemon> {
        let config = self.folder.join("config.yaml");
        let start = || {
            File::create(&config)?;
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["serve", "--driver-model", driver_model, "--config"]).arg(&config);
            command.arg("--device-plugin-dir").arg(self.directory());
            let inventory = self.inventory.map(|file| [OsString::from("--inventory"), file.into()]);
            command.args(inventory.into_iter().flatten());
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let log = File::options().create(true).append(true).open(self.log())?;
            command.stderr(log).spawn().map(Daemon)
        };
        start().context("cannot start a daemon")
    }
}

/// A daemon, which is killed when this is dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
