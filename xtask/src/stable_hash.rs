//! A short hash that is the same for every process and every version of Rust.

/// The FNV-1a hash (64 bits, in hexadecimal) of `parts`, each with its length, so
/// that `["ab", "c"]` and `["a", "bc"]` differ.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    let hash = parts.iter().fold(OFFSET_BASIS, |hash, part| {
        let hash = part.len().to_le_bytes().iter().fold(hash, step);
        part.iter().fold(hash, step)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_every_part_and_on_where_parts_end() {
        let original = hash(&[b"ab", b"c"]);
        assert_eq!(original, hash(&[b"ab", b"c"]));
        for other in [&[b"a".as_slice(), b"bc"][..], &[b"abc"], &[b"ab", b"d"]] {
            assert_ne!(original, hash(other));
        }
    }
}
