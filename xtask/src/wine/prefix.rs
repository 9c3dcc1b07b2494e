//! A Wine prefix, and Windows programs that run in it.
//!
//! A Wine prefix is a Windows installation of its own, with registry and files. Each
//! purpose has one in `target/wine`, so that runs do not disturb each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::debian_root::{self, Purpose};
use super::display::Display;
use super::second_gpu;
use crate::process_lock::ProcessLock;
use crate::{process, workspace};

/// The oldest Wine that starts Rust programs: it has `bcryptprimitives.dll`.
const OLDEST: u32 = 9;

/// Wine's own .NET and browser are not installed (Wine would ask in a window).
/// `dxcore.dll` is never Wine's, because its factory supports no caller.
const DLL_OVERRIDES: &str = "mscoree,mshtml=;dxcore=n";

/// Changes when a prefix that an older xtask made would not do.
const PREFIX_VERSION: &str = "2\n";

/// Seconds for which a prefix's server outlives its last program: long enough for the
/// next command of the same user to find what the last one set up.
const LINGER: &str = "-p600";

/// The exit code of wineserver if the prefix has a server already.
const SERVER_RUNS: i32 = 2;

/// A working Wine with one prefix.
pub(crate) struct Wine {
    launcher: Launcher,
    prefix: PathBuf,
    /// Where windows are drawn; without it programs have no windows and no OpenGL.
    display: Option<Display>,
    /// The manifests of its GPUs, as in `VK_ICD_FILENAMES`; without them programs have none.
    gpus: Option<String>,
}

#[derive(Clone)]
enum Launcher {
    /// The machine's own Wine.
    System,
    /// The Wine in a Debian root.
    Root(PathBuf),
}

impl Wine {
    /// Finds or installs Wine, and finds or makes the prefix `name`.
    pub(crate) fn ready(name: &str) -> Result<Wine> {
        Self::with(name, || {
            if system_version().is_some_and(|version| version >= OLDEST) {
                return Ok((Launcher::System, None));
            }
            Ok((Launcher::Root(debian_root::ready(Purpose::Wine)?), None))
        })
    }

    /// The same with two software GPUs. Vulkan lists both, and Direct3D uses one of them.
    pub(crate) fn with_graphics(name: &str) -> Result<Wine> {
        let mut wine = Self::with(name, || {
            let root = debian_root::ready(Purpose::Graphics)?;
            let gpus = second_gpu::manifests(&root)?;
            Ok((Launcher::Root(root), Some(gpus)))
        })?;
        let mut server = wine.tool("Xvfb");
        server.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
        wine.display = Some(Display::start(server)?);
        Ok(wine)
    }

    fn with(
        name: &str,
        launcher: impl FnOnce() -> Result<(Launcher, Option<String>)>,
    ) -> Result<Wine> {
        if !cfg!(target_os = "linux") {
            bail!("the Wine tests run on Linux only");
        }
        let folder = workspace::target_dir().join("wine");
        fs::create_dir_all(&folder)?;
        let (launcher, gpus) = launcher()?;
        let wine = Wine { launcher, prefix: folder.join(name), display: None, gpus };
        wine.make_prefix(&folder.join(format!("{name}.log")))?;
        Ok(wine)
    }

