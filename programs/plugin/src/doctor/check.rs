//! What a look at a node comes to: lines about subjects, each with a verdict.

use std::fmt;

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Check {
    /// What it is about.
    pub(crate) subject: Subject,
    /// Which one, where a host has several: a device, a resource.
    pub(crate) object: Option<String>,
    /// How it is.
    pub(crate) verdict: Verdict,
    /// What was found.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) advice: Option<String>,
}

/// How something is. Later ones are worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Verdict {
    /// It could not be looked at from here.
    NotChecked,
    /// As it should be.
    Ok,
    /// Pods run, and less well or otherwise than one may think.
    Warning,
    /// Pods do not get their devices.
    Problem,
}

impl Verdict {
    /// All four.
    #[cfg(test)]
    pub(crate) const ALL: [Verdict; 4] =
        [Verdict::Ok, Verdict::Warning, Verdict::Problem, Verdict::NotChecked];

    /// The verdict for people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Problem => "problem",
            Verdict::NotChecked => "not checked",
        }
    }

    /// The verdict for programs.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Verdict::NotChecked => "not-checked",
            other => other.words(),
        }
    }
}

/// What a check is about. Each has its section in `docs/troubleshooting.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Subject {
    /// The Windows build.
    Windows,
    /// The Host Compute Service and its schema.
    Hcs,
    /// An image's OS version against the host's.
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
    /// Each device and its driver.
    Device,
    /// The files that a driver names for containers.
    RuntimeFiles,
    /// What is offered to the kubelet.
    Resources,
    /// Which GPUs a container sees.
    Visibility,
    /// NVIDIA's management library.
    Nvml,
}

impl Subject {
    /// All of them, in the order in which they are checked.
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
    pub(crate) const fn name(self) -> &'static str {
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

    /// A check of this subject.
    pub(crate) fn is(self, verdict: Verdict, what: impl Into<String>) -> Check {
        Check { subject: self, object: None, verdict, what: what.into(), advice: None }
    }

    /// As it should be.
    pub(crate) fn ok(self, what: impl Into<String>) -> Check {
        self.is(Verdict::Ok, what)
    }

    /// Less well than one may think.
    pub(crate) fn warning(self, what: impl Into<String>, advice: impl Into<String>) -> Check {
        self.is(Verdict::Warning, what).advise(advice)
    }

    /// In the way of every pod that wants a device.
    pub(crate) fn problem(self, what: impl Into<String>, advice: impl Into<String>) -> Check {
        self.is(Verdict::Problem, what).advise(advice)
    }

    /// Not looked at, and why.
    pub(crate) fn not_checked(self, why: impl Into<String>) -> Check {
        self.is(Verdict::NotChecked, why)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Check {
    /// Adds what to do.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Check {
        self.advice = Some(advice.into());
        self
    }

    /// Names the one it is about.
    pub(crate) fn of(mut self, object: impl Into<String>) -> Check {
        self.object = Some(object.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_its_section_in_the_handbook_and_no_other_is_there() {
        let handbook = include_str!("../../../../docs/troubleshooting.md");
        let (_, lines) = handbook.split_once("\n## The lines of doctor\n").unwrap();
        let lines = lines.split("\n## ").next().unwrap();
        let sections: Vec<&str> =
            lines.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        assert_eq!(sections, Subject::ALL.map(Subject::name));
    }
}
