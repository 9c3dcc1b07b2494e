//! Asks the device plugin on this node which containers use a driver that was replaced.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use daemon::status_notes::{OutdatedContainer, StatusNotes};
use device_plugin::UnixSockets;
use device_plugin::status::{StatusError, StatusReport, find_sockets, query_all};
use devices::DriverModel;
use tokio::time::sleep;

/// How often to ask. A driver may change without a change that this program sees.
const INTERVAL: Duration = Duration::from_secs(10);

/// What the plugin reports, or why it does not.
type Outdated = Result<BTreeSet<OutdatedContainer>, String>;

/// The device plugin on this node.
pub(crate) struct PluginStatus {
    directory: PathBuf,
    is_failing: bool,
    /// What it reported the last time.
    outdated: BTreeSet<OutdatedContainer>,
}

impl PluginStatus {
    /// The plugin with its sockets in `directory`.
    pub(crate) fn new(directory: PathBuf) -> PluginStatus {
        PluginStatus { directory, is_failing: false, outdated: BTreeSet::new() }
    }

    /// The next containers that the plugin did not report before.
    pub(crate) async fn next(&mut self) -> Vec<OutdatedContainer> {
        loop {
            sleep(INTERVAL).await;
            let answer = self.ask().await;
            let new = self.new_containers(answer);
            if !new.is_empty() {
                return new;
            }
        }
    }

    /// The containers that are not in the answer before.
    fn new_containers(&mut self, answer: Outdated) -> Vec<OutdatedContainer> {
        let was_failing = std::mem::replace(&mut self.is_failing, answer.is_err());
        match answer {
            Ok(containers) => {
                let before = std::mem::replace(&mut self.outdated, containers);
                return self.outdated.difference(&before).cloned().collect();
            }
            Err(error) if !was_failing => tracing::info!(
                directory = %self.directory.display(),
                error,
                hint = "if the plugin runs with --device-plugin-dir, this program needs the same option",
                "the device plugin does not report which pods use a driver that was replaced"
            ),
            Err(_) => {}
        }
        Vec::new()
    }

    /// Takes less than two seconds.
    async fn ask(&self) -> Outdated {
        let models = [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy];
        let sockets = find_sockets(&self.directory, &models.map(DriverModel::socket_prefix))
            .map_err(|error| error.to_string())?;
        merged(query_all(&UnixSockets, &sockets).await)
    }
}

/// What all plugins on the node report, or why none does. During an update there are two for a
/// moment.
fn merged(answers: Vec<Result<StatusReport, StatusError>>) -> Outdated {
    let (mut known, mut reason) = (None::<BTreeSet<_>>, "no plugin runs".to_owned());
    for answer in answers {
        match answer {
            Ok(report) => match StatusNotes::of(&report.notes).outdated {
                Some(outdated) => known.get_or_insert_default().extend(outdated),
                None => "the plugin does not know them yet".clone_into(&mut reason),
            },
            // What is left of a plugin that was killed.
            Err(StatusError::Absent(_)) => {}
            Err(error) => reason = command_line::error_chain(&error),
        }
    }
    known.ok_or(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_queue::tests::container;
    use daemon::logging::test_log::Log;

    fn report(is_known: bool, pods: &[&str]) -> StatusReport {
        let outdated = pods.iter().map(|pod| container(pod, "main")).collect();
        let notes = StatusNotes { outdated: is_known.then_some(outdated), ..Default::default() };
        StatusReport { notes: notes.notes(), ..StatusReport::default() }
    }

    fn gone() -> Result<StatusReport, StatusError> {
        Err(StatusError::Absent(std::io::ErrorKind::ConnectionRefused.into()))
    }

    #[test]
    fn the_plugins_on_a_node_know_together_what_one_of_them_knows() {
        let known = merged(vec![
            Ok(report(true, &["a"])),
            gone(),
            Ok(report(false, &[])),
            Ok(report(true, &["a", "b"])),
        ]);
        let pods: Vec<String> = known.unwrap().into_iter().map(|container| container.pod).collect();
        assert_eq!(pods, ["a", "b"]);
        assert_eq!(merged(vec![Ok(report(true, &[]))]), Ok(BTreeSet::new()));
        for (answers, reason) in [
            (vec![], "no plugin runs"),
            (vec![gone()], "no plugin runs"),
            (vec![Ok(report(false, &[]))], "the plugin does not know them yet"),
            (vec![Err(StatusError::Busy), gone()], "did not answer within"),
        ] {
            let error = merged(answers).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_container_is_reported_once_while_it_runs() {
        let mut plugin = PluginStatus::new(PathBuf::new());
        let [a, b] = ["a", "b"].map(|pod| container(pod, "main"));
        for (now, new) in [
            (vec![&a], vec![&a]),
            (vec![&a], vec![]),
            (vec![&a, &b], vec![&b]),
            (vec![&b], vec![]),
            (vec![&a, &b], vec![&a]),
        ] {
            let containers = now.into_iter().cloned().collect();
            assert_eq!(plugin.new_containers(Ok(containers)).iter().collect::<Vec<_>>(), new);
        }
        assert_eq!(plugin.new_containers(Err("no plugin runs".to_owned())), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_does_not_run_is_reported_once_and_asked_again() {
        let log = Log::start();
        let folder = tempfile::tempdir().unwrap();
        let mut plugin = PluginStatus::new(folder.path().join("plugins"));
        let hour = Duration::from_hours(1);
        assert!(tokio::time::timeout(hour, plugin.next()).await.is_err(), "it does not run");
        let text = log.text();
        assert_eq!(text.matches("the device plugin does not report").count(), 1, "{text}");
    }
}
