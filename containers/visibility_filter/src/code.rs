//! The code that a hook reads and writes, in the architecture of this library.

#[cfg(target_arch = "x86")]
pub(crate) use x86::{jump, relay, stub, trampoline};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{jump, relay, stub, trampoline};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use visibility::{CODE_SIZE, Stub, TRAMPOLINE_SIZE, far_jump, near_jump};

    /// Recognises the function whose `code` lies at `address`.
    pub(crate) fn stub(code: &[u8; CODE_SIZE], address: usize) -> Stub {
        Stub::of(code, address as u64)
    }

    /// Code that does what the function at `address` did before it was hooked.
    pub(crate) fn trampoline(
        stub: Stub,
        code: &[u8; CODE_SIZE],
        address: usize,
        _place: usize,
    ) -> Option<[u8; TRAMPOLINE_SIZE]> {
        stub.trampoline(code, address as u64)
    }

    /// A jump from `address` to a relay near it.
    pub(crate) fn jump(address: usize, relay: usize) -> Option<[u8; 5]> {
        near_jump(address as u64, relay as u64)
    }

    /// The relay, which jumps to any address.
    pub(crate) fn relay(_place: usize, target: usize) -> [u8; 14] {
        far_jump(target as u64)
    }
}

#[cfg(target_arch = "x86")]
#[expect(clippy::cast_possible_truncation, reason = "a pointer has 32 bits here")]
mod x86 {
    use visibility::{CODE_SIZE, Stub, TRAMPOLINE_SIZE_X86, near_jump_x86};

    /// Recognises the function whose `code` lies at `address`.
    pub(crate) fn stub(code: &[u8; CODE_SIZE], address: usize) -> Stub {
        Stub::of_x86(code, address as u32)
    }

    /// Code for `place` that does what the function at `address` did before it was hooked.
    pub(crate) fn trampoline(
        stub: Stub,
        code: &[u8; CODE_SIZE],
        address: usize,
        place: usize,
    ) -> Option<[u8; TRAMPOLINE_SIZE_X86]> {
        stub.trampoline_x86(code, address as u32, place as u32)
    }

    /// A jump from `address` to a relay.
    #[expect(clippy::unnecessary_wraps, reason = "64-bit code may be too far away")]
    pub(crate) fn jump(address: usize, relay: usize) -> Option<[u8; 5]> {
        Some(near_jump_x86(address as u32, relay as u32))
    }

    /// The relay, which jumps to any address.
    pub(crate) fn relay(place: usize, target: usize) -> [u8; 5] {
        near_jump_x86(place as u32, target as u32)
    }
}
