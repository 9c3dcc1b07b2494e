//! A small convolutional network with generated weights: its input, its result and its latency.
//!
//! All values are small integers, so that devices with less precise numbers compute them too.

use std::sync::OnceLock;
use std::time::Duration;

use crate::outcome::{Fault, Measurement};
use crate::workload::{self, mix};

/// The input and the output of each layer: one image with its channels, height and width.
pub(crate) const VALUES_SHAPE: [u32; 4] = [1, 8, 32, 32];
/// The weights of a layer: a filter of three by three pixels for each output channel and each
/// input channel. The edges of the input are padded with zeros.
pub(crate) const WEIGHTS_SHAPE: [u32; 4] = [8, 8, 3, 3];
const CHANNELS: usize = VALUES_SHAPE[1] as usize;
const SIDE: usize = VALUES_SHAPE[2] as usize;
const FILTER: usize = WEIGHTS_SHAPE[2] as usize;
/// The number of layers. Each is a convolution, which replaces negative sums by zero.
pub(crate) const LAYERS: usize = 3;
/// The number of values between two layers.
pub(crate) const VALUES: usize = CHANNELS * SIDE * SIDE;
/// The number of weights of a layer.
pub(crate) const WEIGHTS: usize = CHANNELS * CHANNELS * FILTER * FILTER;

/// The input: 0 to 3.
pub(crate) fn input() -> Vec<f32> {
    (0..VALUES).map(|index| small(index, 4)).collect()
}

/// The weights of all layers: -1, 0 or 1.
pub(crate) fn weights() -> Vec<f32> {
    (VALUES..VALUES + LAYERS * WEIGHTS).map(|index| small(index, 3) - 1.0).collect()
}

/// An integer below `end` that looks random.
fn small(index: usize, end: u32) -> f32 {
    let seed = u32::try_from(index).unwrap_or(u32::MAX);
    f32::from(u16::try_from(mix(seed.wrapping_add(1)) % end).unwrap_or_default())
}

/// The right result, computed by the CPU.
fn expected() -> &'static [f32] {
    static EXPECTED: OnceLock<Vec<f32>> = OnceLock::new();
    EXPECTED.get_or_init(|| weights().chunks(WEIGHTS).fold(input(), |values, w| layer(&values, w)))
}

fn layer(values: &[f32], weights: &[f32]) -> Vec<f32> {
    let mut output = Vec::with_capacity(VALUES);
    for filters in weights.chunks(CHANNELS * FILTER * FILTER) {
        for y in 0..SIDE {
            for x in 0..SIDE {
                output.push(pixel(values, filters, y, x));
            }
        }
    }
    output
}

/// The value of an output channel at a pixel. `filters` has a filter for each input channel.
fn pixel(values: &[f32], filters: &[f32], y: usize, x: usize) -> f32 {
    let mut sum = 0.0;
    for (input, filter) in filters.chunks(FILTER * FILTER).enumerate() {
        for (index, weight) in filter.iter().enumerate() {
            // The middle of the filter is at the pixel.
            let (row, column) = (y + index / FILTER, x + index % FILTER);
            if (1..=SIDE).contains(&row) && (1..=SIDE).contains(&column) {
                sum += weight * values[(input * SIDE + row - 1) * SIDE + column - 1];
            }
        }
    }
    f32::max(sum, 0.0)
}

/// Compares a device's result with the CPU's. Devices may use faster and less precise methods for
/// convolutions; a hundredth of the largest value is allowed.
pub(crate) fn verify(result: &[f32]) -> Result<(), Fault> {
    let expected = expected();
    let allowed = expected.iter().fold(0.0, |a: f32, b| a.max(*b)) / 100.0;
    workload::compare(
        "value",
        result,
        expected,
        |found, right| (found - right).abs() <= allowed,
        f32::to_string,
    )
}

/// The latencies that 50, 90 and 99 percent of the runs do not exceed.
pub(crate) fn percentiles(mut times: Vec<Duration>) -> Vec<Measurement> {
    times.sort_unstable();
    let mut measurements = Vec::new();
    for (name, percent) in [("latency p50", 50), ("latency p90", 90), ("latency p99", 99)] {
        let rank = (times.len() * percent).div_ceil(100).max(1) - 1;
        let time = times.get(rank).copied().unwrap_or_default();
        measurements.push(Measurement::new(name, time.as_secs_f64() * 1e3, "ms"));
    }
    measurements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_with_one_weight_copies_a_neighbour() {
        let mut weights = vec![0.0; WEIGHTS];
        // The left neighbour in channel 1 goes to channel 0.
        weights[FILTER * FILTER + 3] = 1.0;
        let (input, output) = (input(), layer(&input(), &weights));
        assert!(output[0].abs() < f32::EPSILON && output[VALUES - 1].abs() < f32::EPSILON);
        assert_eq!(output[1..SIDE], input[SIDE * SIDE..SIDE * SIDE + SIDE - 1]);
    }

    #[test]
    fn the_result_is_neither_trivial_nor_inexact() {
        let expected = expected();
        let largest = expected.iter().fold(0.0, |a: f32, b| a.max(*b));
        assert!(largest > 100.0 && largest < 16_777_216.0, "{largest}");
        let positive = expected.iter().filter(|value| **value > 0.0).count();
        assert!(positive > VALUES / 10, "{positive}");
    }

    #[test]
    fn wrong_values_are_found() {
        let mut result = expected().to_vec();
        assert_eq!(verify(&result), Ok(()));
        assert!(verify(&result[1..VALUES]).is_err());
        assert!(verify(&result[..VALUES - 1]).is_err());
        result[7] = f32::NAN;
        let message = verify(&result).unwrap_err().message;
        let start = "wrong result: 1 of 8192 values differ; value 7 is NaN instead of ";
        assert!(message.starts_with(start), "{message}");
        assert!(verify(&vec![0.0; VALUES]).is_err());
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        let values: Vec<f64> = percentiles(times).iter().map(|m| m.value).collect();
        assert!(values.iter().zip([50.0, 90.0, 99.0]).all(|(a, b)| (a - b).abs() < 1e-9));
        assert_eq!(percentiles(Vec::new()).len(), 3);
    }
}
