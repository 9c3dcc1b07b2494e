//! SHA-256 digests as OCI documents write them.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Such as `sha256:e3b0c442…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest {
    hex: String,
}

impl Digest {
    /// The digest of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Digest {
        let hash = Sha256::digest(bytes);
        let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        Digest {
            hex: digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect(),
        }
    }

    /// The digest in 64 lower-case hexadecimal digits, without the name of the algorithm.
    pub(crate) fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_an_empty_text() {
        let expected = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), expected);
        assert_eq!(Digest::of(b"").hex(), &expected[7..]);
    }
}
