//! The code at the start of a system call, and the jumps that replace it.
//!
//! The first five bytes of a hooked function become a jump to a relay near it. The relay jumps to
//! the hook. To call the real function, the hook calls its trampoline: a copy of the overwritten
//! instructions, and a jump to the instruction after them. The overwritten instructions do not
//! depend on their address.
//!
//! If another program has hooked the function, the trampoline does only what its jump does. That
//! program continues after the instructions that its jump overwrites. A jump of five bytes or more
//! overwrites all that ours does. A shorter one does not, so it is unknown code.

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
    /// As before, by a jump that does not depend on its own address.
    HookedAnywhere,
    /// As before, by a 64-bit jump to the address that is stored at this address.
    HookedThrough(u64),
    /// The code that Wine puts in place of a function that it does not implement. It raises an
    /// exception.
    WinePlaceholder,
    /// Code that is none of these.
    Unknown,
}

/// `jmp` to the address that is stored at an address. The operand is the distance of that address
/// from the end of the instruction in 64-bit code, and the address itself in 32-bit code.
const JUMP_THROUGH: [u8; 2] = [0xFF, 0x25];
const JUMP_THROUGH_SIZE: usize = 6;

/// Encodes `jmp rel32`. The caller ensures that `target` is within ±2 GiB.
fn near_jump(address: u64, target: u64) -> [u8; NEAR_JUMP_SIZE] {
    let after = address.wrapping_add(NEAR_JUMP_SIZE as u64);
    let [a, b, c, d, ..] = target.wrapping_sub(after).to_le_bytes();
    [NEAR_JUMP, a, b, c, d]
}

/// Encodes 64-bit `jmp [rip + distance]`, if `pointer` is within ±2 GiB.
fn jump_through(address: u64, pointer: u64) -> Option<[u8; JUMP_THROUGH_SIZE]> {
    let after = address.wrapping_add(JUMP_THROUGH_SIZE as u64);
    let distance = i32::try_from(pointer.wrapping_sub(after).cast_signed()).ok()?;
    let [a, b, c, d] = distance.to_le_bytes();
    let [jump, through] = JUMP_THROUGH;
    Some([jump, through, a, b, c, d])
}

/// Code for `place` that does what the function at `address` with this `code` did before a jump
/// overwrote its first `replaced` bytes. `jump` encodes a jump from a place to a target. Returns
/// `None` if the code is not known.
pub(crate) fn trampoline<const SIZE: usize>(
    stub: Stub,
    code: &Code,
    replaced: usize,
    address: u64,
    place: u64,
    jump: fn(u64, u64) -> [u8; SIZE],
) -> Option<[u8; TRAMPOLINE_SIZE]> {
    let moved;
    let (kept, target) = match stub {
        Stub::SystemCall => (code.get(..replaced)?, Some(address.wrapping_add(replaced as u64))),
        Stub::Hooked(target) => (&[][..], Some(target)),
        // What follows the jump does not run.
        Stub::HookedAnywhere => (&code[..], None),
        Stub::HookedThrough(pointer) => {
            moved = jump_through(place, pointer)?;
            (&moved[..], None)
        }
        Stub::WinePlaceholder | Stub::Unknown => return None,
    };
    let jump = target.map(|target| jump(place.wrapping_add(kept.len() as u64), target));
    let mut trampoline = [0xCC; TRAMPOLINE_SIZE];
    for (to, from) in trampoline.iter_mut().zip(kept.iter().chain(jump.iter().flatten())) {
        *to = *from;
    }
    Some(trampoline)
}

/// The two bytes at an offset.
fn short(code: &Code, at: usize) -> u16 {
    u16::from_le_bytes([code[at], code[at + 1]])
}

