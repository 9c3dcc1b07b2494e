//! The code at the start of a system call, and the jumps that replace it.
//!
//! The first five bytes of a hooked function become a jump to a relay near it. The relay jumps to
//! the hook. To call the real function, the hook calls its trampoline: a copy of the overwritten
//! instructions, and a jump to the instruction after them. The overwritten instructions do not
//! depend on their address.

/// How much of a function's code is read.
pub(crate) const CODE_SIZE: usize = 21;

/// The code of a function.
pub(crate) type Code = [u8; CODE_SIZE];

/// The size of the longest trampoline.
const TRAMPOLINE_SIZE: usize = 22;

/// `jmp` with a 32-bit distance.
const NEAR_JUMP: u8 = 0xE9;
const NEAR_JUMP_SIZE: usize = 5;

/// The kind of code that a function has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stub {
    /// A system call that is not hooked.
    SystemCall,
    /// A jump to this address: another program has hooked the function.
    Hooked(u64),
    /// The code that Wine puts in place of a function that it does not implement. It raises an
    /// exception.
    WinePlaceholder,
    /// Code that is none of these.
    Unknown,
}

/// Encodes `jmp rel32`. The caller ensures that `target` is within ±2 GiB.
fn near_jump(address: u64, target: u64) -> [u8; NEAR_JUMP_SIZE] {
    let after = address.wrapping_add(NEAR_JUMP_SIZE as u64);
    let [a, b, c, d, ..] = target.wrapping_sub(after).to_le_bytes();
    [NEAR_JUMP, a, b, c, d]
}

/// Code for `place` that does what the function at `address` did before a jump replaced its
/// instructions `replaced`. `jump` encodes a jump from a place to a target. Returns `None` if the
/// code of the function is not known.
pub(crate) fn trampoline<const SIZE: usize>(
    stub: Stub,
    replaced: &[u8],
    address: u64,
    place: u64,
    jump: fn(u64, u64) -> [u8; SIZE],
) -> Option<[u8; TRAMPOLINE_SIZE]> {
    let size = replaced.len() as u64;
    let (kept, jump) = match stub {
        Stub::SystemCall => (replaced, jump(place.wrapping_add(size), address.wrapping_add(size))),
        Stub::Hooked(target) => (&[][..], jump(place, target)),
        Stub::WinePlaceholder | Stub::Unknown => return None,
    };
    let mut trampoline = [0xCC; TRAMPOLINE_SIZE];
    for (to, from) in trampoline.iter_mut().zip(kept.iter().chain(&jump)) {
        *to = *from;
    }
    Some(trampoline)
}

/// The address to which the `code` at `address` jumps, if it begins with a jump.
fn jump_target(code: &[u8], address: u64) -> Option<u64> {
    let [NEAR_JUMP, a, b, c, d, ..] = *code else { return None };
    let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
    Some(address.wrapping_add(NEAR_JUMP_SIZE as u64).wrapping_add_signed(distance))
}

/// `ntdll` and `win32u` of Windows 10 and later (and of Wine) enter the kernel with
/// `4C 8B D1 | B8 number | F6 04 25 08 03 FE 7F 01 | 75 03 | 0F 05 | C3`.
#[cfg_attr(target_arch = "x86", allow(dead_code, reason = "for tests"))]
pub(crate) mod x86_64 {
    use super::{Code, NEAR_JUMP_SIZE, Stub, jump_target, near_jump};

    /// `mov r10, rcx` and the start of `mov eax, number`.
    const START: [u8; 4] = [0x4C, 0x8B, 0xD1, 0xB8];
    const END: [u8; 13] =
        [0xF6, 0x04, 0x25, 0x08, 0x03, 0xFE, 0x7F, 0x01, 0x75, 0x03, 0x0F, 0x05, 0xC3];

    /// The size of the two instructions that the jump overwrites.
    pub(crate) const REPLACED: usize = 8;

    /// `jmp [rip]` and the address.
    const FAR_JUMP_SIZE: usize = 14;

    /// Recognizes the function with this `code` at `address`.
    pub(crate) fn stub(code: &Code, address: u64) -> Stub {
        if code.starts_with(&START) && code.ends_with(&END) {
            Stub::SystemCall
        } else if let Some(target) = jump_target(code, address) {
            Stub::Hooked(target)
        } else if is_wine_placeholder(code) {
            Stub::WinePlaceholder
        } else {
            Stub::Unknown
        }
    }

