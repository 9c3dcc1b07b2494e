//! Small Debian systems that contain Wine: one for machines whose own Wine is too old, and one with
//! software GPUs too, which the other tests must not see.
//!
//! debootstrap makes it in the user's cache. Each command enters it in a mount
//! namespace of its own, so the machine never sees what is mounted in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::debian_archive;
use crate::cache::Cache;
use crate::{prerequisites, process, workspace};

/// The first Debian release whose Wine starts Rust programs.
const SUITE: &str = "trixie";

/// What a root is for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Windows programs.
    Wine,
    /// Windows programs that use a GPU: Mesa's software Vulkan and OpenGL, pocl and an X server,
    /// without which Wine has no OpenGL and no Direct3D.
    Graphics,
}

impl Purpose {
    /// What is installed in addition to Debian's base.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Purpose::Wine => &["wine", "wine64"],
            Purpose::Graphics => &[
                "wine",
                "wine64",
                "xvfb",
                "mesa-vulkan-drivers",
                "libgl1-mesa-dri",
                "libglx-mesa0",
                "ocl-icd-libopencl1",
                "pocl-opencl-icd",
            ],
        }
    }

    /// The entry's name in the cache.
    fn entry(self) -> &'static str {
        match self {
            Purpose::Wine => "wine-root",
            Purpose::Graphics => "wine-graphics-root",
        }
    }
}

/// Changes when a root that an older xtask made would not do.
const VERSION: &str = "2";

/// Where programs lie in the root, and in what debootstrap runs.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The root's folder. If this machine has none yet, it is made now.
pub(super) fn ready(purpose: Purpose) -> Result<PathBuf> {
    if !prerequisites::is_root() {
        bail!(
            "no usable Wine: version 9 or newer is not installed, and only root can make and enter \
             a Debian root that contains it\nhint: install Wine 9 or newer, or run as root"
        );
    }
    let cache = Cache::open()?;
    let (entry, packages) = (purpose.entry(), purpose.packages());
    let names = packages.join(" ");
    let made_from = [SUITE, &names, VERSION, std::env::consts::ARCH];
    cache.entry(entry, &made_from, |root| {
        prerequisites::for_wine_root()?;
        eprintln!("making a Debian {SUITE} root with Wine (once per machine; a few minutes)");
        make(root, packages, &cache.log(entry)?)
            .with_context(|| format!("cannot make a Debian root in {}", root.display()))
    })
}

fn make(root: &Path, packages: &[&str], log: &Path) -> Result<()> {
    let archive = debian_archive::of_this_machine();
    let proxy = proxy();
    let prepared = |mut command: Command| {
        if let Some(proxy) = &proxy {
            command.env("http_proxy", proxy).env("https_proxy", proxy);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
        command.env("PATH", SYSTEM_PATH);
        command
    };
    let mut debootstrap = prepared(in_own_mount_namespace());
    debootstrap.args(["debootstrap", "--variant=minbase", SUITE]).arg(root).arg(archive);
    process::run_logged(&mut debootstrap, log)?;
    let in_root = |words: &[&str]| {
        let mut command = prepared(Command::new("chroot"));
        command.arg(root).args(words);
        command
    };
    let install = ["apt-get", "install", "--yes", "--no-install-recommends"];
    process::run_logged(in_root(&install).args(packages), log)?;
    process::run_logged(&mut in_root(&["apt-get", "clean"]), log)
}

/// The proxy in apt's configuration. One in the environment is inherited anyway.
fn proxy() -> Option<String> {
    let mut apt_config = Command::new("apt-config");
    apt_config.args(["shell", "PROXY", "Acquire::http::Proxy"]);
    let text = process::stdout(&mut apt_config)?;
    let value = text.trim().strip_prefix("PROXY='")?.strip_suffix('\'')?;
    (!value.is_empty() && value != "DIRECT").then(|| value.to_owned())
}

/// A command that runs its further arguments in the root. The workspace has the same
/// path there as outside.
pub(super) fn enter(root: &Path) -> Command {
    let mut command = in_own_mount_namespace();
    command.args(["/bin/sh", "-ec", ENTER, "enter"]);
    command.arg(root).arg(workspace::root()).arg(workspace::target_dir());
    command.env("PATH", SYSTEM_PATH).env("HOME", "/root");
    command
}

/// A command that runs its further arguments in a new mount namespace. The kernel
/// unmounts what it mounts when it exits, however it exits, and no other process sees
/// the mounts. It is terminated when this process is killed.
fn in_own_mount_namespace() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]);
    command.args(["unshare", "--mount", "--propagation", "private", "--"]);
    command
}

/// Arguments: the root, the workspace, its target folder, then the command.
const ENTER: &str = r#"
root=$1 workspace=$2 target=$3; shift 3
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
# pocl reads the processors from it.
mount --rbind /sys "$root/sys"
for folder in "$workspace" "$target"; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
done
exec chroot "$root" /bin/sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
"#;
