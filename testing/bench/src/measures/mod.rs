//! The measurements, in groups, and their budgets.

mod calls;
mod changes;
mod idle;
mod restarts;
mod size;
mod startup;

use std::path::Path;

use anyhow::{Context, Result};

use crate::node::Shape;
use crate::sample::Sample;

/// The resource name of the node's GPUs.
const RESOURCE: &str = "directx.microsoft.com/display";

/// The shape for most budgets: eight GPUs with 16 replicas each.
const SHARED: Shape = Shape { slots: 128, files: 16 };

/// The shape with the most slots for which there is a budget.
const MANY: Shape = Shape { slots: 16_384, files: 16 };

/// How long to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// Enough for reproducible results. Takes some minutes.
    Full,
    /// Enough to check that every measurement works. Takes some seconds.
    Quick,
}

impl Effort {
    /// How many times to repeat a measurement that [`Effort::Full`] repeats `full` times.
    fn times(self, full: usize) -> usize {
        match self {
            Effort::Full => full,
            Effort::Quick => (full / 20).max(2),
        }
    }
}

/// A group of measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Measure {
    Size,
    Startup,
    Calls,
    Changes,
    Restarts,
    Idle,
}

impl Measure {
    /// All groups, in the order of the report.
    pub(crate) const ALL: [Measure; 6] = [
        Measure::Size,
        Measure::Startup,
        Measure::Calls,
        Measure::Changes,
        Measure::Restarts,
        Measure::Idle,
    ];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Measure::Size => "size",
            Measure::Startup => "startup",
            Measure::Calls => "calls",
            Measure::Changes => "changes",
            Measure::Restarts => "restarts",
            Measure::Idle => "idle",
        }
    }

    /// The group with this name.
    pub(crate) fn named(name: &str) -> Result<Measure> {
        let names = Measure::ALL.map(Measure::name).join(", ");
        let found = Measure::ALL.into_iter().find(|measure| measure.name() == name);
        found.with_context(|| format!("unknown group `{name}`, expected one of: {names}"))
    }

    /// Runs the measurements of the group with `program`.
    pub(crate) async fn run(self, program: &Path, effort: Effort) -> Result<Group> {
        match self {
            Measure::Size => size::measure(program),
            Measure::Startup => startup::measure(program, effort).await,
            Measure::Calls => calls::measure(program, effort).await,
            Measure::Changes => changes::measure(program, effort).await,
            Measure::Restarts => restarts::measure(program, effort).await,
            Measure::Idle => idle::measure(program, effort).await,
        }
    }
}

/// The results of a group of measurements.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// How the results were measured.
    pub(crate) how: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// The results of one measurement.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) sample: Sample,
    pub(crate) budget: Option<Budget>,
}

/// The limit below which a result should stay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Budget {
    pub(crate) limit: f64,
    pub(crate) applies_to: AppliesTo,
}

/// Which statistic a budget applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AppliesTo {
    Median,
    /// The 99th percentile.
    Percentile99,
}

impl Row {
    fn new(what: impl Into<String>, unit: &'static str, values: Vec<f64>) -> Result<Row> {
        let what = what.into();
        let sample = Sample::new(values).with_context(|| format!("no results for `{what}`"))?;
        Ok(Row { what, unit, sample, budget: None })
    }

    fn within(self, limit: f64, applies_to: AppliesTo) -> Row {
        Row { budget: Some(Budget { limit, applies_to }), ..self }
    }
}
