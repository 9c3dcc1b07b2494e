//! What was found out about a node: one finding for each subject or object.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stop::Reason;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    pub(crate) subject: Subject,
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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Subject(pub(crate) &'static str);

/// What is looked at, in the order of the report. Each has its section in
/// `docs/doctor.md`.
impl Subject {
    pub(crate) const WINDOWS: Subject = Subject("windows");
    /// The Host Compute Service and its schema.
    pub(crate) const HCS: Subject = Subject("hcs");
    /// The OS version of an image, compared with the host's.
    pub(crate) const IMAGE: Subject = Subject("image");
    pub(crate) const CONTAINERD: Subject = Subject("containerd");
    pub(crate) const KUBELET: Subject = Subject("kubelet");
    pub(crate) const KUBELET_DIRECTORY: Subject = Subject("kubelet-directory");
    pub(crate) const KUBELET_SOCKET: Subject = Subject("kubelet-socket");
    /// The plugin that runs on the node.
    pub(crate) const PLUGIN: Subject = Subject("plugin");
    pub(crate) const CONFIGURATION: Subject = Subject("configuration");
    pub(crate) const DEVICE: Subject = Subject("device");
    /// The files that a driver names for containers.
    pub(crate) const RUNTIME_FILES: Subject = Subject("runtime-files");
    /// What the kubelet gets.
    pub(crate) const RESOURCES: Subject = Subject("resources");
    /// Which GPUs containers can see.
    pub(crate) const VISIBILITY: Subject = Subject("visibility");
    /// NVIDIA's management library.
    pub(crate) const NVML: Subject = Subject("nvml");
    /// The license that NVIDIA's driver needs for some devices.
    pub(crate) const LICENSE: Subject = Subject("license");

    pub(crate) fn finding(self, status: Status, what: impl Into<String>) -> Finding {
        Finding {
            subject: self,
            object: None,
            status,
            what: what.into(),
            hint: None,
            measurements: Vec::new(),
            details: Vec::new(),
        }
    }

    pub(crate) fn ok(self, what: impl Into<String>) -> Finding {
        self.finding(Status::Ok, what)
    }

    pub(crate) fn warning(self, what: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.finding(Status::Warning, what).hint(hint)
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
    pub(crate) const ALL: [Status; 4] =
        [Status::Failed, Status::Warning, Status::Ok, Status::Skipped];

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
    #[test]
    fn the_page_has_one_section_per_subject() {
        let page = include_str!("../../../../docs/doctor.md");
        let sections: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, crate::evaluate::tests::SUBJECTS);
    }
}
