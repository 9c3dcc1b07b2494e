//! The code at the start of a system call in a 64-bit process, and the jumps that replace it.
//!
//! `ntdll` and `win32u` of Windows 10 and later (and of Wine) enter the kernel with
//! `4C 8B D1 | B8 number | F6 04 25 08 03 FE 7F 01 | 75 03 | 0F 05 | C3`. A hook
//! replaces the first five bytes by a jump. The trampoline runs the two instructions that
//! the jump damages, which do not depend on their address, and continues after them.

/// How much of a function's code is read.
pub const CODE_SIZE: usize = 21;

/// The size of a trampoline.
pub const TRAMPOLINE_SIZE: usize = REPLACED + FAR_JUMP_SIZE;

/// The two instructions that the jump damages: `mov r10, rcx` and `mov eax, number`.
const REPLACED: usize = 8;

/// `jmp [rip]` and the address.
const FAR_JUMP_SIZE: usize = 14;

/// `jmp` with a 32-bit distance.
pub(crate) const NEAR_JUMP: u8 = 0xE9;
pub(crate) const NEAR_JUMP_SIZE: usize = 5;

/// What the code of a function is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stub {
    /// A system call that nobody has hooked.
    SystemCall,
    /// A jump to this address: another program has hooked the function.
    Hooked(u64),
    /// Wine's code for a function that it does not have.
    NotImplemented,
    /// Anything else.
    Unknown,
}

impl Stub {
    /// Recognises the function whose `code` lies at `address`.
    #[must_use]
    pub fn of(code: &[u8; CODE_SIZE], address: u64) -> Stub {
        match code {
            [
                0x4C,
                0x8B,
                0xD1,
                0xB8,
                _,
                _,
                _,
                _,
                0xF6,
                0x04,
                0x25,
                0x08,
                0x03,
                0xFE,
                0x7F,
                0x01,
                0x75,
                0x03,
                0x0F,
                0x05,
                0xC3,
            ] => Stub::SystemCall,
            [NEAR_JUMP, a, b, c, d, ..] => {
                let distance = i64::from(i32::from_le_bytes([*a, *b, *c, *d]));
                let after = address.wrapping_add(NEAR_JUMP_SIZE as u64);
                Stub::Hooked(after.wrapping_add_signed(distance))
            }
            // `sub rsp, 28h; lea rcx, …; lea rdx, …; call`, which raises an exception.
            [
                0x48,
                0x83,
                0xEC,
                0x28,
                0x48,
                0x8D,
                0x0D,
                _,
                _,
                _,
                _,
                0x48,
                0x8D,
                0x15,
                _,
                _,
                _,
                _,
                0xE8,
                ..,
            ] => Stub::NotImplemented,
            _ => Stub::Unknown,
        }
    }

    /// Code that does what the function did before its first bytes were replaced; `None` if
    /// that is not known.
    #[must_use]
    pub fn trampoline(self, code: &[u8; CODE_SIZE], address: u64) -> Option<[u8; TRAMPOLINE_SIZE]> {
        let mut trampoline = [0xCC; TRAMPOLINE_SIZE];
        match self {
            Stub::SystemCall => {
                let (replaced, jump) = trampoline.split_at_mut(REPLACED);
                replaced.copy_from_slice(&code[..REPLACED]);
                jump.copy_from_slice(&far_jump(address.wrapping_add(REPLACED as u64)));
            }
            Stub::Hooked(target) => {
                trampoline[..FAR_JUMP_SIZE].copy_from_slice(&far_jump(target));
            }
            Stub::NotImplemented | Stub::Unknown => return None,
        }
        Some(trampoline)
    }
}

/// A jump to any address. It changes no register.
#[must_use]
pub fn far_jump(target: u64) -> [u8; FAR_JUMP_SIZE] {
    let mut code = [0xFF, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    code[6..].copy_from_slice(&target.to_le_bytes());
    code
}

/// A jump from `address` to `target`, if that is at most 2 GiB away.
#[must_use]
pub fn near_jump(address: u64, target: u64) -> Option<[u8; NEAR_JUMP_SIZE]> {
    let after = address.wrapping_add(NEAR_JUMP_SIZE as u64);
    let distance = i32::try_from(target.wrapping_sub(after).cast_signed()).ok()?;
    let [a, b, c, d] = distance.to_le_bytes();
    Some([NEAR_JUMP, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `NtGdiDdDDIEnumAdapters2` of Wine 10.
    const SYSTEM_CALL: [u8; CODE_SIZE] = [
        0x4C, 0x8B, 0xD1, 0xB8, 0x2E, 0x10, 0, 0, 0xF6, 0x04, 0x25, 0x08, 0x03, 0xFE, 0x7F, 1,
        0x75, 3, 0x0F, 0x05, 0xC3,
    ];

    /// `NtDxgkEnumAdapters3` of Wine 10.
    const NOT_IMPLEMENTED: [u8; CODE_SIZE] = [
        0x48, 0x83, 0xEC, 0x28, 0x48, 0x8D, 0x0D, 0xCD, 0xE7, 0, 0, 0x48, 0x8D, 0x15, 0x12, 0xF3,
        0, 0, 0xE8, 0x91, 0xD6,
    ];

    #[test]
    fn known_code_is_recognised_and_other_code_is_not() {
        assert_eq!(Stub::of(&SYSTEM_CALL, 0), Stub::SystemCall);
        assert_eq!(Stub::of(&NOT_IMPLEMENTED, 0), Stub::NotImplemented);
        for changed in [0, 3, 8, 15, 17, 19, 20] {
            let mut code = SYSTEM_CALL;
            code[changed] ^= 0x40;
            assert_eq!(Stub::of(&code, 0), Stub::Unknown, "byte {changed}");
            assert_eq!(Stub::Unknown.trampoline(&code, 0), None);
        }
    }

    #[test]
    fn a_trampoline_runs_what_the_jump_damages_and_continues_after_it() {
        let address = 0x7FFE_1234_5678;
        let code = Stub::SystemCall.trampoline(&SYSTEM_CALL, address).unwrap();
        assert_eq!(code[..8], SYSTEM_CALL[..8]);
        assert_eq!(code[8..14], [0xFF, 0x25, 0, 0, 0, 0]);
        assert_eq!(code[14..], (address + 8).to_le_bytes());
    }

    #[test]
    fn a_foreign_hook_stays_in_the_chain() {
        let mut code = SYSTEM_CALL;
        code[..5].copy_from_slice(&near_jump(0x1000, 0x0FF0).unwrap());
        let stub = Stub::of(&code, 0x1000);
        assert_eq!(stub, Stub::Hooked(0x0FF0));
        assert_eq!(stub.trampoline(&code, 0x1000).unwrap()[..14], far_jump(0x0FF0));
    }

    proptest! {
        #[test]
        fn a_near_jump_reaches_its_target(address: u32, distance: i32) {
            let address = 0x7FF0_0000_0000 + u64::from(address);
            let target = (address + 5).wrapping_add_signed(i64::from(distance));
            let mut code = SYSTEM_CALL;
            code[..5].copy_from_slice(&near_jump(address, target).unwrap());
            prop_assert_eq!(Stub::of(&code, address), Stub::Hooked(target));
            let too_far = (address + 5).wrapping_add(0x8000_0000);
            prop_assert_eq!(near_jump(address, too_far), None);
        }
    }
}
