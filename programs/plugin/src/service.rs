//! `service`: installs, removes and runs the daemon as a Windows service.
//!
//! The options of `serve` are checked before anything is installed. The service runs this program
//! with the same options.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use command_line::Failure;
use win32::directory_access::{Entry, distrust_of, entry};

use crate::arguments::{Command, CommandLine};
use daemon::logging::LogDestination;

const EXAMPLES: &str = "\
Examples:
  Install the daemon with its defaults, and start it:
    directx-device-plugin service install
    Start-Service directx-device-plugin
  Install it with options of `serve`:
    directx-device-plugin service install -- --driver-model wddm --config C:\\k\\plugin.yaml
  Stop and remove it:
    directx-device-plugin service uninstall

The service runs as LocalSystem, starts with Windows, and is restarted when it fails. It logs to
the file of `--log-file`, by default %SystemRoot%\\Logs\\directx-device-plugin.log.";

/// The service manager's name for the service.
#[cfg(windows)]
const NAME: &str = "directx-device-plugin";

/// The options of `service`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServiceArguments {
    #[command(subcommand)]
    command: ServiceCommand,
}

#[derive(Subcommand, Debug)]
enum ServiceCommand {
    /// Install the service; run as administrator
    Install(InstallOptions),
    /// Stop and remove the service; run as administrator
    Uninstall,
    /// Run as the service; only the Windows service manager starts this
    Run(ServeOptions),
}

#[derive(Args, Debug)]
struct InstallOptions {
    /// Install although other accounts may write to what the service runs, reads or logs to
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    serve: ServeOptions,
}

#[derive(Args, Debug)]
struct ServeOptions {
    /// Options of `serve`
    #[arg(last = true, value_name = "SERVE_OPTION")]
    options: Vec<OsString>,
}

/// The command line of `serve` with these options. Exits like every command with wrong ones.
fn serve_command_line(options: &[OsString]) -> CommandLine {
    let command = ["directx-device-plugin", "serve"].map(OsString::from);
    CommandLine::parse_from(command.iter().chain(options))
}

