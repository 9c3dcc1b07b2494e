//! What the daemons of a node report about themselves, as JSON and as text.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use device_plugin::status::{ANSWER_LIMIT, Phase, ResourceStatus, StatusReport};
use host::printable::printable;
use serde::Serialize;

use crate::answering_daemons::{Answers, best_of};
use crate::registration::state;

/// The UID of the pod of this process, or nothing. It is how a probe finds the daemon of its own
/// pod: `HostProcess` containers share files and network with all pods of the node, so nothing else
/// distinguishes their daemons.
#[must_use]
pub fn pod_uid() -> String {
    std::env::var("POD_UID").unwrap_or_default()
}

/// The JSON document: what the daemons answered.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether a daemon answered, and the kubelet received the lists of all its resources, with all
    /// devices of those that wait for another daemon.
    pub ready: bool,
    /// Whether a daemon answered, ready or not.
    pub live: bool,
    /// One view of each resource. If several daemons have the same resource, the best state counts,
    /// since the old daemon of a rolling update still runs when the new one is ready.
    resources: Vec<View>,
    /// The paths of the sockets that a daemon listens on without answering in time.
    busy_sockets: Vec<String>,
    /// The paths of the sockets of daemons that wait until another daemon has ended, one for each.
    waiting_sockets: Vec<String>,
    /// The devices that no daemon lists, because their daemon waits for one that serves the same
    /// resource without them. Only if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unlisted_devices: Vec<String>,
    /// The daemons whose report cannot be read, because they have another version. Only if there
    /// are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_versions: Vec<String>,
    /// Why the newest configuration is not active; the previous one is. Only if one was rejected.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    rejected_configurations: BTreeSet<String>,
    /// What an administrator should know. Only if there is something.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    notices: BTreeSet<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    /// The name of the resource.
    name: String,
    /// Whether the kubelet received its device list.
    ready: bool,
    /// What the daemon waits for or has reached, in words.
    state: &'static str,
    /// How long it has waited for the kubelet or another daemon, in milliseconds; 0 if it does not
    /// wait.
    waiting_ms: u64,
    /// The last error while it waits, or the daemon that it waits for; empty if there was none.
    last_error: String,
    /// Why the devices are not known yet. Only while they are not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pending: String,
}

impl View {
    fn of(resource: &ResourceStatus) -> View {
        View {
            name: resource.name.clone(),
            ready: resource.is_ready(),
            state: state(resource),
            waiting_ms: resource.waiting_ms,
            last_error: resource.last_error.clone(),
            pending: resource.pending.clone(),
        }
    }
}

impl Report {
    /// The report of the daemons that listen; only of the one in the pod with the UID `pod` if that
    /// is not empty.
    #[must_use]
    pub fn of(answers: Answers, pod: &str) -> Report {
        let mut unlisted = answers.unlisted_devices();
        let Answers { mut daemons, busy } = answers;
        if !pod.is_empty() {
            daemons.retain(|daemon| daemon.report.as_ref().is_ok_and(|r| r.pod_uid == pod));
        }
        unlisted.retain(|devices| daemons.iter().any(|daemon| daemon.socket == devices.socket));
        let mut report = Report {
            live: !daemons.is_empty(),
            unlisted_devices: unlisted.iter().map(ToString::to_string).collect(),
            busy_sockets: busy.iter().map(|socket| socket.display().to_string()).collect(),
            ..Report::default()
        };
        for daemon in &daemons {
            let socket = daemon.socket.display();
            if daemon.resources.iter().any(|r| r.phase() == Phase::WaitingForOtherDaemon) {
                report.waiting_sockets.push(socket.to_string());
            }
            match &daemon.report {
                Ok(plugin) => {
                    report.rejected_configurations.extend(plugin.rejected_configuration.clone());
                    report.notices.extend(plugin.notices.iter().cloned());
                }
                Err(version) => {
                    let other = format!("the daemon at {socket} is {version}");
                    report.other_versions.push(other);
                }
            }
        }
        let best = best_of(&daemons);
        report.ready = !best.is_empty()
            && best.values().all(|(_, resource)| resource.is_ready())
            && report.unlisted_devices.is_empty();
        report.resources = best.values().map(|(_, resource)| View::of(resource)).collect();
        report
    }

