//! Provides `directx-visible` to containers if the configuration enables it.
//!
//! If it cannot be provided, the log and the status give the reason, and devices are still allocated.

#[cfg(any(windows, test))]
use std::sync::Arc;
#[cfg(any(windows, test))]
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use devices::Catalog;
use node::cli::Failure;

/// When to try again to provide files that could not be provided. Until then, containers that start
/// do not get them.
pub(crate) const RETRY: Duration = Duration::from_secs(10);

/// Writes the files on this host, or says why it cannot.
pub(crate) type ProvideLauncher = Box<dyn FnMut() -> Result<(), Failure> + Send>;

/// The files of this node.
#[derive(Default)]
pub(crate) struct NodeLauncher {
    /// `None`: the host is an inventory, which has all files.
    provide: Option<ProvideLauncher>,
    /// Why the files cannot be provided.
    problem: Option<String>,
}

impl NodeLauncher {
    /// The files that `provide` writes.
    #[cfg(any(windows, test))]
    pub(crate) fn new(provide: ProvideLauncher) -> NodeLauncher {
        NodeLauncher { provide: Some(provide), problem: None }
    }

    /// Provides the files if a resource of `catalog` has them. Files that were damaged or removed
    /// are written again.
    pub(crate) fn update(&mut self, catalog: &Catalog) {
        let Some(provide) = self.provide.as_mut().filter(|_| catalog.mounts_launcher()) else {
            self.problem = None;
            return;
        };
        let problem = provide().err().map(|failure| {
            let (error, hint) = (failure.chain(), failure.hint_text().unwrap_or_default());
            format!("directx-visible is not mounted: {error}; hint: {hint}")
        });
        if problem != self.problem {
            if let Some(problem) = &problem {
                tracing::warn!(problem, "cannot provide directx-visible");
            } else {
                tracing::info!("directx-visible is provided again");
            }
        }
        self.problem = problem;
    }

    /// Why containers do not get the files, for the status.
    pub(crate) fn notice(&self) -> Option<String> {
        self.problem.clone()
    }
}

/// The files of this host.
#[cfg(windows)]
pub(crate) fn of_this_host(catalog: &Catalog) -> NodeLauncher {
    use crate::launcher_folder::{LauncherFolder, Rights, folder_of_this_host};

    let rights = Rights {
        share: uds::access_rights::share_programs,
        is_protected: |path| Ok(win32::directory_access::directory_writers(path)?.is_empty()),
    };
    let folder = LauncherFolder::new(folder_of_this_host(), node::cli::launcher_sources(), rights);
    let mut launcher = NodeLauncher::new(within(WRITE_LIMIT, Arc::new(move || folder.provide())));
    launcher.update(catalog);
    launcher
}

/// How long the plugin waits for the files. Writing them takes
/// milliseconds, unless something holds a file.
#[cfg(windows)]
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// Runs `provide` on a separate thread, because it may hang. A run that takes longer is a failure
/// until it ends, and no other is started.
#[cfg(any(windows, test))]
fn within(
    limit: Duration,
    provide: Arc<dyn Fn() -> Result<(), Failure> + Send + Sync>,
) -> ProvideLauncher {
    let mut running = None;
    Box::new(move || {
        // Only the first call waits.
        let wait = if running.is_some() { Duration::ZERO } else { limit };
        let answer = running.take().unwrap_or_else(|| {
            let (send, answer) = mpsc::channel();
            let provide = Arc::clone(&provide);
            let run = move || {
                // Without a receiver, the process is ending.
                let _ = send.send(provide());
            };
            // Without a thread, the receiver reports that nobody sends.
            let _ = std::thread::Builder::new().name("launcher files".to_owned()).spawn(run);
            answer
        });
        match answer.recv_timeout(wait) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::runtime(anyhow::anyhow!("the thread that writes the files failed")))
            }
            Err(RecvTimeoutError::Timeout) => {
                running = Some(answer);
                let error = anyhow::anyhow!("the files are not written after {limit:?}");
                Err(Failure::runtime(error).hint("look for an antivirus program that locks them"))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use node::daemon::test_log::Log;

    use super::*;

    fn catalog(config: &str) -> Catalog {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let config = node::daemon::config_source::load(&[], Some(file)).unwrap();
        Catalog::new(config.policy)
    }

    #[test]
    fn the_files_are_provided_only_where_they_are_configured_and_a_problem_is_logged_once() {
        let calls = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&calls);
        // The second and third call fail.
        let mut launcher =
            NodeLauncher::new(Box::new(move || match count.fetch_add(1, Ordering::Relaxed) {
                1 | 2 => Err(Failure::runtime(anyhow::anyhow!("no space")).hint("make room")),
                _ => Ok(()),
            }));
        let log = Log::start();
        launcher.update(&catalog(""));
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let on = catalog("visibility: launcher");
        launcher.update(&on);
        assert_eq!(launcher.notice(), None);
        launcher.update(&on);
        launcher.update(&on);
        let notice = launcher.notice().unwrap();
        assert_eq!(notice, "directx-visible is not mounted: no space; hint: make room");
        launcher.update(&on);
        assert_eq!((launcher.notice(), calls.load(Ordering::Relaxed)), (None, 4));
        let text = log.text();
        assert_eq!(text.matches("cannot provide directx-visible").count(), 1, "{text}");
        assert_eq!(text.matches("provided again").count(), 1, "{text}");
    }

    #[test]
    fn a_write_that_hangs_is_a_problem_until_it_ends_and_is_not_repeated() {
        let (release, released) = mpsc::channel::<()>();
        let (released, runs) = (std::sync::Mutex::new(released), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&runs);
        let mut provide = within(
            Duration::from_millis(20),
            Arc::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
                released.lock().unwrap().recv().unwrap();
                Ok(())
            }),
        );
        for _ in 0..2 {
            let failure = provide().unwrap_err();
            assert!(failure.chain().contains("not written after 20ms"), "{}", failure.chain());
        }
        release.send(()).unwrap();
        let started = std::time::Instant::now();
        while provide().is_err() {
            assert!(started.elapsed() < Duration::from_secs(120));
        }
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        // The second run panics, because nobody releases it any more.
        drop(release);
        let started = std::time::Instant::now();
        while !provide().unwrap_err().chain().contains("the thread that writes the files failed") {
            assert!(started.elapsed() < Duration::from_secs(120));
        }
    }
}
