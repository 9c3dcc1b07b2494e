//! Provides `directx-visible` to containers if the configuration enables it.
//!
//! If it cannot be provided, the log and the status give the reason. Devices are still allocated,
//! unless the configuration requires it.

#[cfg(any(windows, test))]
pub mod folder;

use std::path::Path;
use std::time::Duration;

use command_line::error_chain;
use devices::{Catalog, LAUNCHER_FILES};
use host::LauncherFiles;
use tokio::time::Instant;

use crate::LauncherError;

/// Writes the files on this host and returns their folder, or says why it cannot.
pub(crate) type ProvideLauncher = Box<dyn Fn() -> Result<String, LauncherError> + Send + Sync>;

/// How often the files are looked for, and when to try again to provide files that could not be
/// provided. Until then, containers that start do not get them.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

/// The files of this node.
pub(crate) struct NodeLauncher {
    /// `None`: no kubelet gets the paths, so the files count as provided.
    provide: Option<ProvideLauncher>,
    /// The folder that was provided.
    folder: Option<String>,
    /// Why the files cannot be provided.
    pub(crate) problem: Option<String>,
    /// When to look for the files, if a resource has them.
    pub(crate) check_at: Option<Instant>,
}

impl NodeLauncher {
    /// The files that `provide` writes.
    pub(crate) fn new(provide: ProvideLauncher) -> NodeLauncher {
        NodeLauncher { provide: Some(provide), ..NodeLauncher::simulated() }
    }

    /// Files that exist only in predictions.
    pub(crate) fn simulated() -> NodeLauncher {
        NodeLauncher { provide: None, folder: None, problem: None, check_at: None }
    }

    /// Whether something is wrong with the files, so that they should be provided again. Otherwise
    /// they are looked for again later.
    pub(crate) fn needs_update(&mut self) -> bool {
        self.check_at = Some(Instant::now() + INTERVAL);
        self.problem.is_some() || self.were_removed()
    }

    /// Provides the files if a resource of `catalog` has them. Files that were damaged or removed
    /// are written again. Those that were removed count as provided only if they still exist at
    /// the next check: an antivirus program may remove them again.
    pub(crate) fn update(&mut self, catalog: &Catalog) -> LauncherFiles {
        let Some(provide) = &self.provide else { return LauncherFiles::Simulated };
        if !catalog.mounts_launcher() {
            self.folder = None;
            self.problem = None;
            self.check_at = None;
            return LauncherFiles::NotProvided;
        }
        let were_removed = self.were_removed();
        let mut provided = provide();
        self.folder = provided.as_ref().ok().cloned();
        if were_removed {
            provided = provided.and_then(|folder| Err(LauncherError::Removed(folder)));
        }
        let problem = provided.as_ref().err().map(|error| {
            let hint = error.hint();
            format!("directx-visible is not mounted: {}; hint: {hint}", error_chain(error))
        });
        if problem != self.problem {
            if let Some(problem) = &problem {
                tracing::warn!(problem, "cannot provide directx-visible");
            } else {
                tracing::info!("directx-visible is provided again");
            }
        }
        self.check_at = Some(Instant::now() + INTERVAL);
        self.problem = problem;
        provided.map_or(LauncherFiles::NotProvided, LauncherFiles::Folder)
    }

    /// Whether a needed file that was provided no longer exists.
    fn were_removed(&self) -> bool {
        let exists = |folder: &str, name: &str| Path::new(&format!("{folder}\\{name}")).is_file();
        let folder = self.folder.as_deref();
        folder.is_some_and(|folder| !LAUNCHER_FILES[..2].iter().all(|name| exists(folder, name)))
    }

    /// The files of this machine, whose containers get their paths, also if its devices are those
    /// of an inventory.
    #[cfg(windows)]
    pub(crate) fn of_this_machine() -> NodeLauncher {
        use crate::launcher::folder::{LauncherFolder, Rights, root_of_this_host, system32};

        let rights = Rights {
            create_folder: win32::directory_access::create_program_folder,
            create_file: win32::directory_access::create_program_file,
            check: |path| match win32::directory_access::other_writers(path)?.first() {
                None => Ok(()),
                Some(writer) => Err(std::io::Error::other(writer.to_string())),
            },
        };
        let root = root_of_this_host();
        let sources = command_line::launcher_sources();
        let folder = LauncherFolder { root, sources, rights };
        NodeLauncher::new(Box::new(move || {
            check_system32(&system32())?;
            folder.provide()
        }))
    }

    /// Only Windows has any.
    #[cfg(not(windows))]
    pub(crate) fn of_this_machine() -> NodeLauncher {
        NodeLauncher::new(Box::new(|| Err(LauncherError::NotWindows)))
    }
}

