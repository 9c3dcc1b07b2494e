//! The code at the start of a system call in a 32-bit process, and the jumps that replace it.
//!
//! `ntdll` and `win32u` of Windows 10 and later (and of Wine) have
//! `B8 number | BA address | FF D2 | C2 size`. A hook replaces the first instruction by a
//! jump, which reaches every address. The trampoline runs that instruction, which does not
//! depend on its address, and continues after it.

use crate::stub::{CODE_SIZE, NEAR_JUMP, NEAR_JUMP_SIZE, Stub};

/// The size of a trampoline in a 32-bit process.
pub const TRAMPOLINE_SIZE_X86: usize = REPLACED + NEAR_JUMP_SIZE;

/// The instruction that the jump replaces: `mov eax, number`.
const REPLACED: usize = NEAR_JUMP_SIZE;

/// The distance from that instruction, or from a jump, to the next one.
const NEXT: u32 = 5;

impl Stub {
    /// Recognises the function of a 32-bit process whose `code` lies at `address`.
    #[must_use]
    pub fn of_x86(code: &[u8; CODE_SIZE], address: u32) -> Stub {
        match code {
            // `ret` with the size of the arguments, or without it if there are none.
            [0xB8, _, _, _, _, 0xBA, _, _, _, _, 0xFF, 0xD2, 0xC2 | 0xC3, ..] => Stub::SystemCall,
            [NEAR_JUMP, a, b, c, d, ..] => {
                let distance = u32::from_le_bytes([*a, *b, *c, *d]);
                let after = address.wrapping_add(NEXT);
                Stub::Hooked(after.wrapping_add(distance).into())
            }
            _ if is_not_implemented(code) => Stub::NotImplemented,
            _ => Stub::Unknown,
        }
    }

    /// Code for `place` that does what the function of a 32-bit process did before its first
    /// bytes were replaced; `None` if that is not known.
    #[must_use]
    pub fn trampoline_x86(
        self,
        code: &[u8; CODE_SIZE],
        address: u32,
        place: u32,
    ) -> Option<[u8; TRAMPOLINE_SIZE_X86]> {
        let mut trampoline = [0xCC; TRAMPOLINE_SIZE_X86];
        match self {
            Stub::SystemCall => {
                let jump = near_jump_x86(place.wrapping_add(NEXT), address.wrapping_add(NEXT));
                trampoline[..REPLACED].copy_from_slice(&code[..REPLACED]);
                trampoline[REPLACED..].copy_from_slice(&jump);
            }
            Stub::Hooked(target) => {
                let jump = near_jump_x86(place, u32::try_from(target).ok()?);
                trampoline[..NEAR_JUMP_SIZE].copy_from_slice(&jump);
            }
            Stub::NotImplemented | Stub::Unknown => return None,
        }
        Some(trampoline)
    }
}

/// Wine's code for a function that it does not have: `sub esp, 12; mov [esp+4], …`, which may
/// begin with instructions that do nothing.
fn is_not_implemented(code: &[u8; CODE_SIZE]) -> bool {
    let start = code.iter().position(|byte| *byte != 0x90).unwrap_or_default();
    code[start..].starts_with(&[0x83, 0xEC, 0x0C, 0xC7, 0x44, 0x24, 0x04])
}

/// A jump from `address` to any `target` of a 32-bit process.
#[must_use]
pub fn near_jump_x86(address: u32, target: u32) -> [u8; NEAR_JUMP_SIZE] {
    let after = address.wrapping_add(NEXT);
    let [a, b, c, d] = target.wrapping_sub(after).to_le_bytes();
    [NEAR_JUMP, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `NtGdiDdDDIEnumAdapters2` of Wine 10, and what follows it.
    const SYSTEM_CALL: [u8; CODE_SIZE] = [
        0xB8, 0x2E, 0x10, 0, 0, 0xBA, 0xC4, 0xD0, 0, 0x10, 0xFF, 0xD2, 0xC2, 4, 0, 0x90, 0xB8,
        0x2F, 0x10, 0, 0,
    ];

    /// `NtDxgkEnumAdapters3` of Wine 10.
    const NOT_IMPLEMENTED: [u8; CODE_SIZE] = [
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x83, 0xEC, 0x0C, 0xC7, 0x44, 0x24,
        4, 0x4C, 0x0B, 1, 0x10, 0xC7,
    ];

    #[test]
    fn known_code_is_recognised_and_other_code_is_not() {
        assert_eq!(Stub::of_x86(&SYSTEM_CALL, 0), Stub::SystemCall);
        assert_eq!(Stub::of_x86(&NOT_IMPLEMENTED, 0), Stub::NotImplemented);
        let mut without_nops = [0; CODE_SIZE];
        without_nops[..12].copy_from_slice(&NOT_IMPLEMENTED[9..]);
        assert_eq!(Stub::of_x86(&without_nops, 0), Stub::NotImplemented);
        for changed in [0, 5, 10, 11, 12] {
            let mut code = SYSTEM_CALL;
            code[changed] ^= 0x40;
            assert_eq!(Stub::of_x86(&code, 0), Stub::Unknown, "byte {changed}");
            assert_eq!(Stub::Unknown.trampoline_x86(&code, 0, 0), None);
        }
        assert_eq!(Stub::of_x86(&[0x90; CODE_SIZE], 0), Stub::Unknown);
    }

    #[test]
    fn a_trampoline_runs_what_the_jump_replaces_and_continues_after_it() {
        let (address, place) = (0x7BC0_C130, 0x0040_0000);
        let code = Stub::SystemCall.trampoline_x86(&SYSTEM_CALL, address, place).unwrap();
        assert_eq!(code[..5], SYSTEM_CALL[..5]);
        assert_eq!(code[5..], near_jump_x86(place + 5, address + 5));
    }

    proptest! {
        #[test]
        fn a_jump_reaches_every_address_and_stays_in_the_chain(
            address: u32, target: u32, place: u32,
        ) {
            let mut code = SYSTEM_CALL;
            code[..5].copy_from_slice(&near_jump_x86(address, target));
            let stub = Stub::of_x86(&code, address);
            prop_assert_eq!(stub, Stub::Hooked(target.into()));
            let trampoline = stub.trampoline_x86(&code, address, place).unwrap();
            prop_assert_eq!(&trampoline[..5], &near_jump_x86(place, target));
        }
    }
}