    /// A jump from `address` to `relay`, if that is at most 2 GiB away.
    pub(crate) fn jump(address: u64, relay: u64) -> Option<[u8; NEAR_JUMP_SIZE]> {
        let jump = near_jump(address, relay);
        (jump_target(&jump, address) == Some(relay)).then_some(jump)
    }

    /// The relay, which jumps to any address.
    pub(crate) fn relay(_place: u64, target: u64) -> [u8; FAR_JUMP_SIZE] {
        far_jump(target)
    }

    /// Whether the code is `sub rsp, 28h; lea rcx, …; lea rdx, …; call`. The call raises the
    /// exception.
    fn is_wine_placeholder(code: &Code) -> bool {
        code.starts_with(&[0x48, 0x83, 0xEC, 0x28, 0x48, 0x8D, 0x0D])
            && code[11..].starts_with(&[0x48, 0x8D, 0x15])
            && code[18] == 0xE8
    }

    /// A jump to any address. It changes no register.
    fn far_jump(target: u64) -> [u8; FAR_JUMP_SIZE] {
        let mut code = [0xFF, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        code[6..].copy_from_slice(&target.to_le_bytes());
        code
    }
}

/// `ntdll` and `win32u` of Windows 10 and later (and of Wine) have
/// `B8 number | BA address | FF D2 | C2 size` for 32-bit processes. A jump reaches every address.
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "for tests"))]
pub(crate) mod x86 {
    use super::{Code, NEAR_JUMP_SIZE, Stub, jump_target, near_jump};

    /// The size of the instruction that the jump overwrites: `mov eax, number`.
    pub(crate) const REPLACED: usize = NEAR_JUMP_SIZE;

    /// Recognizes the function with this `code` at `address`.
    pub(crate) fn stub(code: &Code, address: u64) -> Stub {
        match code {
            // The code ends with `ret` and the size of the arguments, or with `ret` alone if there
            // are none.
            [0xB8, _, _, _, _, 0xBA, _, _, _, _, 0xFF, 0xD2, 0xC2 | 0xC3, ..] => Stub::SystemCall,
            _ if is_wine_placeholder(code) => Stub::WinePlaceholder,
            _ => jump_target(code, address)
                .map_or(Stub::Unknown, |target| Stub::Hooked(target & u64::from(u32::MAX))),
        }
    }

    /// A jump from `address` to `relay`.
    #[expect(clippy::unnecessary_wraps, reason = "64-bit code may be too far away")]
    pub(crate) fn jump(address: u64, relay: u64) -> Option<[u8; NEAR_JUMP_SIZE]> {
        Some(near_jump(address, relay))
    }

    /// The relay, which jumps to any address.
    pub(crate) fn relay(place: u64, target: u64) -> [u8; NEAR_JUMP_SIZE] {
        near_jump(place, target)
    }

