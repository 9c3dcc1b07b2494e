//! Wine: found or set up, and Windows programs run with it.
//!
//! A Wine prefix is a Windows installation of its own, with registry and files.
//! Each purpose has one under `target/wine`, so that runs do not disturb each other.

mod mirror;
mod root;
mod turn;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use self::turn::Turn;
use crate::wine_suite::Bed;
use crate::{process, workspace};

/// The oldest Wine that starts Rust programs: it has `bcryptprimitives.dll`.
const OLDEST: u32 = 9;

/// Where programs lie in the Debian root, and what its own tools rely on.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Wine's own .NET and browser are not installed (it would ask with a window), and
/// `dxcore.dll` is never Wine's, whose factory serves no caller.
const DLL_OVERRIDES: &str = "mscoree,mshtml=;dxcore=n";

/// Changes whenever a prefix made by an older xtask would not do.
const PREFIX_VERSION: &str = "1\n";

/// Seconds that a prefix's server outlives its last program: long enough for the
/// next command of the same person to find what the last one set up.
const LINGER: &str = "-p600";

/// What wineserver exits with where the prefix has one already.
const SERVER_RUNS: i32 = 2;

/// A Wine that runs, with one prefix.
pub(crate) struct Wine {
    launcher: Launcher,
    prefix: PathBuf,
}

enum Launcher {
    /// The machine's own Wine.
    System,
    /// The one in a Debian root.
    Root(PathBuf),
}

impl Wine {
    /// Finds or makes a Wine and the prefix called `name`.
    pub(crate) fn ready(name: &str) -> Result<Wine> {
        if cfg!(windows) {
            bail!("Wine is for systems other than Windows; here the programs run as they are");
        }
        let wine_dir = workspace::target_dir().join("wine");
        fs::create_dir_all(&wine_dir)?;
        let launcher = if system_version().is_some_and(|version| version >= OLDEST) {
            Launcher::System
        } else {
            Launcher::Root(root::ready(&wine_dir)?)
        };
        let wine = Wine { launcher, prefix: wine_dir.join(name) };
        wine.make_prefix(&wine_dir, name)?;
        Ok(wine)
    }

    /// A command that runs a Windows program, which sees the workspace as drive Z.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = self.tool("wine");
        command.arg(program);
        command
    }

    /// Drive C of the prefix.
    pub(crate) fn drive_c(&self) -> PathBuf {
        self.prefix.join("drive_c")
    }

    /// Waits until no other run uses the prefix, and keeps it to this one for as long as
    /// the returned value lives.
    pub(crate) fn alone(&self) -> Result<Turn> {
        Turn::take(self.prefix.with_extension("turn"))
    }

    /// Starts the prefix's server, to live until the returned value is dropped. One
    /// that an earlier run left is ended first; if this run is killed, its own ends
    /// some minutes later.
    pub(crate) fn serve(&self) -> Result<Server<'_>> {
        self.stop();
        self.serve_a_while()?;
        Ok(Server(self))
    }

    /// Starts the prefix's server and its services, to live for some minutes after the
    /// last program, unless they run already. They hold no output of this process,
    /// else whoever reads that would wait for them.
    fn serve_a_while(&self) -> Result<()> {
        let mut server = self.tool("wineserver");
        let status = quiet(server.arg(LINGER)).status()?;
        if status.code() == Some(SERVER_RUNS) {
            return Ok(());
        }
        if !status.success() {
            bail!("{} ended with {status}", process::line(&server));
        }
        // The first program starts the services.
        process::run(quiet(self.tool("wine").args(["cmd.exe", "/c", "exit"])))
    }

    /// Ends every program of the prefix and its server.
    fn stop(&self) {
        // It fails where nothing ran, which is as wanted.
        let _ = self.tool("wineserver").arg("-k").status();
        let _ = self.tool("wineserver").arg("-w").status();
    }

    /// One of Wine's own Unix programs.
    fn tool(&self, name: &str) -> Command {
        let mut command = match &self.launcher {
            Launcher::System => Command::new(name),
            Launcher::Root(root) => {
                let mut command = root::enter(root);
                command.arg(name).env("PATH", SYSTEM_PATH).env("HOME", "/root");
                command
            }
        };
        command.env("WINEPREFIX", &self.prefix).env("WINEDLLOVERRIDES", DLL_OVERRIDES);
        if std::env::var_os("WINEDEBUG").is_none() {
            command.env("WINEDEBUG", "-all");
        }
        // Else Wine complains before every first program.
        command.env("XDG_RUNTIME_DIR", "/tmp");
        // No window is wanted even where there is a screen, and cargo's own library
        // path is none of Wine's business.
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "LD_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        command
    }

    fn make_prefix(&self, wine_dir: &Path, name: &str) -> Result<()> {
        let marker = |prefix: &Path| prefix.join("xtask-version");
        if fs::read_to_string(marker(&self.prefix)).is_ok_and(|v| v == PREFIX_VERSION) {
            return Ok(());
        }
        if self.prefix.exists() {
            self.stop();
            fs::remove_dir_all(&self.prefix)?;
        }
        eprintln!("setting up: Wine prefix {name}");
        let half = Wine { launcher: self.launcher.again(), prefix: half_made(wine_dir, name)? };
        fs::create_dir_all(&half.prefix)?;
        let log = wine_dir.join(format!("{name}.log"));
        let made = process::run_logged(half.tool("wine").args(["wineboot", "--init"]), &log);
        half.stop();
        made.with_context(|| format!("cannot make a Wine prefix in {}", half.prefix.display()))?;
        fs::write(marker(&half.prefix), PREFIX_VERSION)?;
        fs::rename(&half.prefix, &self.prefix)?;
        Ok(())
    }
}

