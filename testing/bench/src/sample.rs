//! Figures of one thing, measured many times.

use std::time::Duration;

/// One thing's figures, in ascending order; never none.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// The figures, in any order; `None` where there are none.
    pub(crate) fn new(mut figures: Vec<f64>) -> Option<Sample> {
        figures.sort_by(f64::total_cmp);
        (!figures.is_empty()).then_some(Sample(figures))
    }

    /// How many figures there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest figure that is not below `percent` of all (nearest rank).
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).clamp(1, self.0.len());
        self.0[rank - 1]
    }

    /// The middle figure.
    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }
}

/// A time in milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A time in microseconds.
pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp, reason = "percentiles are figures as they were given")]
    fn percentiles_are_figures_that_were_measured() {
        let hundred = Sample::new((1..=100).rev().map(f64::from).collect()).unwrap();
        let told = [0, 1, 5, 50, 95, 99, 100].map(|percent| hundred.percentile(percent));
        assert_eq!(told, [1.0, 1.0, 5.0, 50.0, 95.0, 99.0, 100.0]);
        let three = Sample::new(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((three.median(), three.percentile(99), three.count()), (2.0, 3.0, 3));
        assert_eq!(Sample::new(Vec::new()), None);
    }
}
