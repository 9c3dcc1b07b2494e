//! Asks the device plugin on this node which containers use a driver that was replaced.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use devices::DriverModel;
use kubelet::status::{StatusError, StatusReport, find_sockets, query_all};
use kubelet::{OutdatedContainer, UnixSockets};
use tokio::time::{Instant, sleep_until};

/// How often to ask. A driver may change without a change that this program sees.
const INTERVAL: Duration = Duration::from_secs(10);

/// What the plugin reports; `None` if it does not know.
type Outdated = Option<BTreeSet<OutdatedContainer>>;

/// The device plugin on this node.
pub(crate) struct PluginStatus {
    directory: PathBuf,
    /// The last answer; `None` before the first.
    last: Option<Outdated>,
    due: Instant,
}

impl PluginStatus {
    /// The plugin with its sockets in `directory`.
    pub(crate) fn new(directory: PathBuf) -> PluginStatus {
        PluginStatus { directory, last: None, due: Instant::now() + INTERVAL }
    }

    /// The containers, once they differ from those that were returned the last time. Nothing is lost
    /// if this is dropped before it completes.
    pub(crate) async fn next(&mut self) -> Outdated {
        loop {
            sleep_until(self.due).await;
            let (answer, error) = self.ask().await;
            self.due = Instant::now() + INTERVAL;
            let before = self.last.replace(answer.clone());
            if before.as_ref() != Some(&answer) {
                self.log(before.as_ref(), answer.is_some(), &error);
                return answer;
            }
        }
    }

    /// Takes less than two seconds.
    async fn ask(&self) -> (Outdated, String) {
        let models = [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy];
        match find_sockets(&self.directory, &models.map(DriverModel::socket_prefix)) {
            Ok(sockets) => merged(query_all(&UnixSockets, &sockets).await),
            Err(error) => (None, error.to_string()),
        }
    }

    /// Logs that the plugin began or ceased to answer.
    fn log(&self, before: Option<&Outdated>, answers: bool, error: &str) {
        let directory = self.directory.display();
        if !answers {
            tracing::info!(
                %directory,
                error,
                hint = "if the plugin runs with --device-plugin-dir, this program needs the same option",
                "the device plugin does not report which pods use a driver that was replaced"
            );
        } else if before == Some(&None) {
            tracing::info!(
                %directory,
                "the device plugin reports which pods use a driver that was replaced"
            );
        }
    }
}

/// What all plugins on the node report, or why none does. During an update there are two for a
/// moment.
fn merged(answers: Vec<Result<StatusReport, StatusError>>) -> (Outdated, String) {
    let mut known: Outdated = None;
    let mut reason = "no plugin runs".to_owned();
    for answer in answers {
        match answer {
            Ok(report) if report.outdated_known => {
                known.get_or_insert_default().extend(report.outdated);
            }
            Ok(_) => "the plugin does not know them yet".clone_into(&mut reason),
            // What is left of a plugin that was killed.
            Err(StatusError::Absent(_)) => {}
            Err(error) => reason = node::cli::error_chain(&error),
        }
    }
    (known, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_queue::tests::container;
    use node::daemon::test_log::Log;

    fn report(outdated_known: bool, pods: &[&str]) -> StatusReport {
        let outdated = pods.iter().map(|pod| container(pod, "main")).collect();
        StatusReport { outdated, outdated_known, ..StatusReport::default() }
    }

    fn gone() -> Result<StatusReport, StatusError> {
        Err(StatusError::Absent(std::io::ErrorKind::ConnectionRefused.into()))
    }

    #[test]
    fn the_plugins_on_a_node_know_together_what_one_of_them_knows() {
        let (known, _) = merged(vec![
            Ok(report(true, &["a"])),
            gone(),
            Ok(report(false, &[])),
            Ok(report(true, &["a", "b"])),
        ]);
        let pods: Vec<String> = known.unwrap().into_iter().map(|container| container.pod).collect();
        assert_eq!(pods, ["a", "b"]);
        assert_eq!(merged(vec![Ok(report(true, &[]))]).0, Some(BTreeSet::new()));
        for (answers, reason) in [
            (vec![], "no plugin runs"),
            (vec![gone()], "no plugin runs"),
            (vec![Ok(report(false, &[]))], "the plugin does not know them yet"),
            (vec![Err(StatusError::Busy), gone()], "did not answer within"),
        ] {
            let (known, error) = merged(answers);
            assert!(known.is_none() && error.contains(reason), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_does_not_run_is_reported_once_and_asked_again() {
        let log = Log::start();
        let folder = tempfile::tempdir().unwrap();
        let mut plugin = PluginStatus::new(folder.path().join("plugins"));
        assert_eq!(plugin.next().await, None);
        let hour = Duration::from_hours(1);
        assert!(tokio::time::timeout(hour, plugin.next()).await.is_err(), "nothing has changed");
        assert!(plugin.due <= Instant::now() + INTERVAL);
        let text = log.text();
        assert_eq!(text.matches("the device plugin does not report").count(), 1, "{text}");
        assert!(!text.contains("the device plugin reports"), "{text}");
        plugin.log(Some(&None), true, "");
        assert!(log.text().contains("the device plugin reports"), "{}", log.text());
    }
}
