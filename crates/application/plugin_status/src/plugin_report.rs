//! The document in the daemon's status: what it reports of its node to the other programs there.

use std::fmt;

use devices::{DeviceSet, DriverModel};
use report::NodeReport;
use serde::{Deserialize, Serialize};

/// The format of the document. It grows when a program with an earlier one would misunderstand the
/// document; fields that are only new are ignored there.
const FORMAT: u32 = 1;

/// The longest document, in bytes. With the states of all resources, the answer to a status call is
/// smaller than the 4 MiB that its readers accept. A device takes about 400 bytes.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// How many notices a report contains.
const MAX_NOTICES: usize = 64;

/// The longest notice, in characters.
const MAX_NOTICE: usize = 1024;

/// What a daemon reports.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct PluginReport {
    pub(crate) format: u32,
    pub(crate) version: String,
    /// The UID of the daemon's pod, for probes that must ask only this daemon. May be empty.
    pub pod_uid: String,
    /// The driver models whose devices the daemon lists.
    #[serde(default)]
    pub driver_models: Vec<DriverModel>,
    /// The driver models of another daemon that should run on this node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_driver_models: Vec<DriverModel>,
    /// Why the devices are not known; the resources then have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// Why the newest configuration is not active, if it is not. The resources are served with the
    /// previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_configuration: Option<String>,
    /// What an administrator should know, a line each.
    pub notices: Vec<String>,
    /// The node and its devices.
    pub node: NodeReport,
}

/// The version of a daemon. It is all that is known of a daemon whose report has another format.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[serde(default)]
pub struct PluginVersion {
    /// The format of its report. 0: of a daemon that writes none.
    pub format: u32,
    /// The version of the program.
    pub version: String,
}

impl fmt::Display for PluginVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PluginVersion { format, version } = self;
        match format {
            0 => f.write_str("an unknown version without a report"),
            _ => write!(f, "version {version} with a report of format {format}"),
        }
    }
}

impl PluginReport {
    /// The report of a daemon in the pod `pod_uid` that lists these devices, or none while they are
    /// `pending`.
    #[must_use]
    pub fn new(pod_uid: String, set: &DeviceSet, pending: Option<String>) -> PluginReport {
        PluginReport {
            format: FORMAT,
            version: devices::VERSION.to_owned(),
            pod_uid,
            pending,
            node: NodeReport::of(set),
            ..PluginReport::default()
        }
    }

    /// The report with these notices, as far as there is room.
    #[must_use]
    pub fn with_notices(self, notices: impl IntoIterator<Item = String>) -> PluginReport {
        let mut notices = notices.into_iter();
        let mut kept: Vec<String> = notices
            .by_ref()
            .take(MAX_NOTICES)
            .map(|notice| notice.chars().take(MAX_NOTICE).collect())
            .collect();
        let more = notices.count();
        if more > 0 {
            kept.push(format!("{more} more notices are in the log"));
        }
        PluginReport { notices: kept, ..self }
    }

    /// The document. Devices that do not fit are not known to its readers, all or none: a part of
    /// them would be wrong.
    #[must_use]
    pub fn document(&self) -> Vec<u8> {
        let document = self.json();
        if document.len() <= MAX_BYTES {
            return document;
        }
        let devices = self.node.devices().count();
        let mut short = self.clone();
        short.pending = Some(format!("the plugin lists {devices} devices, too many to report"));
        for resource in &mut short.node.resources {
            resource.devices.clear();
        }
        short.json()
    }

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts, numbers and lists can always be written as JSON")
    }

    /// Reads a document.
    ///
    /// # Errors
    /// The document has another format.
    pub fn read(document: &[u8]) -> Result<PluginReport, PluginVersion> {
        let version: PluginVersion = serde_json::from_slice(document).unwrap_or_default();
        if version.format != FORMAT {
            return Err(version);
        }
        serde_json::from_slice(document).map_err(|error| {
            tracing::debug!(%error, "cannot read the report of a plugin");
            version
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use config::{EmptyEnvironment, Flags};
    use devices::{Catalog, Moment};
    use serde_json::{Value, json};

    use super::*;

    fn report() -> PluginReport {
        let file = "../../../fixtures/inventories/aws-t4-two.yaml";
        let host = config::inventory::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
        let policy = config::load(&Flags::default(), &EmptyEnvironment).unwrap().policy;
        let offer = Catalog::new(policy).offer(&host.unwrap());
        let set = DeviceSet::next(None, offer, Moment::default());
        PluginReport::new("pod".to_owned(), &set, None)
    }

    fn as_json(report: &PluginReport) -> Value {
        serde_json::from_slice(&report.document()).unwrap()
    }

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let written = PluginReport {
            pending: Some("reading adapters".to_owned()),
            rejected_configuration: Some("config.yaml:1: unknown key `x`".to_owned()),
            ..report().with_notices(["two lines\nof text".to_owned()])
        };
        assert_eq!(PluginReport::read(&written.document()), Ok(written));
    }

    #[test]
    fn the_document_is_stable() {
        let mut document = as_json(&report());
        document["version"] = "VERSION".into();
        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    }

    #[test]
    fn what_is_new_in_the_same_format_is_ignored() {
        let mut newer = as_json(&report());
        newer["version"] = "99.0.0".into();
        newer["new"] = json!({ "key": 1 });
        let read = PluginReport::read(newer.to_string().as_bytes()).unwrap();
        assert_eq!(read.node, report().node);
    }

    #[test]
    fn of_another_format_only_the_version_is_known() {
        let newer = json!({ "format": 2, "version": "99.0.0", "node": "elsewhere" });
        let version = PluginReport::read(newer.to_string().as_bytes()).unwrap_err();
        assert_eq!(version.to_string(), "version 99.0.0 with a report of format 2");
        let mut broken = as_json(&report());
        broken["node"] = "elsewhere".into();
        let version = PluginReport::read(broken.to_string().as_bytes()).unwrap_err();
        assert_eq!(version.format, FORMAT);
        for document in ["", "{}", "no JSON"] {
            let version = PluginReport::read(document.as_bytes()).unwrap_err();
            assert_eq!(version, PluginVersion::default(), "{document}");
        }
    }

    #[test]
    fn the_size_is_limited() {
        let notices = (0..100_000).map(|n| format!("{n}{}", "\u{1}".repeat(100_000)));
        let report = report().with_notices(notices.take(1000));
        assert_eq!(report.notices.len(), 65);
        assert_eq!(report.notices[64], "936 more notices are in the log");
        assert!(report.document().len() < MAX_BYTES / 2);

        let mut large = report;
        let devices = &mut large.node.resources[0].devices;
        *devices = vec![devices[0].clone(); 3000];
        assert_eq!(PluginReport::read(&large.document()), Ok(large.clone()), "all of them");
        let devices = &mut large.node.resources[0].devices;
        *devices = vec![devices[0].clone(); 10_000];
        let read = PluginReport::read(&large.document()).unwrap();
        assert_eq!(
            read.pending.as_deref(),
            Some("the plugin lists 10000 devices, too many to report")
        );
        assert_eq!(read.node.devices().count(), 0);
        assert_eq!(read.node.resources.len(), large.node.resources.len());
    }
}
