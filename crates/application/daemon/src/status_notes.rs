//! What the daemon reports in its status in addition to its resources.

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
    /// The UID of the pod of this process, for probes that must ask only this process. May be
    /// empty.
    pub pod_uid: String,
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
