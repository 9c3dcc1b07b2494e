//! The computation that every API runs, and its verification on the CPU.
//!
//! Word `i` of the result is [`mix`] applied [`ROUNDS`] times to `i + 1`. Integers have one right
//! result on every device, and a result that is wrong in one bit differs in half of its bits.
//! `kernels/` contains the same computation for each API.

use std::sync::OnceLock;

use crate::outcome::Fault;

/// The number of words of a result. Every kernel has 1,024 groups of 64 threads.
pub(crate) const WORDS: usize = 65_536;
/// The number of threads of a group.
pub(crate) const GROUP: u32 = 64;
/// The number of groups of a kernel.
pub(crate) const GROUPS: u32 = 1_024;
/// The size of a result in bytes.
pub(crate) const BYTES: usize = WORDS * size_of::<u32>();
/// How often [`mix`] is applied to each word.
const ROUNDS: u32 = 256;
/// The integer operations of [`mix`].
const OPERATIONS: u32 = 8;

/// The integer operations of one run of the kernel.
pub(crate) fn operations() -> f64 {
    f64::from(GROUP) * f64::from(GROUPS) * f64::from(ROUNDS) * f64::from(OPERATIONS)
}

/// The finalizer of `MurmurHash3`: each bit of the input changes about half of the output.
pub(crate) const fn mix(mut word: u32) -> u32 {
    word ^= word >> 16;
    word = word.wrapping_mul(0x85eb_ca6b);
    word ^= word >> 13;
    word = word.wrapping_mul(0xc2b2_ae35);
    word ^ (word >> 16)
}

/// The right result, computed by the CPU.
pub(crate) fn expected() -> &'static [u32] {
    static EXPECTED: OnceLock<Vec<u32>> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        (1..=GROUP * GROUPS).map(|start| (0..ROUNDS).fold(start, |word, _| mix(word))).collect()
    })
}

/// Compares a device's result with the CPU's.
pub(crate) fn verify(result: &[u32]) -> Result<(), Fault> {
    compare_words(result, expected())
}

/// Compares a device's points in the quarter of a circle with the CPU's. The words of each step
/// are the points of a thread: two coordinates of 15 bits.
pub(crate) fn verify_hits(hits: &[u32]) -> Result<(), Fault> {
    let expected: Vec<u32> = (1..=GROUP * GROUPS).map(count_hits).collect();
    compare_words(hits, &expected)
}

/// The number of a thread's points that are in the quarter of a circle.
fn count_hits(start: u32) -> u32 {
    let (mut word, mut hits) = (start, 0);
    for _ in 0..ROUNDS {
        word = mix(word);
        let (x, y) = (word & 0x7fff, word >> 16 & 0x7fff);
        hits += u32::from(x * x + y * y < 1 << 30);
    }
    hits
}

/// The estimate of π from the points of all threads.
pub(crate) fn pi(hits: &[u32]) -> f64 {
    let hits: f64 = hits.iter().map(|hits| f64::from(*hits)).sum();
    4.0 * hits / (f64::from(GROUP * GROUPS) * f64::from(ROUNDS))
}

fn compare_words(result: &[u32], expected: &[u32]) -> Result<(), Fault> {
    compare("word", result, expected, u32::eq, |word| format!("{word:#010x}"))
}

/// Compares a device's values, each a `noun`, with the `expected` ones.
pub(crate) fn compare<T>(
    noun: &str,
    result: &[T],
    expected: &[T],
    is_right: impl Fn(&T, &T) -> bool,
    shown: impl Fn(&T) -> String,
) -> Result<(), Fault> {
    let (length, total) = (result.len(), expected.len());
    if length != total {
        return Err(Fault::new(format!("wrong result: {length} {noun}s instead of {total}")));
    }
    let pairs = result.iter().zip(expected).enumerate();
    let wrong: Vec<_> = pairs.filter(|(_, (found, right))| !is_right(found, right)).collect();
    let Some((index, (found, right))) = wrong.first() else { return Ok(()) };
    Err(Fault::new(format!(
        "wrong result: {} of {total} {noun}s differ; {noun} {index} is {} instead of {}",
        wrong.len(),
        shown(found),
        shown(right)
    ))
    .hint("check the device's memory and driver: the device computes, but not correctly"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_bit_is_found_and_named() {
        let mut result = expected().to_vec();
        assert_eq!(verify(&result), Ok(()));
        result[17] ^= 1;
        let message = verify(&result).unwrap_err().message;
        assert!(message.starts_with("wrong result: 1 of 65536 words differ; word 17 is "));
    }

    #[test]
    fn a_result_that_is_cut_is_wrong() {
        let message = verify(&expected()[1..]).unwrap_err().message;
        assert_eq!(message, "wrong result: 65535 words instead of 65536");
    }

    #[test]
    fn the_mixing_function_is_that_of_murmurhash3() {
        // The first words are those of the reference implementation, `fmix32`.
        assert_eq!([mix(0), mix(1), mix(2)], [0, 0x514e_28b7, 0x30f4_c306]);
    }
}