impl ServiceArguments {
    /// Where log lines go; `None` for the daemon, which logs where its own options say.
    pub(crate) fn log_destination(&self) -> Option<LogDestination> {
        match self.command {
            ServiceCommand::Run(_) => None,
            ServiceCommand::Install(_) | ServiceCommand::Uninstall => Some(LogDestination::Stderr),
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: ServiceArguments) -> Result<(), Failure> {
    match arguments.command {
        ServiceCommand::Install(InstallOptions { force, serve }) => install(&serve.options, force),
        ServiceCommand::Uninstall => system::uninstall(),
        ServiceCommand::Run(serve) => system::run(serve.options),
    }
}

/// Checks the options and installs the service.
fn install(options: &[OsString], force: bool) -> Result<(), Failure> {
    let Command::Serve(serve) = serve_command_line(options).command else {
        unreachable!("the command is `serve`");
    };
    check_paths(&serve.paths())?;
    let log_file = match serve.log_destination() {
        LogDestination::File(_) => None,
        LogDestination::Stderr | LogDestination::QueuedStderr => Some(default_log_file()),
    };
    if !force {
        let mut used: Vec<PathBuf> = std::env::current_exe().into_iter().collect();
        for (option, path) in serve.paths() {
            // `doctor` reports who may write to the kubelet's directory.
            if option != "--device-plugin-dir" {
                used.push(std::path::absolute(path).map_err(Failure::usage)?);
            }
        }
        used.extend(log_file.clone());
        check_writers(&used, entry)?;
    }
    serve.prepare()?;
    system::install(launch_arguments(options, log_file))
}

/// The arguments with which Windows starts this program.
fn launch_arguments(options: &[OsString], log_file: Option<PathBuf>) -> Vec<OsString> {
    let mut arguments = ["service", "run", "--"].map(OsString::from).to_vec();
    arguments.extend(options.iter().cloned());
    if let Some(path) = log_file {
        arguments.extend(["--log-file".into(), path.into()]);
    }
    arguments
}

/// Only administrators may write to this folder. In `%ProgramData%`, any user could create the
/// folder first and choose which files `LocalSystem` writes.
fn default_log_file() -> PathBuf {
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    Path::new(&root).join("Logs").join("directx-device-plugin.log")
}

/// Rejects relative paths, because services start in System32.
fn check_paths(paths: &[(&'static str, &Path)]) -> Result<(), Failure> {
    let Some((option, path)) = paths.iter().find(|(_, path)| !path.is_absolute()) else {
        return Ok(());
    };
    let what = format!("`{option} {}` is not an absolute path", path.display());
    let absolute = std::path::absolute(path).unwrap_or_default();
    let absolute = absolute.display();
    let hint = format!("services start in another directory; use `{option} {absolute}`");
    Err(Failure::usage(anyhow!(what)).hint(hint))
}

/// Rejects files that other accounts than administrators may change or replace: `LocalSystem` runs
/// and reads them, and writes the log.
fn check_writers(
    files: &[PathBuf],
    entry: impl Fn(&Path) -> io::Result<Entry>,
) -> Result<(), Failure> {
    for file in files {
        match distrust_of(file, None, &entry) {
            Ok(None) => {}
            // The service creates its log.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(Some((reason, fix))) => {
                let file = file.display();
                let what = format!("`{file}` would let others act as SYSTEM: {reason}");
                return Err(Failure::runtime(anyhow!(what)).hint(format!("{fix}, or use --force")));
            }
            Err(error) => {
                let hint = "create the folder if it does not exist, or use --force";
                return Err(Failure::runtime(error).hint(hint));
            }
        }
    }
    Ok(())
}

#[cfg(windows)]
mod system {
    //! Windows.

    use std::ffi::OsString;
    use std::process::ExitCode;

    use anyhow::Context as _;
    use command_line::Failure;
    use win32::service::{self, NewService, Outcome, ServiceError};

    use super::{NAME, serve_command_line};
    use daemon::launcher::folder;
    use daemon::signals;

    pub(super) fn install(arguments: Vec<OsString>) -> Result<(), Failure> {
        let program = std::env::current_exe()
            .context("cannot determine the path of this program")
            .map_err(Failure::runtime)?;
        let service = NewService {
            name: NAME,
            display_name: "DirectX device plugin for Kubernetes",
            description: "Advertises the DirectX devices of this node to the kubelet.",
            program: &program,
            arguments,
        };
        let refused = service::install(&service)
            .map_err(|error| failure(error, "cannot install the service"))?;
        for (setting, error) in refused {
            tracing::warn!(setting, %error, "Windows refused a setting of the service");
        }
        command_line::print(&format!(
            "installed service {NAME}; start it with `Start-Service {NAME}`\n"
        ))
    }

    pub(super) fn uninstall() -> Result<(), Failure> {
        service::uninstall(NAME).map_err(|error| failure(error, "cannot uninstall the service"))?;
        command_line::print(&format!("uninstalled service {NAME}\n"))?;
        let root = folder::root_of_this_host();
        let removed = folder::remove_all(&root).map_err(|failure| {
            failure.hint("a container uses it; delete it when no pod with a device is running")
        });
        if removed? {
            command_line::print("removed the files of directx-visible\n")?;
        }
        Ok(())
    }

    pub(super) fn run(options: Vec<OsString>) -> Result<(), Failure> {
        let main = move || {
            let ended = command_line::run(move || crate::run(serve_command_line(&options)));
            if ended == ExitCode::SUCCESS { Outcome::Stopped } else { Outcome::Failed }
        };
        service::run(NAME, main, signals::request_service_stop)
            .map_err(|error| failure(error, "cannot run as a service"))
    }

    fn failure(error: ServiceError, what: &'static str) -> Failure {
        let hint = hint(&error).map(str::to_owned);
        Failure::runtime(anyhow::Error::new(error).context(what)).hint_if_any(hint)
    }

    /// What to do about an error, if that is known.
    fn hint(error: &ServiceError) -> Option<&'static str> {
        match error {
            ServiceError::AccessDenied(_) => {
                Some("run this command as administrator, in an elevated PowerShell")
            }
            ServiceError::Exists(_) => {
                Some("to change its options, run `directx-device-plugin service uninstall` first")
            }
            ServiceError::DoesNotExist(_) => {
                Some("install it with `directx-device-plugin service install`")
            }
            ServiceError::BeingRemoved(_) => {
                Some("close programs that show services, such as services.msc, and try again")
            }
            ServiceError::DoesNotStop(..) => {
                Some("end it with `taskkill /f /im directx-device-plugin.exe` and try again")
            }
            ServiceError::NotStartedByManager => Some(
                "use `directx-device-plugin serve` in a console, or start the installed service \
                 with `Start-Service directx-device-plugin`",
            ),
            ServiceError::Other(..) => None,
        }
    }
}

#[cfg(not(windows))]
mod system {
    //! Systems without the Windows service manager.

    use std::ffi::OsString;

    use command_line::Failure;

    pub(super) fn install(_arguments: Vec<OsString>) -> Result<(), Failure> {
        Err(unsupported())
    }

    pub(super) fn uninstall() -> Result<(), Failure> {
        Err(unsupported())
    }

    pub(super) fn run(_options: Vec<OsString>) -> Result<(), Failure> {
        Err(unsupported())
    }

    fn unsupported() -> Failure {
        let os = std::env::consts::OS;
        Failure::usage(anyhow::anyhow!("this host runs {os}; `service` works only on Windows"))
            .hint("run `directx-device-plugin serve` under the service manager of this host")
    }
}

#[cfg(test)]
mod tests {
    use win32::directory_access::writers;

    use super::*;

    #[test]
    fn the_service_gets_the_options_and_a_log_file() {
        let options = ["--driver-model", "wddm"].map(OsString::from);
        let with_default = launch_arguments(&options, Some("x.log".into()));
        assert_eq!(
            with_default,
            ["service", "run", "--", "--driver-model", "wddm", "--log-file", "x.log"]
        );
        assert_eq!(launch_arguments(&[], None), ["service", "run", "--"]);
        let options = &with_default[3..];
        let Some(LogDestination::File(log)) = serve_command_line(options).command.log_destination()
        else {
            panic!("no log file");
        };
        assert_eq!(log, Path::new("x.log"));
    }

    #[test]
    fn a_relative_path_is_rejected_with_the_absolute_one() {
        let absolute = std::path::absolute("plugin.yaml").unwrap();
        assert!(check_paths(&[("--config", &absolute)]).is_ok());
        let paths = [("--config", absolute.as_path()), ("--inventory", Path::new("host.yaml"))];
        let failure = check_paths(&paths).unwrap_err();
        assert_eq!(failure.chain(), "`--inventory host.yaml` is not an absolute path");
        let expected = std::path::absolute("host.yaml").unwrap().display().to_string();
        assert!(failure.hint_text().unwrap().contains(&expected));
    }

    /// What `Users` may write to: nobody else owns it (MS-DTYP 2.4.2 to 2.4.5).
    fn of_users() -> Entry {
        let system = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        let mut acl = vec![2, 0, 32, 0, 1, 0, 0, 0];
        // The right to delete it, and to create files.
        acl.extend([0, 0, 24, 0, 2, 0, 1, 0, 1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0]);
        acl.extend([0x21, 2, 0, 0]);
        Entry { writers: writers(&system, Some(&acl), false).unwrap(), target: None }
    }

    #[test]
    fn what_others_may_change_is_rejected_with_its_fix() {
        let files = [PathBuf::from("/k/bin/plugin.exe"), PathBuf::from("/logs/new.log")];
        let check = |writable: &'static str| {
            check_writers(&files, |path| match path.to_str() {
                Some("/logs/new.log") => Err(io::ErrorKind::NotFound.into()),
                Some(path) if path == writable => Ok(of_users()),
                _ => Ok(Entry::default()),
            })
        };
        assert!(check("").is_ok());
        for (file, path, fix) in [
            (&files[0], "/k/bin/plugin.exe", "/inheritance:r /grant:r \"*S-1-5-18:F\""),
            (&files[0], "/k/bin", "/inheritance:r /grant:r \"*S-1-5-18:(OI)(CI)F\""),
            (&files[0], "/k", "move the file to a folder that only administrators may change"),
            (&files[1], "/logs", "/inheritance:r /grant:r \"*S-1-5-18:(OI)(CI)F\""),
        ] {
            let failure = check(path).unwrap_err();
            let file = file.display();
            let users = format!("Users (S-1-5-32-545) may change `{path}`");
            let what = format!("`{file}` would let others act as SYSTEM: {users}");
            assert_eq!(failure.chain(), what);
            let hint = failure.hint_text().unwrap();
            assert!(hint.contains(fix) && hint.ends_with(", or use --force"), "{hint}");
        }
    }

    /// Who may change the link or its target decides what the service runs.
    #[test]
    fn a_link_and_its_target_are_checked() {
        let check = |writable: &'static str| {
            check_writers(&["/k/bin/plugin.exe".into()], |path| {
                let writable = path == Path::new(writable);
                let entry = if writable { of_users() } else { Entry::default() };
                let target = (path == Path::new("/k/bin")).then(|| "/data/tools".into());
                Ok(Entry { target, ..entry })
            })
        };
        assert!(check("").is_ok());
        for path in ["/k/bin", "/data/tools", "/data"] {
            let text = check(path).unwrap_err().chain();
            assert!(text.ends_with(&format!("may change `{path}`")), "{text}");
        }
    }

    /// Whoever creates the folder owns the log.
    #[test]
    fn what_is_not_known_is_rejected() {
        for (kind, path) in
            [(io::ErrorKind::PermissionDenied, "/logs/new.log"), (io::ErrorKind::NotFound, "/logs")]
        {
            let failure = check_writers(&["/logs/new.log".into()], |at| {
                if at == Path::new(path) { Err(kind.into()) } else { Ok(Entry::default()) }
            });
            let text = failure.unwrap_err().chain();
            assert!(
                text.starts_with(&format!("cannot find out who may change `{path}`")),
                "{text}"
            );
        }
    }

    #[test]
    fn the_default_log_file_is_absolute_on_windows() {
        let path = default_log_file();
        assert!(path.ends_with("Logs/directx-device-plugin.log"), "{}", path.display());
        assert!(path.is_absolute() || !cfg!(windows), "{}", path.display());
    }
}
