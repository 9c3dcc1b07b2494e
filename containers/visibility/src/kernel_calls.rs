//! The structures of the kernel's functions for adapters (d3dkmthk.h).

use crate::AdapterInfo;

/// `D3DKMT_ENUMADAPTERS`.
#[repr(C)]
pub struct EnumAdapters {
    /// The number of adapters.
    pub count: u32,
    /// The adapters.
    pub list: [AdapterInfo; 16],
}

/// `D3DKMT_ENUMADAPTERS2`.
#[repr(C)]
pub struct EnumAdapters2 {
    /// In: how many adapters the list has room for. Out: the number of adapters.
    pub count: u32,
    /// The list; null to ask for the number.
    pub list: *mut AdapterInfo,
}

/// `D3DKMT_ENUMADAPTERS3`.
#[repr(C)]
pub struct EnumAdapters3 {
    /// `D3DKMT_ENUMADAPTERS_FILTER`.
    pub filter: u64,
    /// The members that [`EnumAdapters2`] has.
    pub rest: EnumAdapters2,
}

/// `D3DKMT_OPENADAPTERFROMLUID`.
#[repr(C)]
pub struct OpenFromLuid {
    /// The lower half of the LUID.
    pub luid_low: u32,
    /// The upper half of the LUID.
    pub luid_high: i32,
    /// Out: a handle of the process.
    pub handle: u32,
}

/// `D3DKMT_QUERYADAPTERINFO`.
#[repr(C)]
pub struct QueryAdapterInfo {
    /// The adapter.
    pub handle: u32,
    /// What to answer: a `KMTQUERYADAPTERINFOTYPE`.
    pub kind: u32,
    /// The answer.
    pub data: *mut u32,
    /// The size of the answer in bytes.
    pub size: u32,
}

/// `KMTQAITYPE_ADAPTERTYPE`, which answers with an [`AdapterType`](crate::AdapterType).
pub const ADAPTER_TYPE: u32 = 15;

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn structures_are_those_of_d3dkmthk_h() {
        let pointer = size_of::<usize>();
        assert_eq!(size_of::<EnumAdapters>(), 4 + 16 * 20);
        assert_eq!(offset_of!(EnumAdapters2, list), pointer);
        assert_eq!(offset_of!(EnumAdapters3, rest) + offset_of!(EnumAdapters2, count), 8);
        assert_eq!(offset_of!(EnumAdapters3, rest) + offset_of!(EnumAdapters2, list), 8 + pointer);
        assert_eq!((size_of::<OpenFromLuid>(), offset_of!(OpenFromLuid, handle)), (12, 8));
        assert_eq!(offset_of!(QueryAdapterInfo, data), 8);
    }
}
