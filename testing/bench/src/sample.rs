//! The values of a repeated measurement, and their statistics.

use std::time::Duration;

/// The values of one measurement, in ascending order. There is at least one value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// Creates a sample from values in any order. Returns `None` if there are no values.
    pub(crate) fn new(mut values: Vec<f64>) -> Option<Sample> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Sample(values))
    }

    /// The number of values.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The percentile by the nearest-rank method: the smallest value such that at least `percent`
    /// percent of all values are not larger.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).clamp(1, self.0.len());
        self.0[rank - 1]
    }

    /// The median.
    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }
}

/// Converts a duration to milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Converts a duration to microseconds.
pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
