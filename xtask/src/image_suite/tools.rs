//! The tools of others that the tests use, from Debian's archive.
//!
//! The registry and containerd are daemons. Installing their packages would start them on
//! this machine, so only their files are unpacked, into the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::{prerequisites, process};

/// The packages of the daemons. Their programs need nothing but the C library.
const PACKAGES: [&str; 2] = ["docker-registry", "containerd"];

/// The entry's name in the cache.
const ENTRY: &str = "image-daemons";

/// Changes when an older entry would not do.
const VERSION: &str = "1";

pub(super) struct Tools {
    /// The root of the unpacked packages.
    root: PathBuf,
}

impl Tools {
    pub(super) fn ready() -> Result<Tools> {
        prerequisites::for_image_tests()?;
        if !prerequisites::is_root() {
            bail!("containerd runs only as root\nhint: run the step `image` as root");
        }
        let cache = Cache::open()?;
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let made_from = [&PACKAGES.join(" "), VERSION, std::env::consts::ARCH, &release];
        let root = cache.entry(ENTRY, &made_from, |folder| {
            eprintln!("downloading {}", PACKAGES.join(" and "));
            unpack(folder, &cache.log(ENTRY)?).context("cannot unpack the daemons")
        })?;
        Ok(Tools { root })
    }

    /// A daemon that is terminated when this process is killed.
    pub(super) fn daemon(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(self.program(program));
        command
    }

    /// A daemon in a mount namespace of its own, so that nobody sees what it mounts.
    pub(super) fn isolated_daemon(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]);
        command.args(["unshare", "--mount", "--propagation", "private", "--"]);
        command.arg(self.program(program));
        command
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.root.join("usr/bin").join(name)
    }
}

fn unpack(folder: &Path, log: &Path) -> Result<()> {
    let download = folder.join("packages");
    std::fs::create_dir(&download)?;
    let mut apt = Command::new("apt-get");
    apt.current_dir(&download).arg("download").args(PACKAGES);
    // The user `_apt` cannot write into the cache of root.
    apt.args(["-o", "APT::Sandbox::User=root"]);
    process::run_logged(&mut apt, log)?;
    for entry in std::fs::read_dir(&download)? {
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.arg("--extract").arg(entry?.path()).arg(folder);
        process::run_logged(&mut dpkg, log)?;
    }
    Ok(std::fs::remove_dir_all(&download)?)
}
