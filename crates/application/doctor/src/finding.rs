//! What was found out about a node: one finding for each subject or object.

use std::time::Duration;

use serde_json::{Value, json};
use strum::{IntoStaticStr, VariantArray};

use crate::step::Step;
use crate::stop::Reason;

/// Why the software of a node is not checked, nor the kubelet's directory.
pub(crate) const NOT_IN_INVENTORY: &str =
    "the inventory does not contain it; run doctor on the node";

/// Why what depends on the adapters is not checked.
pub(crate) const UNREAD: &str = "the adapters could not be read";

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    /// The subject, or the step of `verify`.
    pub(crate) name: &'static str,
    /// A warning or a problem of a subject has one.
    pub(crate) id: Option<&'static str>,
    /// The device, resource, driver model or container, where there are several. Without private
    /// data if something was tried.
    pub(crate) object: Option<String>,
    pub(crate) status: Status,
    /// What was found. Without private data if something was tried: the Markdown report contains
    /// it.
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
    pub(crate) measurements: Vec<Measurement>,
    /// May contain private data, such as paths: not in the Markdown report.
    pub(crate) details: Vec<String>,
}

/// The result of a check. Later results are worse.
#[derive(VariantArray, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Status {
    /// It was not or could not be checked.
    Skipped,
    /// As it should be.
    Ok,
    /// Pods run, but slower, with fewer functions or otherwise than expected.
    Warning,
    /// Pods do not get their devices.
    Failed,
}

