//! The steps of a verification, and what a step finds.

use std::time::Duration;

use clap::ValueEnum;

use crate::stop::Reason;

/// One step of a verification.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// every check of `doctor`
    Doctor,
    /// create, connect, watch and delete a socket in the device plugin directory
    Socket,
    /// read the adapters several times
    Discovery,
    /// wait for a device event
    Events,
    /// register a temporary resource with the kubelet
    Kubelet,
    /// start containers with one device and with several
    Container,
}

impl Step {
    /// The name on the command line and in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Step::Doctor => "doctor",
            Step::Socket => "socket",
            Step::Discovery => "discovery",
            Step::Events => "events",
            Step::Kubelet => "kubelet",
            Step::Container => "container",
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It works.
    Ok,
    /// It works, but not as expected.
    Warning,
    /// It does not work.
    Failed,
    /// It was not tested.
    Skipped,
}

impl Outcome {
    pub(crate) const ALL: [Outcome; 4] =
        [Outcome::Failed, Outcome::Warning, Outcome::Ok, Outcome::Skipped];

    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
        }
    }
}

/// What a step found.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    pub(crate) step: Step,
    /// What was tested, if the step tests several things. Without private data.
    pub(crate) object: Option<String>,
    pub(crate) outcome: Outcome,
    /// Without private data: the Markdown report contains it.
    pub(crate) what: String,
    pub(crate) measurements: Vec<Measurement>,
    /// May contain private data, such as paths: not in the Markdown report.
    pub(crate) details: Vec<String>,
    /// What to do.
    pub(crate) hint: Option<String>,
}

/// A measured value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measurement {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

/// The value of a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value {
    Time(Duration),
    Count(usize),
}

impl Measurement {
    pub(crate) const fn time(key: &'static str, time: Duration) -> Measurement {
        Measurement { key, value: Value::Time(time) }
    }

    pub(crate) const fn count(key: &'static str, count: usize) -> Measurement {
        Measurement { key, value: Value::Count(count) }
    }
}

impl Finding {
    pub(crate) fn new(step: Step, outcome: Outcome, what: impl Into<String>) -> Finding {
        Finding {
            step,
            object: None,
            outcome,
            what: what.into(),
            measurements: Vec::new(),
            details: Vec::new(),
            hint: None,
        }
    }

    pub(crate) fn ok(step: Step, what: impl Into<String>) -> Finding {
        Finding::new(step, Outcome::Ok, what)
    }

    pub(crate) fn failed(step: Step, what: impl Into<String>) -> Finding {
        Finding::new(step, Outcome::Failed, what)
    }

    pub(crate) fn skipped(step: Step, why: impl Into<String>) -> Finding {
        Finding::new(step, Outcome::Skipped, why)
    }

    /// A step that ended before it had a result.
    pub(crate) fn unfinished(step: Step, reason: Reason) -> Finding {
        match reason {
            Reason::Interrupted => Finding::skipped(step, "interrupted"),
            Reason::Panicked => Finding::failed(step, "the step has a bug and panicked"),
            Reason::TimedOut(limit) => {
                Finding::failed(step, format!("no result within {} s", limit.as_secs()))
            }
        }
    }

    pub(crate) fn of(mut self, object: impl Into<String>) -> Finding {
        self.object = Some(object.into());
        self
    }

    pub(crate) fn measured(
        mut self,
        measurements: impl IntoIterator<Item = Measurement>,
    ) -> Finding {
        self.measurements.extend(measurements);
        self
    }

    pub(crate) fn detail(mut self, details: impl IntoIterator<Item = String>) -> Finding {
        self.details.extend(details);
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_same_name_on_the_command_line_and_in_reports() {
        for step in Step::value_variants() {
            let value = step.to_possible_value().unwrap();
            assert_eq!(value.get_name(), step.name());
        }
    }
}