    /// Whether the code is `sub esp, 12; mov [esp+4], …`. Instructions that do nothing may precede
    /// it.
    fn is_wine_placeholder(code: &Code) -> bool {
        let start = code.iter().position(|byte| *byte != 0x90).unwrap_or_default();
        code[start..].starts_with(&[0x83, 0xEC, 0x0C, 0xC7, 0x44, 0x24, 0x04])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `NtGdiDdDDIEnumAdapters2` of Wine 10.
    const SYSTEM_CALL: Code = [
        0x4C, 0x8B, 0xD1, 0xB8, 0x2E, 0x10, 0, 0, 0xF6, 0x04, 0x25, 0x08, 0x03, 0xFE, 0x7F, 1,
        0x75, 3, 0x0F, 0x05, 0xC3,
    ];
    /// The function for 32-bit processes, and the code after it.
    const SYSTEM_CALL_32: Code = [
        0xB8, 0x2E, 0x10, 0, 0, 0xBA, 0xC4, 0xD0, 0, 0x10, 0xFF, 0xD2, 0xC2, 4, 0, 0x90, 0xB8,
        0x2F, 0x10, 0, 0,
    ];

    /// `NtDxgkEnumAdapters3` of Wine 10, which does not implement it.
    const PLACEHOLDER: Code = [
        0x48, 0x83, 0xEC, 0x28, 0x48, 0x8D, 0x0D, 0xCD, 0xE7, 0, 0, 0x48, 0x8D, 0x15, 0x12, 0xF3,
        0, 0, 0xE8, 0x91, 0xD6,
    ];
    const PLACEHOLDER_32: Code = [
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x83, 0xEC, 0x0C, 0xC7, 0x44, 0x24,
        4, 0x4C, 0x0B, 1, 0x10, 0xC7,
    ];

    #[test]
    fn known_code_is_recognised_and_other_code_is_not() {
        assert_eq!(x86_64::stub(&SYSTEM_CALL, 0), Stub::SystemCall);
        assert_eq!(x86_64::stub(&PLACEHOLDER, 0), Stub::WinePlaceholder);
        for changed in [0, 3, 8, 15, 17, 19, 20] {
            let mut code = SYSTEM_CALL;
            code[changed] ^= 0x40;
            assert_eq!(x86_64::stub(&code, 0), Stub::Unknown, "byte {changed}");
        }
        assert_eq!(trampoline(Stub::Unknown, &SYSTEM_CALL, 0, 0, x86_64::relay), None);
    }

    #[test]
    fn known_32_bit_code_is_recognised_and_other_code_is_not() {
        assert_eq!(x86::stub(&SYSTEM_CALL_32, 0), Stub::SystemCall);
        assert_eq!(x86::stub(&PLACEHOLDER_32, 0), Stub::WinePlaceholder);
        let mut without_nops = [0; CODE_SIZE];
        without_nops[..12].copy_from_slice(&PLACEHOLDER_32[9..]);
        assert_eq!(x86::stub(&without_nops, 0), Stub::WinePlaceholder);
        for changed in [0, 5, 10, 11, 12] {
            let mut code = SYSTEM_CALL_32;
            code[changed] ^= 0x40;
            assert_eq!(x86::stub(&code, 0), Stub::Unknown, "byte {changed}");
        }
        assert_eq!(x86::stub(&[0x90; CODE_SIZE], 0), Stub::Unknown);
        assert_eq!(trampoline(Stub::Unknown, &SYSTEM_CALL_32, 0, 0, x86::relay), None);
    }

    #[test]
    fn a_trampoline_runs_what_the_jump_damages_and_continues_after_it() {
        let address = 0x7FFE_1234_5678;
        let replaced = &SYSTEM_CALL[..x86_64::REPLACED];
        let code = trampoline(Stub::SystemCall, replaced, address, 0, x86_64::relay).unwrap();
        assert_eq!(code[..8], SYSTEM_CALL[..8]);
        assert_eq!(code[8..14], [0xFF, 0x25, 0, 0, 0, 0]);
        assert_eq!(code[14..], (address + 8).to_le_bytes());
        let address = 0x7BC0_C130;
        let place = 0x0040_0000;
        let replaced = &SYSTEM_CALL_32[..x86::REPLACED];
        let code = trampoline(Stub::SystemCall, replaced, address, place, x86::relay).unwrap();
        assert_eq!(code[..5], SYSTEM_CALL_32[..5]);
        assert_eq!(jump_target(&code[5..], place + 5), Some(address + 5));
    }

    #[test]
    fn a_foreign_hook_stays_in_the_chain() {
        let mut code = SYSTEM_CALL;
        code[..5].copy_from_slice(&x86_64::jump(0x1000, 0x0FF0).unwrap());
        let stub = x86_64::stub(&code, 0x1000);
        assert_eq!(stub, Stub::Hooked(0x0FF0));
        let trampoline = trampoline(stub, &code, 0x1000, 0, x86_64::relay).unwrap();
        assert_eq!(trampoline[..14], x86_64::relay(0, 0x0FF0));
    }

    proptest! {
        #[test]
        fn a_near_jump_reaches_its_target(address: u32, distance: i32) {
            let address = 0x7FF0_0000_0000 + u64::from(address);
            let target = (address + 5).wrapping_add_signed(i64::from(distance));
            let mut code = SYSTEM_CALL;
            code[..5].copy_from_slice(&x86_64::jump(address, target).unwrap());
            prop_assert_eq!(x86_64::stub(&code, address), Stub::Hooked(target));
            let too_far = (address + 5).wrapping_add(0x8000_0000);
            prop_assert_eq!(x86_64::jump(address, too_far), None);
        }

        #[test]
        fn a_32_bit_jump_reaches_every_address_and_stays_in_the_chain(
            address: u32, target: u32, place: u32,
        ) {
            let [address, target, place] = [address, target, place].map(u64::from);
            let mut code = SYSTEM_CALL_32;
            code[..5].copy_from_slice(&x86::relay(address, target));
            let stub = x86::stub(&code, address);
            prop_assert_eq!(stub, Stub::Hooked(target));
            let trampoline = trampoline(stub, &code, address, place, x86::relay).unwrap();
            prop_assert_eq!(&trampoline[..5], &x86::relay(place, target));
        }
    }
}