    /// The text of the report, for daemons in `directory`, and of the pod with the UID `pod` if
    /// that is not empty.
    #[must_use]
    pub fn text(&self, directory: &Path, pod: &str) -> String {
        let mut text = lines(self);
        if self.resources.is_empty() && self.busy_sockets.is_empty() {
            let of_pod = if pod.is_empty() { "" } else { " of this pod" };
            text.insert_str(0, &format!("no daemon{of_pod} responds in {}\n", directory.display()));
        }
        text
    }
}

/// The lines of a daemon's status, as the readiness page shows them.
#[must_use]
pub fn status_lines(report: StatusReport) -> String {
    let mut report = Report::of(Answers::of([(PathBuf::new(), Ok(report))]), "");
    report.waiting_sockets.clear();
    lines(&report)
}

fn lines(report: &Report) -> String {
    let limit = ANSWER_LIMIT.as_secs_f64();
    let busy = report
        .busy_sockets
        .iter()
        .map(|socket| format!("busy: the daemon at {socket} did not answer within {limit:.1} s\n"));
    let waiting = report.waiting_sockets.iter().map(|socket| {
        format!("waiting: the daemon at {socket} waits until another one has ended\n")
    });
    let unlisted = report
        .unlisted_devices
        .iter()
        .map(|devices| format!("not listed: {}; {ONE_RULE}\n", printable(devices)));
    let others = report
        .other_versions
        .iter()
        .map(|other| format!("other version: {}, which cannot be read\n", printable(other)));
    let rejected = report.rejected_configurations.iter().map(|error| {
        let error = printable(error);
        format!("configuration rejected, the previous one is active: {error}\n")
    });
    let notices = report.notices.iter().map(|notice| format!("{}\n", printable(notice)));
    let resources = report.resources.iter().map(line);
    let daemons = busy.chain(resources).chain(waiting).chain(unlisted).chain(others);
    daemons.chain(rejected).chain(notices).collect()
}

/// What to do if two daemons have one resource.
const ONE_RULE: &str = "give the rule of each daemon another name, or run one daemon for both driver \
     models";

fn line(resource: &View) -> String {
    let View { name, state, waiting_ms, .. } = resource;
    let waiting =
        if *waiting_ms > 0 { format!(" for {} s", waiting_ms / 1000) } else { String::new() };
    let error = after(":", &resource.last_error);
    let pending = after(";", &resource.pending);
    format!("{}: {state}{waiting}{error}{pending}\n", printable(name))
}

/// A text after a punctuation mark, or nothing if the text is empty.
fn after(mark: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{mark} {}", printable(text)) }
}

#[cfg(test)]
mod tests {
    use device_plugin::status::StatusError;
    use devices::DeviceSet;

    use super::*;
    use crate::plugin_report::PluginReport;

    fn resource(phase: Phase, pending: &str) -> ResourceStatus {
        ResourceStatus {
            name: "example.com/gpu".to_owned(),
            phase: phase.into(),
            pending: pending.to_owned(),
            ..ResourceStatus::default()
        }
    }

    fn plugin(pod_uid: &str) -> PluginReport {
        PluginReport::new(pod_uid.to_owned(), &DeviceSet::default(), None)
    }

    fn answer(resources: Vec<ResourceStatus>) -> StatusReport {
        StatusReport { resources, document: plugin("").document(), ..StatusReport::default() }
    }

    fn of<'a>(
        answers: impl IntoIterator<Item = (&'a str, Result<StatusReport, StatusError>)>,
        pod: &str,
    ) -> Report {
        let answers = answers.into_iter().map(|(socket, answer)| (PathBuf::from(socket), answer));
        Report::of(Answers::of(answers), pod)
    }

    #[test]
    fn unknown_devices_are_reported_and_not_ready() {
        let pending = resource(Phase::Ready, "the first discovery has not completed");
        let status = answer(vec![pending]);
        let report = of([("/x/wddm-1.sock", Ok(status))], "");
        assert!(!report.ready && !report.resources[0].ready);
        assert_eq!(
            report.text(Path::new("/x"), ""),
            "example.com/gpu: the kubelet received an empty device list; the first discovery has \
             not completed\n"
        );
    }

    #[test]
    fn a_busy_daemon_is_not_reported_as_absent() {
        let directory = Path::new("/x");
        let absent = of([], "");
        assert!(!absent.live);
        assert_eq!(absent.text(directory, ""), "no daemon responds in /x\n");
        let busy = of([("/x/wddm-1.sock", Err(StatusError::Busy))], "");
        assert!(!busy.ready && !busy.live);
        assert_eq!(
            busy.text(directory, ""),
            "busy: the daemon at /x/wddm-1.sock did not answer within 1.5 s\n"
        );
    }

