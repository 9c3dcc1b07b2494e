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

/// Measures everything with `program`.
pub(crate) async fn all(program: &Path, effort: Effort) -> Result<Vec<Group>> {
    Ok(vec![
        size::measure(program)?,
        starts::measure(program, effort).await?,
        calls::measure(program, effort).await?,
        changes::measure(program, effort).await?,
        comebacks::measure(program, effort).await?,
        idling::measure(program, effort).await?,
    ])
}
