//! What the daemon reports in its status in addition to its resources.

use std::fmt;

use device_plugin::Notes;
use serde::{Deserialize, Serialize};

/// The name of the note that contains all of them as JSON.
const NOTE: &str = "daemon";

/// What the daemon reports in addition to its resources.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusNotes {
    /// Why the newest configuration is not active, if it is not. The resources are served with the
    /// previous one.
    pub rejected_configuration: Option<String>,
    /// What an administrator should know, a line each.
    pub notices: Vec<String>,
    /// The containers whose driver was replaced since their allocation; `None` while they are not known.
    pub outdated: Option<Vec<OutdatedContainer>>,
    /// The UID of the pod of this process, for probes that must ask only this process. May be empty.
    pub pod_uid: String,
}

/// A container whose driver was replaced since its device was allocated to it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct OutdatedContainer {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The UID of the pod. Empty if the kubelet does not report it.
    pub pod_uid: String,
    /// The name of the container in its pod.
    pub container: String,
    /// The device.
    pub device: String,
    /// The driver at the allocation.
    pub before: String,
    /// The driver now.
    pub now: String,
}

/// What an administrator should know and do.
impl fmt::Display for OutdatedContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutdatedContainer { namespace, pod, container, device, before, now, .. } = self;
        write!(
            f,
            "container {container} of pod {namespace}/{pod} uses driver {before} of {device}, which \
             was replaced by {now}; delete the pod"
        )
    }
}

impl StatusNotes {
    /// The notes of a status. The default if the status is not a daemon's.
    #[must_use]
    pub fn of(notes: &Notes) -> Self {
        let note = notes.get(NOTE).map(String::as_str).unwrap_or_default();
        serde_json::from_str(note).unwrap_or_default()
    }

    /// The notes for the status.
    #[must_use]
    pub fn notes(&self) -> Notes {
        // Texts and lists can always be written as JSON.
        let json = serde_json::to_string(self).unwrap_or_default();
        Notes::from([(NOTE.to_owned(), json)])
    }
}
