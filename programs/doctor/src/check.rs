//! The findings about a node: one line per subject or object, each with a verdict.

use std::fmt;

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The subject.
    pub subject: Subject,
    /// The device, resource or driver model, where a host has several.
    pub object: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// How to fix it.
    pub advice: Option<String>,
}

/// The result of a check. Later results are worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// It could not be checked here.
    NotChecked,
    /// As it should be.
    Ok,
    /// Pods run, but slower, with fewer functions or otherwise than expected.
    Warning,
    /// Pods do not get their devices.
    Problem,
}

impl Verdict {
    /// Every verdict.
    #[cfg(test)]
    pub(crate) const ALL: [Verdict; 4] =
        [Verdict::Ok, Verdict::Warning, Verdict::Problem, Verdict::NotChecked];

    /// The verdict in the text report.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Problem => "problem",
            Verdict::NotChecked => "not checked",
        }
    }

    /// The verdict in the JSON report.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Verdict::NotChecked => "not-checked",
            other => other.label(),
        }
    }
}

/// What a check is about. Each has its section in `docs/troubleshooting.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Subject {
    /// The Windows build.
    Windows,
    /// The Host Compute Service and its schema.
    Hcs,
    /// The OS version of an image, compared with the host's.
    Image,
    /// The container runtime.
    Containerd,
    /// The kubelet's version.
    Kubelet,
    /// The kubelet's device plugin directory.
    KubeletDirectory,
    /// The kubelet's socket.
    KubeletSocket,
    /// The plugin's own configuration.
    Configuration,
    /// A device and its driver.
    Device,
    /// The files that a driver names for containers.
    RuntimeFiles,
    /// What the kubelet gets.
    Resources,
    /// Which GPUs containers can see.
    Visibility,
    /// NVIDIA's management library.
    Nvml,
}

impl Subject {
    /// Every subject, in the order of the report.
    #[cfg(test)]
    pub(crate) const ALL: [Subject; 13] = [
        Subject::Windows,
        Subject::Hcs,
        Subject::Image,
        Subject::Containerd,
        Subject::Kubelet,
        Subject::KubeletDirectory,
        Subject::KubeletSocket,
        Subject::Configuration,
        Subject::Device,
        Subject::RuntimeFiles,
        Subject::Resources,
        Subject::Visibility,
        Subject::Nvml,
    ];

    /// The name in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Windows => "windows",
            Subject::Hcs => "hcs",
            Subject::Image => "image",
            Subject::Containerd => "containerd",
            Subject::Kubelet => "kubelet",
            Subject::KubeletDirectory => "kubelet-directory",
            Subject::KubeletSocket => "kubelet-socket",
            Subject::Configuration => "configuration",
            Subject::Device => "device",
            Subject::RuntimeFiles => "runtime-files",
            Subject::Resources => "resources",
            Subject::Visibility => "visibility",
            Subject::Nvml => "nvml",
        }
    }

    fn check(self, verdict: Verdict, what: impl Into<String>) -> Check {
        Check { subject: self, object: None, verdict, what: what.into(), advice: None }
    }

    /// A check that found nothing wrong.
    pub(crate) fn ok(self, what: impl Into<String>) -> Check {
        self.check(Verdict::Ok, what)
    }

    /// A check that found something to improve.
    pub(crate) fn warning(self, what: impl Into<String>, advice: impl Into<String>) -> Check {
        self.check(Verdict::Warning, what).advise(advice)
    }

    /// A check that found why pods do not get their devices.
    pub(crate) fn problem(self, what: impl Into<String>, advice: impl Into<String>) -> Check {
        self.check(Verdict::Problem, what).advise(advice)
    }

    /// A check that could not be made, and why.
    pub(crate) fn not_checked(self, why: impl Into<String>) -> Check {
        self.check(Verdict::NotChecked, why)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Check {
    /// Adds how to fix it.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Check {
        self.advice = Some(advice.into());
        self
    }

    /// Names the object that the check is about.
    pub(crate) fn of(mut self, object: impl Into<String>) -> Check {
        self.object = Some(object.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_troubleshooting_page_has_one_section_per_subject() {
        let page = include_str!("../../../docs/troubleshooting.md");
        let (_, lines) = page.split_once("\n## The lines of doctor\n").unwrap();
        let lines = lines.split("\n## ").next().unwrap();
        let sections: Vec<&str> =
            lines.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        assert_eq!(sections, Subject::ALL.map(Subject::name));
    }
}
