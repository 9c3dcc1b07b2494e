//! Provides `directx-visible` to containers if the configuration enables it.
//!
//! If it cannot be provided, the log and the status give the reason, and devices are still
//! allocated.

#[cfg(any(windows, test))]
pub mod folder;

use std::time::Duration;

use command_line::error_chain;
use devices::Catalog;
use tokio::time::Instant;

use crate::LauncherError;
use crate::host::HostKind;

/// Writes the files on this host and returns their folder, or says why it cannot.
pub(crate) type ProvideLauncher = Box<dyn Fn() -> Result<String, LauncherError> + Send + Sync>;

/// When to try again to provide files that could not be provided. Until then, containers that start
/// do not get them.
pub(crate) const RETRY: Duration = Duration::from_secs(10);

/// The files of this node.
pub(crate) struct NodeLauncher {
    /// `None`: the host is an inventory, which has all files, or runs Linux, which has none.
    provide: Option<ProvideLauncher>,
    /// Why the files cannot be provided.
    pub(crate) problem: Option<String>,
    /// When to try again to provide files that could not be provided.
    pub(crate) retry_at: Option<Instant>,
}

impl NodeLauncher {
    /// The files that `provide` writes.
    pub(crate) fn new(provide: Option<ProvideLauncher>) -> NodeLauncher {
        NodeLauncher { provide, problem: None, retry_at: None }
    }

    /// The files of a host of this kind.
    pub(crate) fn of(kind: HostKind) -> NodeLauncher {
        match kind {
            HostKind::Live => of_this_host(),
            HostKind::Inventory => NodeLauncher::new(None),
        }
    }

    /// Provides the files if a resource of `catalog` has them, and returns their folder. Files that
    /// were damaged or removed are written again.
    pub(crate) fn update(&mut self, catalog: &Catalog) -> Option<String> {
        let Some(provide) = self.provide.as_ref().filter(|_| catalog.mounts_launcher()) else {
            (self.problem, self.retry_at) = (None, None);
            return None;
        };
        let provided = provide().map_err(|error| {
            let hint = error.hint();
            format!("directx-visible is not mounted: {}; hint: {hint}", error_chain(&error))
        });
        let problem = provided.as_ref().err().cloned();
        if problem != self.problem {
            if let Some(problem) = &problem {
                tracing::warn!(problem, "cannot provide directx-visible");
            } else {
                tracing::info!("directx-visible is provided again");
            }
        }
        self.retry_at = problem.is_some().then(|| Instant::now() + RETRY);
        self.problem = problem;
        provided.ok()
    }
}

/// The files of this host.
#[cfg(windows)]
fn of_this_host() -> NodeLauncher {
    use crate::launcher::folder::{LauncherFolder, Rights, root_of_this_host};

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
    NodeLauncher::new(Some(Box::new(move || folder.provide())))
}

/// Only Windows has any.
#[cfg(not(windows))]
fn of_this_host() -> NodeLauncher {
    NodeLauncher::new(None)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::logging::test_log::Log;

    fn catalog(config: &str) -> Catalog {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let flags = config::Flags { config: Some(file), ..Default::default() };
        let config = crate::configuration::load(&flags).unwrap();
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
        let mut launcher = NodeLauncher::new(Some(Box::new(provide)));
        let log = Log::start();
        assert_eq!(launcher.update(&catalog("")), None);
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let on = catalog("visibility: launcher");
        let folder = Some("folder".to_owned());
        assert_eq!(launcher.update(&on), folder);
        assert_eq!(launcher.problem.clone(), None);
        assert_eq!(launcher.update(&on), None);
        assert_eq!(launcher.update(&on), None);
        let notice = launcher.problem.clone().unwrap();
        let problem = "directx-visible is not mounted: no space; hint: set visibility.enabled";
        assert!(notice.starts_with(problem), "{notice}");
        assert_eq!(launcher.update(&on), folder);
        assert_eq!((launcher.problem.clone(), calls.load(Ordering::Relaxed)), (None, 4));
        let text = log.text();
        assert_eq!(text.matches("cannot provide directx-visible").count(), 1, "{text}");
        assert_eq!(text.matches("provided again").count(), 1, "{text}");
    }
}