pub(crate) type Measurement = (&'static str, Value);

/// A time as a measurement: milliseconds with three decimals.
pub(crate) fn millis(time: Duration) -> Value {
    json!((time.as_secs_f64() * 1_000_000.0).round() / 1000.0)
}

/// Declares what is looked at, and everything that can be wrong with it. `docs/doctor.md` has a
/// section for each subject and in it a paragraph for each ID, in this order.
macro_rules! subjects {
    ($($(#[$about:meta])* $subject:ident { $($id:ident),* $(,)? })*) => {
        #[derive(IntoStaticStr, VariantArray, Clone, Copy, PartialEq, Eq, Debug)]
        #[strum(serialize_all = "kebab-case")]
        pub(crate) enum Subject { $($(#[$about])* $subject),* }

        /// What a warning or a problem is about. Programs and pages refer to it.
        // The list of all of them would hide from the compiler an ID that no rule uses.
        #[cfg_attr(test, derive(VariantArray))]
        #[derive(IntoStaticStr, Clone, Copy, PartialEq, Eq, Debug)]
        #[strum(serialize_all = "kebab-case")]
        pub(crate) enum FindingId { $($($id,)*)* }

        impl FindingId {
            const fn subject(self) -> Subject {
                match self { $($(FindingId::$id => Subject::$subject,)*)* }
            }
        }
    };
}

subjects! {
    Windows { WindowsTooOld, WindowsOutdated }
    /// The Host Compute Service and its schema.
    Hcs { HcsMissing, HcsNotResponding, HcsSchemaTooOld }
    /// The OS version of an image, compared with the host's.
    Image { ImageDoesNotFit }
    Containerd {
        ContainerdTooOld, ContainerdRelease, ContainerdNotFound, ContainerdVersionUnknown,
        CriDisabled,
    }
    Kubelet { KubeletTooOld }
    KubeletDirectory {
        DirectoryMissing, DirectoryNotUsable, DirectoryNotProtected, DirectoryRightsUnknown,
    }
    KubeletSocket { SocketMissing, KubeletNotResponding, SocketNotAllowed, NoUnixSockets }
    /// The plugin that runs on the node.
    Plugin {
        ConfigurationRejected, ListedAsUnhealthy, PluginNotice, PluginNotResponding, DevicesPending,
        PluginVersion,
    }
    Configuration { ConfigurationInvalid, ConfigurationNotice }
    Device {
        NoDevice, NoUsableDevice, AdaptersNotRead, ProblemCode, DeviceUnhealthy, NoAdapter,
        AdapterReadInPart, AdapterNotListed,
    }
    /// The files that a driver names for containers.
    RuntimeFiles {
        FilesMissing, MountsNotApplied, RegistryValuesIgnored, NoDriverStore, InsideContainer,
    }
    /// What the kubelet gets.
    Resources {
        NothingAdvertised, OnlyCandidateNotAdvertised, AdapterNotAdvertised, RuleWithoutDevice,
        NoHealthyDevice, Cordoned, CordonsUnknown, CordonWithoutDevice,
    }
    /// Which GPUs containers can see.
    Visibility { OtherGpusVisible, LauncherMissing }
    /// NVIDIA's management library.
    Nvml { NvmlMissing, NvmlNotResponding, TccMode }
    /// The license that NVIDIA's driver needs for some devices.
    License { Unlicensed }
}

impl Subject {
    pub(crate) fn ok(self, what: impl Into<String>) -> Finding {
        Finding::new(self.into(), Status::Ok, what.into())
    }

    pub(crate) fn skipped(self, why: impl Into<String>) -> Finding {
        Finding::new(self.into(), Status::Skipped, why.into())
    }
}

impl FindingId {
    pub(crate) fn warning(self, what: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.finding(Status::Warning, what.into()).hint(hint)
    }

    pub(crate) fn failed(self, what: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.finding(Status::Failed, what.into()).hint(hint)
    }

    fn finding(self, status: Status, what: String) -> Finding {
        Finding { id: Some(self.into()), ..Finding::new(self.subject().into(), status, what) }
    }
}

/// `docs/verify.md` describes the results of each step.
impl Step {
    pub(crate) fn finding(self, status: Status, what: impl Into<String>) -> Finding {
        Finding::new(self.into(), status, what.into())
    }

    pub(crate) fn ok(self, what: impl Into<String>) -> Finding {
        self.finding(Status::Ok, what)
    }

    pub(crate) fn failed(self, what: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.finding(Status::Failed, what).hint(hint)
    }

    pub(crate) fn skipped(self, why: impl Into<String>) -> Finding {
        self.finding(Status::Skipped, why)
    }

    /// A finding of a step that ended before it had a result. The causes of the error may have
    /// private data, which the error itself must not have.
    pub(crate) fn error(self, error: &anyhow::Error) -> Finding {
        let status = match error.downcast_ref() {
            Some(Reason::Interrupted) => Status::Skipped,
            _ => Status::Failed,
        };
        let causes = error.chain().skip(1).map(ToString::to_string);
        self.finding(status, error.to_string()).detail(causes)
    }
}

impl Finding {
    fn new(name: &'static str, status: Status, what: String) -> Finding {
        Finding {
            name,
            id: None,
            object: None,
            status,
            what,
            hint: None,
            measurements: Vec::new(),
            details: Vec::new(),
        }
    }

    pub(crate) fn of(mut self, object: impl Into<String>) -> Finding {
        self.object = Some(object.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn measured(mut self, values: impl IntoIterator<Item = Measurement>) -> Finding {
        self.measurements.extend(values);
        self
    }

    pub(crate) fn detail(mut self, details: impl IntoIterator<Item = String>) -> Finding {
        self.details.extend(details);
        self
    }

    pub(crate) fn sentence(&self) -> String {
        let object = self.object.as_ref().map(|object| format!("{object}: "));
        object.unwrap_or_default() + &self.what
    }
}

impl Status {
    /// In the order of reports.
    pub(crate) const ALL: [Status; 4] = match *Status::VARIANTS {
        [skipped, ok, warning, failed] => [failed, warning, ok, skipped],
        _ => panic!("another number of variants"),
    };

    /// The result of a check, for people.
    pub(crate) const fn verdict(self) -> &'static str {
        match self {
            Status::Failed => "problem",
            Status::Warning => "warning",
            Status::Ok => "ok",
            Status::Skipped => "not checked",
        }
    }

    /// The result of a step.
    pub(crate) const fn result(self) -> &'static str {
        match self {
            Status::Failed => "failed",
            Status::Warning => "warning",
            Status::Ok => "ok",
            Status::Skipped => "skipped",
        }
    }
}

/// A number of things: `1 device`, `2 devices`.
pub(crate) fn number_of(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// How many of `findings` have each status, in the order of [`Status::ALL`].
pub(crate) fn counts(findings: &[Finding]) -> [usize; 4] {
    Status::ALL.map(|status| findings.iter().filter(|found| found.status == status).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_section_per_subject_with_a_paragraph_per_finding() {
        let page = include_str!("../../../../docs/doctor.md");
        let mut expected = Vec::new();
        for subject in Subject::VARIANTS {
            expected.push(format!("## {}", <&str>::from(subject)));
            let ids = FindingId::VARIANTS.iter().filter(|id| id.subject() == *subject);
            expected.extend(ids.map(|id| format!("- **{}**", <&str>::from(id))));
        }
        let found: Vec<&str> = page
            .lines()
            .filter_map(|line| match line.split_once(": ") {
                Some((id, _)) if id.starts_with("- **") => Some(id),
                _ => line.starts_with("## ").then_some(line),
            })
            .collect();
        for (n, expected) in expected.iter().enumerate() {
            let found = found.get(n).unwrap_or(&"the end");
            assert_eq!(found, expected, "docs/doctor.md needs `{expected}: …` before `{found}`");
        }
        assert_eq!(found.len(), expected.len(), "docs/doctor.md has more: {found:?}");
    }

    #[test]
    fn the_page_about_verify_describes_every_step() {
        let page = include_str!("../../../../docs/verify.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let steps = Step::VARIANTS.iter().map(<&str>::from);
        assert_eq!(rows.collect::<Vec<_>>(), steps.collect::<Vec<_>>());
    }
}