impl Launcher {
    fn again(&self) -> Launcher {
        match self {
            Launcher::System => Launcher::System,
            Launcher::Root(root) => Launcher::Root(root.clone()),
        }
    }
}

/// A prefix's server that is kept alive; dropping it ends every program of the prefix.
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

/// `cargo xtask wine`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let (prefix, arguments) = match arguments {
        [option, name, rest @ ..] if option == "--prefix" => (prefix_name(name)?, rest),
        all => ("prefix", all),
    };
    let (inventory, arguments) = match arguments {
        [option, path, rest @ ..] if option == "--bed" => (Some(Path::new(path)), rest),
        all => (None, all),
    };
    let (program, arguments) =
        arguments.split_first().context("`wine` wants a Windows program to run")?;
    let wine = Wine::ready(prefix)?;
    if program == "--stop" {
        wine.stop();
        return Ok(ExitCode::SUCCESS);
    }
    wine.serve_a_while()?;
    let mut command = match inventory {
        Some(inventory) => {
            let bed = Bed::new(&wine)?;
            bed.set(inventory)?;
            bed.command(Path::new(program))
        }
        None => wine.command(Path::new(program)),
    };
    let status = command.args(arguments).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// `name`, if it is safe as the name of a folder.
fn prefix_name(name: &OsStr) -> Result<&str> {
    let plain = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    name.to_str().filter(plain).with_context(|| {
        format!("`{}` is no name for a prefix (letters, digits and hyphens)", name.display())
    })
}

/// Without input and output.
fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// The major version of the machine's own Wine.
fn system_version() -> Option<u32> {
    major(&process::answer(Command::new("wine").arg("--version"))?)
}

/// The major version in `wine-10.0 (Debian 10.0~repack-6)`.
fn major(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("wine-")?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// A folder to make `name` in, after removing what ended processes left half made. What
/// cannot be removed, as a child of such a process is still at it, waits for the next run.
fn half_made(wine_dir: &Path, name: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(wine_dir)? {
        let path = entry?.path();
        let file_name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let maker = file_name.strip_prefix(name).and_then(|rest| rest.strip_prefix(".half-made-"));
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(wine_dir.join(format!("{name}.half-made-{}", std::process::id())))
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

    #[test]
    fn only_what_ended_makers_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("root.half-made-999999999");
        let alive = dir.path().join("root.half-made-1");
        let other = dir.path().join("prefix.half-made-999999999");
        for folder in [&left, &alive, &other] {
            fs::create_dir(folder).unwrap();
        }
        let mine = half_made(dir.path(), "root").unwrap();
        assert!(!left.exists() && alive.exists() && other.exists());
        assert!(mine.to_str().unwrap().ends_with(&std::process::id().to_string()));
    }
}
