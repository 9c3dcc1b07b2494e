//! Whether a hypervisor runs below Windows, by `CPUID` (Microsoft's Hypervisor Top Level Functional
//! Specification, "Feature and Interface Discovery").
#![allow(unsafe_code, reason = "reads the processor's description")]

use std::arch::x86_64::{__cpuid, CpuidResult};

use host::Hypervisor;

/// The leaf with the features of the processor; bit 31 of ECX says that there is a hypervisor.
const FEATURES: u32 = 1;
/// The leaf with the name of the hypervisor.
const NAME: u32 = 0x4000_0000;
/// The leaf with the rights of this partition; bit 0 of EBX is `CreatePartitions`, which only the
/// Windows that has started the hypervisor has.
const RIGHTS: u32 = 0x4000_0003;

pub(crate) fn hypervisor() -> Hypervisor {
    if cpuid(FEATURES).ecx & 1 << 31 == 0 {
        return Hypervisor::None;
    }
    let CpuidResult { ebx, ecx, edx, .. } = cpuid(NAME);
    let is_of_microsoft = [ebx, ecx, edx].map(u32::to_le_bytes).concat() == b"Microsoft Hv";
    if is_of_microsoft && cpuid(RIGHTS).ebx & 1 != 0 { Hypervisor::Own } else { Hypervisor::Guest }
}

#[allow(unused_unsafe, reason = "newer versions of Rust know that it is safe")]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, and it changes nothing.
    unsafe { __cpuid(leaf) }
}
