//! What every group of measurements has: the effort, and results with budgets.

use crate::sample::Sample;
use anyhow::{Context, Result};

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
    pub(crate) fn times(self, full: usize) -> usize {
        match self {
            Effort::Full => full,
            Effort::Quick => (full / 20).max(2),
        }
    }
}

/// The results of a group of measurements.
pub(crate) struct Group {
    pub(crate) title: &'static str,
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
    pub(crate) fn new(
        what: impl Into<String>,
        unit: &'static str,
        values: Vec<f64>,
    ) -> Result<Row> {
        let what = what.into();
        let sample = Sample::new(values).with_context(|| format!("no results for `{what}`"))?;
        Ok(Row { what, unit, sample, budget: None })
    }

    pub(crate) fn within(self, limit: f64, applies_to: AppliesTo) -> Row {
        Row { budget: Some(Budget { limit, applies_to }), ..self }
    }
}