    /// A command that runs a Windows program, which sees the workspace on drive Z.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = self.runner();
        command.arg(program);
        command
    }

    /// The same without the program, which is its next argument.
    pub(crate) fn runner(&self) -> Command {
        self.tool("wine")
    }

    /// The same for a program with libraries of its own that replace those of Wine.
    pub(crate) fn command_with_own_libraries(&self, program: &Path, names: &[&str]) -> Command {
        let mut command = self.command(program);
        command.env("WINEDLLOVERRIDES", format!("{DLL_OVERRIDES};{}=n", names.join(",")));
        command
    }

    /// The Debian root with this Wine.
    pub(crate) fn root(&self) -> Option<&Path> {
        match &self.launcher {
            Launcher::System => None,
            Launcher::Root(root) => Some(root),
        }
    }

    /// Drive C of the prefix.
    pub(crate) fn drive_c(&self) -> PathBuf {
        self.prefix.join("drive_c")
    }

    /// Waits until no other run holds the prefix, and holds it while the lock lives.
    pub(crate) fn lock(&self) -> Result<ProcessLock> {
        ProcessLock::wait(&self.prefix)
    }

    /// Starts the prefix's server, which runs until the returned value is dropped. A
    /// server that an earlier run left is stopped first. If this process is killed, its
    /// server stops some minutes later.
    pub(crate) fn start_server(&self) -> Result<Server<'_>> {
        self.stop();
        self.ensure_server()?;
        Ok(Server(self))
    }

    /// Starts the prefix's server and services unless they run already. They run for
    /// some minutes after the last program. They do not inherit this process's output,
    /// because a reader of that output would otherwise wait for them.
    pub(crate) fn ensure_server(&self) -> Result<()> {
        let mut server = self.tool("wineserver");
        let status = without_streams(server.arg(LINGER)).status()?;
        if status.code() == Some(SERVER_RUNS) {
            return Ok(());
        }
        if !status.success() {
            bail!("{} failed with {status}", process::line(&server));
        }
        // The first program starts the services.
        process::run(without_streams(self.tool("wine").args(["cmd.exe", "/c", "exit"])))
    }

    /// Stops every program of the prefix and its server.
    pub(crate) fn stop(&self) {
        // These fail if no server runs, which is the wanted state.
        let _ = self.tool("wineserver").arg("-k").status();
        let _ = self.tool("wineserver").arg("-w").status();
    }

    /// One of Wine's own Unix programs.
    fn tool(&self, name: &str) -> Command {
        let mut command = match &self.launcher {
            Launcher::System => Command::new(name),
            Launcher::Root(root) => {
                let mut command = debian_root::enter(root);
                command.arg(name);
                command
            }
        };
        command.env("WINEPREFIX", &self.prefix).env("WINEDLLOVERRIDES", DLL_OVERRIDES);
        if std::env::var_os("WINEDEBUG").is_none() {
            command.env("WINEDEBUG", "-all");
        }
        // Without it Wine prints a warning when each first program starts.
        command.env("XDG_RUNTIME_DIR", "/tmp");
        // No window should open even on a machine with a screen, and cargo's library path
        // is not for Wine.
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "LD_LIBRARY_PATH", "VK_ICD_FILENAMES"] {
            command.env_remove(name);
        }
        if let Some(display) = &self.display {
            command.env("DISPLAY", &display.name);
        }
        if let Some(gpus) = &self.gpus {
            command.env("VK_ICD_FILENAMES", gpus);
        }
        command
    }

    /// Makes the prefix under a temporary name and renames it when it is complete.
    fn make_prefix(&self, log: &Path) -> Result<()> {
        let marker = |prefix: &Path| prefix.join("xtask-version");
        let is_current =
            || fs::read_to_string(marker(&self.prefix)).is_ok_and(|v| v == PREFIX_VERSION);
        if is_current() {
            return Ok(());
        }
        let partial = Wine {
            launcher: self.launcher.clone(),
            prefix: self.prefix.with_extension("partial"),
            display: None,
            // Wine gives GPUs that appear later the LUIDs of others.
            gpus: self.gpus.clone(),
        };
        let _lock = partial.lock()?;
        if is_current() {
            return Ok(());
        }
        for wine in [self, &partial] {
            if wine.prefix.exists() {
                wine.stop();
                fs::remove_dir_all(&wine.prefix)?;
            }
        }
        eprintln!("making the Wine prefix {}", self.prefix.display());
        fs::create_dir(&partial.prefix)?;
        let made = process::run_logged(partial.tool("wine").args(["wineboot", "--init"]), log);
        partial.stop();
        made.with_context(|| format!("cannot make a Wine prefix in {}", partial.prefix.display()))?;
        fs::write(marker(&partial.prefix), PREFIX_VERSION)?;
        Ok(fs::rename(&partial.prefix, &self.prefix)?)
    }
}

/// A prefix's server. Dropping it stops every program of the prefix.
pub(crate) struct Server<'a>(&'a Wine);

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// `path` as Windows programs under Wine spell it.
pub(crate) fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}

fn without_streams(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// The major version of the machine's own Wine.
fn system_version() -> Option<u32> {
    major(&process::stdout(Command::new("wine").arg("--version"))?)
}

/// The major version in `wine-10.0 (Debian 10.0~repack-6)`.
fn major(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("wine-")?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wine_versions_are_read() {
        assert_eq!(major("wine-10.0 (Debian 10.0~repack-6)\n"), Some(10));
        assert_eq!(major("wine-9.0-rc1"), Some(9));
        assert_eq!(major("wine-8"), Some(8));
        assert_eq!(major("bash: wine: not found"), None);
    }

    #[test]
    fn unix_paths_are_on_drive_z() {
        assert_eq!(windows_path(Path::new("/a b/c.yaml")), r"Z:\a b\c.yaml");
    }
}