    #[test]
    fn a_daemon_that_waits_for_another_one_does_not_hide_it() {
        let report = |phase| answer(vec![resource(phase, "")]);
        let waiting = report(Phase::WaitingForOtherDaemon);
        for (phase, ready) in [(Phase::Ready, true), (Phase::WaitingForKubelet, false)] {
            let answers =
                [("/x/wddm-2.sock", Ok(waiting.clone())), ("/x/wddm-1.sock", Ok(report(phase)))];
            let report = of(answers, "");
            assert_eq!((report.ready, report.resources[0].ready), (ready, ready), "{phase:?}");
            assert_ne!(report.resources[0].state, "waiting for another daemon", "{phase:?}");
            let text = report.text(Path::new("/x"), "");
            let line = "waiting: the daemon at /x/wddm-2.sock waits until another one has ended\n";
            assert!(text.ends_with(line), "{text}");
        }
        let report = of([("/x/wddm-2.sock", Ok(waiting))], "");
        let waits = (report.live, report.ready, report.resources[0].state);
        assert_eq!(waits, (true, false, "waiting for another daemon"));
    }

    #[test]
    fn a_rejected_configuration_is_reported_and_the_daemon_stays_ready() {
        let plugin = PluginReport {
            rejected_configuration: Some("config.yaml:1: unknown key `x`".to_owned()),
            notices: vec!["device PCI\nA is unhealthy".to_owned()],
            ..plugin("")
        };
        let resources = vec![resource(Phase::Ready, "")];
        let status = StatusReport { document: plugin.document(), ..answer(resources) };
        let answer = || ("/x/wddm-1.sock", Ok(status.clone()));
        let report = of([answer(), answer()], "");
        assert!(report.ready);
        assert_eq!(
            report.text(Path::new("/x"), ""),
            "example.com/gpu: the kubelet received the device list\n\
             configuration rejected, the previous one is active: config.yaml:1: unknown key `x`\n\
             device PCI\\nA is unhealthy\n"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["rejectedConfigurations"][0], "config.yaml:1: unknown key `x`");
    }

    #[test]
    fn only_the_daemon_of_a_pod_counts_for_its_probe() {
        let of_pod = |uid: &str, phase| StatusReport {
            document: plugin(uid).document(),
            ..answer(vec![resource(phase, "")])
        };
        let answers = || {
            [
                ("/x/wddm-1.sock", Ok(of_pod("a", Phase::Ready))),
                ("/x/wddm-2.sock", Ok(of_pod("b", Phase::WaitingForOtherDaemon))),
            ]
        };
        for (pod, live, ready) in
            [("a", true, true), ("b", true, false), ("c", false, false), ("", true, true)]
        {
            let report = of(answers(), pod);
            assert_eq!((report.live, report.ready), (live, ready), "{pod}");
        }
    }

    #[test]
    fn a_daemon_of_another_version_is_live_and_ready() {
        let document = br#"{"format": 2, "version": "99.0.0"}"#.to_vec();
        let status = StatusReport { document, ..answer(vec![resource(Phase::Ready, "")]) };
        let answer = || ("/x/wddm-1.sock", Ok(status.clone()));
        let report = of([answer()], "");
        assert!(report.live && report.ready);
        assert_eq!(
            report.text(Path::new("/x"), ""),
            "example.com/gpu: the kubelet received the device list\n\
             other version: the daemon at /x/wddm-1.sock is version 99.0.0 with a report of format 2, \
             which cannot be read\n"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert!(json["otherVersions"][0].is_string(), "{json}");
        assert!(!of([answer()], "a").live, "a probe asks the daemon of its version");
    }

    #[test]
    fn a_daemon_with_many_sockets_waits_once() {
        let sockets: Vec<String> = (0..9).map(|n| format!("/x/wddm-{n}.sock")).collect();
        let waiting = resource(Phase::WaitingForOtherDaemon, "");
        let status = StatusReport { instance: 7, ..answer(vec![waiting]) };
        let answers = sockets.iter().map(|socket| (socket.as_str(), Ok(status.clone())));
        assert_eq!(of(answers, "").waiting_sockets, ["/x/wddm-0.sock"]);
    }
}
