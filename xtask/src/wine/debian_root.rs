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
    /// Windows programs that use a GPU: Mesa's software Vulkan and OpenGL, pocl, an X server,
    /// without which Wine has no OpenGL and no Direct3D, and DXVK.
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
                "dxvk-wine64",
            ],
        }
    }

    /// Which of Wine's 32-bit libraries are installed. Wine runs 32-bit programs with its 64-bit
    /// code and these; all of them have 600 MB. A new prefix gets them by `rundll32`.
    fn libraries_32(self) -> &'static [&'static str] {
        match self {
            Purpose::Wine => &[
                "advapi32.dll",
                "bcryptprimitives.dll",
                "cabinet.dll",
                "combase.dll",
                "coml2.dll",
                "gdi32.dll",
                "imm32.dll",
                "kernel32.dll",
                "kernelbase.dll",
                "ktmw32.dll",
                "msvcrt.dll",
                "ntdll.dll",
                "ole32.dll",
                "oleaut32.dll",
                "rpcrt4.dll",
                "rundll32.exe",
                "sechost.dll",
                "setupapi.dll",
                "shcore.dll",
                "shell32.dll",
                "shlwapi.dll",
                "ucrtbase.dll",
                "user32.dll",
                "userenv.dll",
                "version.dll",
                "win32u.dll",
                "ws2_32.dll",
            ],
            Purpose::Graphics => &[],
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
    let names_32 = purpose.libraries_32().join(" ");
    let mut made_from = vec![SUITE, &names, VERSION, std::env::consts::ARCH];
    if !names_32.is_empty() {
        made_from.push(&names_32);
    }
    cache.entry(entry, &made_from, |root| {
        prerequisites::for_wine_root()?;
        eprintln!("making a Debian {SUITE} root with Wine (once per machine; a few minutes)");
        make(root, purpose, &cache.log(entry)?)
            .with_context(|| format!("cannot make a Debian root in {}", root.display()))
    })
}

fn make(root: &Path, purpose: Purpose, log: &Path) -> Result<()> {
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
    process::run_logged(in_root(&install).args(purpose.packages()), log)?;
    if !purpose.libraries_32().is_empty() {
        let install_32 = ["/bin/sh", "-ec", INSTALL_32, "install-32"];
        process::run_logged(in_root(&install_32).args(purpose.libraries_32()), log)?;
    }
    process::run_logged(&mut in_root(&["apt-get", "clean"]), log)
}

/// Puts the 32-bit libraries that the arguments name beside the 64-bit ones. Debian's package
/// of 32-bit Wine would replace the program that starts 64-bit programs too.
const INSTALL_32: &str = r#"
from=./usr/lib/i386-linux-gnu/wine/i386-windows to=/usr/lib/x86_64-linux-gnu/wine/i386-windows
dpkg --add-architecture i386
apt-get update
cd /tmp
apt-get download libwine:i386
for library in "$@"; do echo "$from/$library"; done > libraries-32
mkdir -p "$to"
dpkg-deb --fsys-tarfile libwine_*_i386.deb > libwine-32.tar
tar --extract --file libwine-32.tar --directory "$to" --strip-components 6 --files-from libraries-32
rm libwine_*_i386.deb libwine-32.tar libraries-32
"#;

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
