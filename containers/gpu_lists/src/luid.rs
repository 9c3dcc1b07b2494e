//! LUIDs as one number.

use windows::Win32::Foundation::LUID;

pub(crate) fn number(luid: LUID) -> i64 {
    i64::from(luid.HighPart) << 32 | i64::from(luid.LowPart)
}

pub(crate) fn structure(number: i64) -> LUID {
    // Both halves fit.
    LUID {
        LowPart: u32::try_from(number & 0xffff_ffff).unwrap_or_default(),
        HighPart: i32::try_from(number >> 32).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_device_plugin() {
        for luid in [0, 7_098_126, -1, 0x1_ffff_fff0, i64::MIN] {
            assert_eq!(number(structure(luid)), luid);
        }
        assert_eq!(number(LUID { LowPart: 0xffff_fff0, HighPart: 1 }), 0x1_ffff_fff0);
    }
}
