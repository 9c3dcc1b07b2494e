//! Installs the service, after the checks that a service with other options could not report.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use command_line::Failure;
use process::logging::LogDestination;
use win32::directory_access::{Entry, distrust_of, entry};

use crate::serve::ServeArguments;
use crate::service::{StoredOptions, manager};

pub(super) fn run(options: &StoredOptions, force: bool) -> Result<(), Failure> {
    let ServeArguments { models, daemon } = options.parse()?.serve;
    check_paths(&daemon.paths())?;
    let log_file = match daemon.log_destination() {
        LogDestination::File(_) => None,
        LogDestination::Stderr | LogDestination::QueuedStderr => Some(default_log_file()),
    };
    if !force {
        let mut used: Vec<PathBuf> = std::env::current_exe().into_iter().collect();
        for (option, path) in daemon.paths() {
            // `doctor` reports who may write to the kubelet's directory, and containerd chooses who may
            // write to its own.
            if !["--device-plugin-dir", "--containerd-state"].contains(&option) {
                used.push(std::path::absolute(path).map_err(Failure::usage)?);
            }
        }
        used.extend(log_file.clone());
        check_writers(&used, entry)?;
    }
    daemon.prepare(models.driver_models)?;
    manager::install(options.launch_arguments(log_file))
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
    let hint =
        format!("services start in another directory; use `{option} {}`", absolute.display());
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

#[cfg(test)]
mod tests {
    use win32::directory_access::writers;

    use super::*;

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
