//! What is measured, in groups, each with its budget.

mod calls;
mod changes;
mod comebacks;
mod idling;
mod size;
mod starts;

use std::path::Path;

use anyhow::{Context, Result};

use crate::node::Shape;
use crate::sample::Sample;

/// The resource of the node's GPUs.
const RESOURCE: &str = "directx.microsoft.com/display";

/// The shape of most budgets: eight GPUs shared by 16 containers each.
const SHARED: Shape = Shape { slots: 128, files: 16 };

/// The most slots that any budget is about.
const MANY: Shape = Shape { slots: 16_384, files: 16 };

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// Enough for figures that come out alike the next time; some minutes.
    Full,
    /// Enough to see that everything can be measured; some seconds.
    Quick,
}

impl Effort {
    /// How often something is measured that is measured `full` times for good figures.
    fn times(self, full: usize) -> usize {
        match self {
            Effort::Full => full,
            Effort::Quick => (full / 20).max(2),
        }
    }
}

/// A group of figures to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Measure {
    Size,
    Starts,
    Calls,
    Changes,
    Comebacks,
    Idling,
}

impl Measure {
    /// All of them, in the order of the report.
    pub(crate) const ALL: [Measure; 6] = [
        Measure::Size,
        Measure::Starts,
        Measure::Calls,
        Measure::Changes,
        Measure::Comebacks,
        Measure::Idling,
    ];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Measure::Size => "size",
            Measure::Starts => "starts",
            Measure::Calls => "calls",
            Measure::Changes => "changes",
            Measure::Comebacks => "comebacks",
            Measure::Idling => "idling",
        }
    }

    /// The group of this name.
    pub(crate) fn named(name: &str) -> Result<Measure> {
        let names = Measure::ALL.map(Measure::name).join(", ");
        let found = Measure::ALL.into_iter().find(|measure| measure.name() == name);
        found.with_context(|| format!("`{name}` is no group; they are {names}"))
    }

    /// Measures it with `program`.
    pub(crate) async fn run(self, program: &Path, effort: Effort) -> Result<Group> {
        match self {
            Measure::Size => size::measure(program),
            Measure::Starts => starts::measure(program, effort).await,
            Measure::Calls => calls::measure(program, effort).await,
            Measure::Changes => changes::measure(program, effort).await,
            Measure::Comebacks => comebacks::measure(program, effort).await,
            Measure::Idling => idling::measure(program, effort).await,
        }
    }
}

/// Figures that belong together.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// How they were measured.
    pub(crate) how: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// Figures of one thing.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) sample: Sample,
    pub(crate) budget: Option<Budget>,
}

/// What a figure should stay below.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Budget {
    pub(crate) limit: f64,
    pub(crate) holds_for: HoldsFor,
}

/// Which of the figures a budget is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HoldsFor {
    Median,
    /// 99 of 100.
    NearlyAll,
}

impl Row {
    fn new(what: impl Into<String>, unit: &'static str, figures: Vec<f64>) -> Result<Row> {
        let what = what.into();
        let sample = Sample::new(figures).with_context(|| format!("no figures of: {what}"))?;
        Ok(Row { what, unit, sample, budget: None })
    }

    fn within(self, limit: f64, holds_for: HoldsFor) -> Row {
        Row { budget: Some(Budget { limit, holds_for }), ..self }
    }
}
