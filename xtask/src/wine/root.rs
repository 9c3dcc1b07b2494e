//! A small Debian system with Wine in it, for machines whose own Wine is too old.
//!
//! It is made by debootstrap in a folder with the maker's process id in its name
//! and renamed when it is complete, so what lies under the final name can be used,
//! and what a killed run left is told apart and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{half_made, mirror};
use crate::{process, setup, workspace};

/// The first Debian release with a Wine that starts Rust programs.
const SUITE: &str = "trixie";

/// What is installed on top of Debian's base.
const PACKAGES: [&str; 2] = ["wine", "wine64"];

/// Changes whenever a root made by an older xtask would not do.
const VERSION: &str = "trixie-1\n";

/// The version's file within the root.
const MARKER: &str = "etc/xtask-wine-root";

/// The root's folder, made now if this machine has none yet.
pub(super) fn ready(wine_dir: &Path) -> Result<PathBuf> {
    if !setup::is_root() {
        bail!(
            "no Wine that can be used: there is no `wine` of version 9 or newer, and only root can \
             make and enter a Debian root that has one\nhint: install wine 9 or newer, or become root"
        );
    }
    let root = wine_dir.join("root");
    if fs::read_to_string(root.join(MARKER)).is_ok_and(|version| version == VERSION) {
        return Ok(root);
    }
    setup::for_wine_root()?;
    remove(&root)?;
    let half = half_made(wine_dir, "root")?;
    eprintln!("setting up: Wine in a Debian {SUITE} root (once; a minute or two)");
    make(&half, &wine_dir.join("root.log"))
        .with_context(|| format!("cannot make a Debian root in {}", half.display()))?;
    fs::rename(&half, &root)?;
    Ok(root)
}

fn make(root: &Path, log: &Path) -> Result<()> {
    let archive = mirror::of_this_machine();
    let proxy = proxy();
    let with_proxy = |mut command: Command| {
        if let Some(proxy) = &proxy {
            command.env("http_proxy", proxy).env("https_proxy", proxy);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
        command.env("PATH", super::SYSTEM_PATH);
        command
    };
    let mut debootstrap = with_proxy(own_mounts());
    debootstrap.args(["debootstrap", "--variant=minbase", SUITE]).arg(root).arg(archive);
    process::run_logged(&mut debootstrap, log)?;
    let in_root = |words: &[&str]| {
        let mut command = with_proxy(Command::new("chroot"));
        command.arg(root).args(words);
        command
    };
    let install = ["apt-get", "install", "--yes", "--no-install-recommends"];
    process::run_logged(in_root(&install).args(PACKAGES), log)?;
    process::run_logged(&mut in_root(&["apt-get", "clean"]), log)?;
    fs::write(root.join(MARKER), VERSION)?;
    Ok(())
}

/// The proxy that apt is configured with; one from the environment is inherited anyway.
fn proxy() -> Option<String> {
    let mut apt_config = Command::new("apt-config");
    apt_config.args(["shell", "PROXY", "Acquire::http::Proxy"]);
    let text = process::answer(&mut apt_config)?;
    let value = text.trim().strip_prefix("PROXY='")?.strip_suffix('\'')?;
    (!value.is_empty() && value != "DIRECT").then(|| value.to_owned())
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Runs what follows in the root, which sees the workspace at the same path.
pub(super) fn enter(root: &Path) -> Command {
    let mut command = own_mounts();
    command.args(["/bin/sh", "-ec", ENTER, "enter"]);
    command.arg(root).arg(workspace::root()).arg(workspace::target_dir());
    command
}

/// Runs what follows in a mount namespace of its own: what it mounts ends with it,
/// however it ends, and nobody else ever sees it. It ends when this process is killed.
fn own_mounts() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]);
    command.args(["unshare", "--mount", "--propagation", "private", "--"]);
    command
}

/// `$1` the root, `$2` the workspace, `$3` its target folder; then the command.
const ENTER: &str = r#"
root=$1 workspace=$2 target=$3; shift 3
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for folder in "$workspace" "$target"; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
done
exec chroot "$root" /bin/sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
"#;
