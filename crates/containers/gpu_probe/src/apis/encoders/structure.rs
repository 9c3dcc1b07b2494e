//! A structure of a C header, of which only some fields are used.

/// A structure as 64-bit words, all zero but for the fields that were set.
pub(super) struct Structure(Vec<u64>);

/// A field of 32 or 64 bits, by its offset in bytes.
pub(super) type Field = usize;

impl Structure {
    /// `size` is in bytes.
    pub(super) fn new(size: usize) -> Structure {
        Structure(vec![0; size.div_ceil(8)])
    }

    pub(super) fn with_u32(mut self, field: Field, value: u32) -> Structure {
        let (word, shift) = (&mut self.0[field / 8], field % 8 * 8);
        *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
        self
    }

    pub(super) fn with_u64(mut self, field: Field, value: u64) -> Structure {
        self.0[field / 8] = value;
        self
    }

    pub(super) fn with_bytes(mut self, field: Field, bytes: [u8; 16]) -> Structure {
        for (index, part) in bytes.as_chunks().0.iter().enumerate() {
            self = self.with_u32(field + index * 4, u32::from_le_bytes(*part));
        }
        self
    }

    pub(super) fn u32(&self, field: Field) -> u32 {
        let shifted = self.0[field / 8] >> (field % 8 * 8);
        u32::try_from(shifted & u64::from(u32::MAX)).unwrap_or_default()
    }

    pub(super) fn u64(&self, field: Field) -> u64 {
        self.0[field / 8]
    }

    /// The address of the structure, for a call that reads and writes it.
    pub(super) fn start(&mut self) -> *mut u64 {
        self.0.as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overwrite_each_other() {
        let mut structure = Structure::new(28).with_u64(8, u64::MAX).with_u32(12, 5);
        structure = structure.with_u32(4, 7).with_bytes(12, *b"0123456789abcdef");
        let words = [structure.u32(0), structure.u32(4), structure.u32(8), structure.u32(12)];
        assert_eq!(words, [0, 7, u32::MAX, u32::from_le_bytes(*b"0123")]);
        assert_eq!(structure.u64(16), u64::from_le_bytes(*b"456789ab"));
        assert!(!structure.start().is_null());
    }
}