/// Checks that System32 of the host has none of the needed files: then that of a container may have
/// it, too, and no allocation mounts over it.
#[cfg(any(windows, test))]
fn check_system32(system32: &Path) -> Result<(), LauncherError> {
    let paths = LAUNCHER_FILES[..2].iter().map(|name| system32.join(name));
    match paths.into_iter().find(|path| path.is_file()) {
        Some(path) => Err(LauncherError::OnHost(path)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use process::logging::test_log::Log;

    fn catalog(config: &str) -> Catalog {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let flags = config::Flags { config: Some(file), ..Default::default() };
        let config = command_line::configuration::load(&flags).unwrap();
        Catalog::new(config.policy)
    }

    #[test]
    fn the_files_are_provided_only_where_they_are_configured_and_a_problem_is_logged_once() {
        let calls = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&calls);
        // The second and third call fail.
        let provide = move || match count.fetch_add(1, Ordering::Relaxed) {
            1 | 2 => Err(LauncherError::Missing("no space".to_owned())),
            _ => Ok("folder".to_owned()),
        };
        let mut launcher = NodeLauncher::new(Box::new(provide));
        let log = Log::start();
        let update = |launcher: &mut NodeLauncher, catalog: &Catalog| launcher.update(catalog);
        let missing = LauncherFiles::NotProvided;
        assert_eq!(update(&mut launcher, &catalog("")), missing);
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let on = catalog("visibility: launcher");
        let folder = LauncherFiles::Folder("folder".to_owned());
        assert_eq!(update(&mut launcher, &on), folder);
        assert_eq!(launcher.problem.clone(), None);
        assert_eq!(update(&mut launcher, &on), missing);
        assert_eq!(update(&mut launcher, &on), missing);
        let notice = launcher.problem.clone().unwrap();
        let problem = "directx-visible is not mounted: no space; hint: set visibility.enabled";
        assert!(notice.starts_with(problem), "{notice}");
        assert_eq!(update(&mut launcher, &on), folder);
        assert_eq!((launcher.problem.clone(), calls.load(Ordering::Relaxed)), (None, 4));
        let text = log.text();
        assert_eq!(text.matches("cannot provide directx-visible").count(), 1, "{text}");
        assert_eq!(text.matches("provided again").count(), 1, "{text}");
    }

    /// A folder with the files, and the files of this node in it, which are written again if they are
    /// missing.
    fn provided_in(folder: &Path) -> NodeLauncher {
        let folder = folder.join("content").display().to_string();
        if cfg!(windows) {
            std::fs::create_dir(&folder).unwrap();
        }
        NodeLauncher::new(Box::new(move || {
            for name in LAUNCHER_FILES {
                std::fs::write(format!("{folder}\\{name}"), "").unwrap();
            }
            Ok(folder.clone())
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_were_removed_count_only_when_they_still_exist_at_the_next_check() {
        let files = tempfile::tempdir().unwrap();
        let mut launcher = provided_in(files.path());
        let catalog = catalog("visibility: required");
        let update = |launcher: &mut NodeLauncher| launcher.update(&catalog);
        let LauncherFiles::Folder(folder) = update(&mut launcher) else { panic!("not provided") };
        assert!(launcher.check_at.is_some() && !launcher.needs_update());
        let program = format!("{folder}\\{}", LAUNCHER_FILES[0]);
        for _ in 0..2 {
            std::fs::remove_file(&program).unwrap();
            assert!(launcher.needs_update());
            assert_eq!(update(&mut launcher), LauncherFiles::NotProvided);
            let problem = launcher.problem.clone().unwrap();
            let removed =
                format!("its files were removed from {folder}; hint: look for an antivirus");
            assert!(problem.contains(&removed), "{problem}");
        }
        assert!(launcher.needs_update());
        assert_eq!(update(&mut launcher), LauncherFiles::Folder(folder));
        assert!(launcher.problem.is_none() && !launcher.needs_update());
    }

    #[test]
    fn files_of_a_prediction_are_simulated() {
        let mut launcher = NodeLauncher::simulated();
        for config in ["", "visibility: required"] {
            let files = launcher.update(&catalog(config));
            assert_eq!((files, launcher.check_at), (LauncherFiles::Simulated, None));
        }
    }

    #[cfg(not(windows))]
    #[test]
    fn only_windows_has_the_files() {
        let mut launcher = NodeLauncher::of_this_machine();
        let files = launcher.update(&catalog("visibility: launcher"));
        assert_eq!(files, LauncherFiles::NotProvided);
        let problem = launcher.problem.unwrap();
        assert!(problem.contains("this machine does not run Windows; hint: "), "{problem}");
    }

    #[test]
    fn a_file_in_system32_of_the_host_is_a_problem() {
        let system32 = tempfile::tempdir().unwrap();
        check_system32(system32.path()).unwrap();
        let file = system32.path().join(LAUNCHER_FILES[2]);
        std::fs::write(file, "").unwrap();
        check_system32(system32.path()).unwrap();
        let file = system32.path().join(LAUNCHER_FILES[1]);
        std::fs::write(&file, "").unwrap();
        let error = check_system32(system32.path()).unwrap_err().to_string();
        assert_eq!(error, format!("{} exists on the host", file.display()));
    }
}
