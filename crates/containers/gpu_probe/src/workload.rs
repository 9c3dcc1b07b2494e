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

// Each thread writes one word.
const _: () = assert!(GROUP as usize * GROUPS as usize == WORDS);

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
    compare(result, expected())
}

/// Compares the words that a device computed with the `expected` ones.
pub(crate) fn compare(result: &[u32], expected: &[u32]) -> Result<(), Fault> {
    let length = result.len();
    let total = expected.len();
    if length != total {
        return Err(Fault::new(format!("wrong result: {length} words instead of {total}")));
    }
    let words = result.iter().zip(expected).enumerate();
    let wrong: Vec<_> = words.filter(|(_, (found, right))| found != right).collect();
    let Some((index, (found, right))) = wrong.first() else { return Ok(()) };
    Err(Fault::new(format!(
        "wrong result: {} of {total} words differ; word {index} is {found:#010x} instead of \
         {right:#010x}",
        wrong.len()
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
        // The first words come from the reference implementation, `fmix32`.
        assert_eq!([mix(0), mix(1), mix(2)], [0, 0x514e_28b7, 0x30f4_c306]);
    }
}