/// Whether a jump at `address` overwrites one of the `size` bytes of a pointer.
fn overwrites(address: u64, pointer: u64, size: u64) -> bool {
    let before_end = pointer.wrapping_add(size - 1).wrapping_sub(address);
    before_end < NEAR_JUMP_SIZE as u64 + size - 1
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
    use super::{
        Code, JUMP_THROUGH_SIZE, NEAR_JUMP_SIZE, Stub, jump_target, near_jump, overwrites, short,
    };

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
        match *code {
            _ if code.starts_with(&START) && code.ends_with(&END) => Stub::SystemCall,
            _ if is_wine_placeholder(code) => Stub::WinePlaceholder,
            // `jmp [rip + distance]`
            [0xFF, 0x25, a, b, c, d, ..] => {
                let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
                let after = address.wrapping_add(JUMP_THROUGH_SIZE as u64);
                match after.wrapping_add_signed(distance) {
                    pointer if overwrites(address, pointer, 8) => Stub::Unknown,
                    pointer => Stub::HookedThrough(pointer),
                }
            }
            _ => match (short(code, 0), short(code, 10), code[12]) {
                // `mov rax, target; jmp rax`, or the same with `r10` or `r11`.
                (0xB848, 0xE0FF, _) | (0xBA49, 0xFF41, 0xE2) | (0xBB49, 0xFF41, 0xE3) => {
                    Stub::HookedAnywhere
                }
                _ => jump_target(code, address).map_or(Stub::Unknown, Stub::Hooked),
            },
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
    use super::{Code, NEAR_JUMP_SIZE, Stub, jump_target, near_jump, overwrites};

    /// The size of the instruction that the jump overwrites: `mov eax, number`.
    pub(crate) const REPLACED: usize = NEAR_JUMP_SIZE;

    /// Recognizes the function with this `code` at `address`.
    pub(crate) fn stub(code: &Code, address: u64) -> Stub {
        match *code {
            // The code ends with `ret` and the size of the arguments, or with `ret` alone if there
            // are none.
            [0xB8, _, _, _, _, 0xBA, _, _, _, _, 0xFF, 0xD2, 0xC2 | 0xC3, ..] => Stub::SystemCall,
            _ if is_wine_placeholder(code) => Stub::WinePlaceholder,
            // `jmp [pointer]`
            [0xFF, 0x25, a, b, c, d, ..] => {
                let pointer = u64::from(u32::from_le_bytes([a, b, c, d]));
                if overwrites(address, pointer, 4) { Stub::Unknown } else { Stub::HookedAnywhere }
            }
            // `push target; ret`, and `mov eax, target; jmp eax`
            [0x68, _, _, _, _, 0xC3, ..] | [0xB8, _, _, _, _, 0xFF, 0xE0, ..] => {
                Stub::HookedAnywhere
            }
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

    type Trampoline = Option<[u8; TRAMPOLINE_SIZE]>;

    fn trampoline_64(stub: Stub, code: &Code, address: u64, place: u64) -> Trampoline {
        trampoline(stub, code, x86_64::REPLACED, address, place, x86_64::relay)
    }

    fn trampoline_32(stub: Stub, code: &Code, address: u64, place: u64) -> Trampoline {
        trampoline(stub, code, x86::REPLACED, address, place, x86::relay)
    }

    #[test]
    fn known_code_is_recognised_and_other_code_is_not() {
        assert_eq!(x86_64::stub(&SYSTEM_CALL, 0), Stub::SystemCall);
        assert_eq!(x86_64::stub(&PLACEHOLDER, 0), Stub::WinePlaceholder);
        for changed in [0, 3, 8, 15, 17, 19, 20] {
            let mut code = SYSTEM_CALL;
            code[changed] ^= 0x40;
            assert_eq!(x86_64::stub(&code, 0), Stub::Unknown, "byte {changed}");
        }
        assert_eq!(trampoline_64(Stub::Unknown, &SYSTEM_CALL, 0, 0), None);
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
        assert_eq!(trampoline_32(Stub::Unknown, &SYSTEM_CALL_32, 0, 0), None);
    }

    #[test]
    fn a_trampoline_runs_what_the_jump_damages_and_continues_after_it() {
        let address = 0x7FFE_1234_5678;
        let code = trampoline_64(Stub::SystemCall, &SYSTEM_CALL, address, 0).unwrap();
        assert_eq!(code[..8], SYSTEM_CALL[..8]);
        assert_eq!(code[8..14], [0xFF, 0x25, 0, 0, 0, 0]);
        assert_eq!(code[14..], (address + 8).to_le_bytes());
        let address = 0x7BC0_C130;
        let place = 0x0040_0000;
        let code = trampoline_32(Stub::SystemCall, &SYSTEM_CALL_32, address, place).unwrap();
        assert_eq!(code[..5], SYSTEM_CALL_32[..5]);
        assert_eq!(jump_target(&code[5..], place + 5), Some(address + 5));
    }

    #[test]
    fn a_foreign_hook_stays_in_the_chain() {
        let mut code = SYSTEM_CALL;
        code[..5].copy_from_slice(&x86_64::jump(0x1000, 0x0FF0).unwrap());
        let stub = x86_64::stub(&code, 0x1000);
        assert_eq!(stub, Stub::Hooked(0x0FF0));
        let trampoline = trampoline_64(stub, &code, 0x1000, 0).unwrap();
        assert_eq!(trampoline[..14], x86_64::relay(0, 0x0FF0));
    }

    /// A function whose code begins with `start`.
    fn function(start: &[u8], rest: Code) -> Code {
        let mut code = rest;
        code[..start.len()].copy_from_slice(start);
        code
    }

    /// `FF 25` with this operand.
    fn through(operand: i32) -> [u8; 6] {
        let [a, b, c, d] = operand.to_le_bytes();
        [0xFF, 0x25, a, b, c, d]
    }

    /// Other products write such jumps where five bytes do not reach their code.
    const HOOKS: [&[u8]; 3] = [
        &[0x48, 0xB8, 1, 2, 3, 4, 5, 6, 7, 8, 0xFF, 0xE0],
        &[0x49, 0xBA, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xFF, 0xE2],
        &[0x49, 0xBB, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xFF, 0xE3],
    ];
    const HOOKS_32: [&[u8]; 3] =
        [&[0x68, 1, 2, 3, 4, 0xC3], &[0xB8, 1, 2, 3, 4, 0xFF, 0xE0], &[0xFF, 0x25, 1, 2, 3, 4]];

    #[test]
    fn a_hook_that_does_not_depend_on_its_address_is_moved() {
        for hook in HOOKS {
            let code = function(hook, SYSTEM_CALL);
            let stub = x86_64::stub(&code, 0x7FFE_1234_5678);
            let moved = trampoline_64(stub, &code, 0x7FFE_1234_5678, 0x7FFE_2000_0000).unwrap();
            assert_eq!(moved[..hook.len()], *hook);
        }
        for hook in HOOKS_32 {
            let code = function(hook, SYSTEM_CALL_32);
            let stub = x86::stub(&code, 0x7BC0_C130);
            let moved = trampoline_32(stub, &code, 0x7BC0_C130, 0x0040_0000).unwrap();
            assert_eq!(moved[..hook.len()], *hook);
        }
    }

    #[test]
    fn similar_code_is_not_known() {
        for hook in HOOKS {
            for changed in (0..2).chain(10..hook.len()) {
                let mut code = function(hook, SYSTEM_CALL);
                code[changed] ^= 4;
                assert_eq!(x86_64::stub(&code, 0), Stub::Unknown, "{code:X?}");
            }
        }
        for hook in HOOKS_32 {
            for changed in [0].into_iter().chain(5..hook.len()) {
                let mut code = function(hook, SYSTEM_CALL_32);
                code[changed] ^= 4;
                let is_operand = hook[0] == 0xFF && changed == 5;
                assert_eq!(x86::stub(&code, 0) == Stub::Unknown, !is_operand, "{code:X?}");
            }
        }
        // Its owner continues inside the five bytes that our jump overwrites.
        let short = [0xEB, 0xF9];
        assert_eq!(x86_64::stub(&function(&short, SYSTEM_CALL), 0x1000), Stub::Unknown);
        assert_eq!(x86::stub(&function(&short, SYSTEM_CALL_32), 0x1000), Stub::Unknown);
        // 64-bit forms in 32-bit code, and the other way around.
        for hook in HOOKS {
            assert_eq!(x86::stub(&function(hook, SYSTEM_CALL_32), 0), Stub::Unknown);
        }
        for hook in &HOOKS_32[..2] {
            assert_eq!(x86_64::stub(&function(hook, SYSTEM_CALL), 0), Stub::Unknown);
        }
    }

    #[test]
    fn a_jump_through_a_pointer_reads_the_same_pointer_from_another_place() {
        let address = 0x7FFE_1234_5678;
        let place = 0x7FFE_2000_0010;
        for operand in [0, 8, -14, 0x7FFF_FFFF - 0x1000_0000, -0x6000_0000] {
            let code = function(&through(operand), SYSTEM_CALL);
            let stub = x86_64::stub(&code, address);
            let pointer = (address + 6).wrapping_add_signed(operand.into());
            assert_eq!(stub, Stub::HookedThrough(pointer));
            let moved = trampoline_64(stub, &code, address, place).unwrap();
            let distance = i32::from_le_bytes(*moved[2..].first_chunk().unwrap());
            assert_eq!((moved[0], moved[1], moved[6]), (0xFF, 0x25, 0xCC));
            assert_eq!((place + 6).wrapping_add_signed(distance.into()), pointer);
        }
        // The new place is too far away.
        let code = function(&through(i32::MIN), SYSTEM_CALL);
        let stub = x86_64::stub(&code, address);
        assert_eq!(trampoline_64(stub, &code, address, place), None);
    }

    /// Our jump would change the pointer.
    #[test]
    fn a_pointer_in_the_overwritten_bytes_is_not_known() {
        for (pointer, is_known) in [(-9, true), (-8, true), (-7, false), (4, false), (5, true)] {
            let code = function(&through(pointer - 6), SYSTEM_CALL);
            let stub = x86_64::stub(&code, 0x7FFE_1234_5678);
            assert_eq!(stub != Stub::Unknown, is_known, "{pointer}");
        }
        for (pointer, is_known) in [(-5, true), (-4, true), (-3, false), (4, false), (5, true)] {
            let code = function(&through(0x7BC0_C130 + pointer), SYSTEM_CALL_32);
            let stub = x86::stub(&code, 0x7BC0_C130);
            assert_eq!(stub != Stub::Unknown, is_known, "{pointer}");
        }
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
            let trampoline = trampoline_32(stub, &code, address, place).unwrap();
            prop_assert_eq!(&trampoline[..5], &x86::relay(place, target));
        }
    }
}
