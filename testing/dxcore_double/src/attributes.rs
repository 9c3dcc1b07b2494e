//! The GUIDs of the adapter attributes.

use host::Attribute;
use windows::Win32::Graphics::DXCore::{
    DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
};
use windows::core::GUID;

/// The `DXCore` release that introduced an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The first one, in Windows 10 version 2004: every host with `DXCore` knows it.
    First,
    /// A later one.
    Later,
}

/// The first three GUIDs come from the `windows` crate; the others come from later versions
/// of `dxcore_interface.h` (newer `windows` crates also have them).
const ATTRIBUTES: [(GUID, Attribute, Release); 9] = [
    (DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, Attribute::D3d11Graphics, Release::First),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, Attribute::D3d12Graphics, Release::First),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, Attribute::D3d12CoreCompute, Release::First),
    (
        GUID::from_u128(0xb71b0d41_1088_422f_a27c_0250b7d3a988),
        Attribute::D3d12GenericMl,
        Release::Later,
    ),
    (
        GUID::from_u128(0x8eb2c848_82f6_4b49_aa87_aecfcf0174c6),
        Attribute::D3d12GenericMedia,
        Release::Later,
    ),
    (GUID::from_u128(0xb69eb219_3ded_4464_979f_a00bd4687006), Attribute::Gpu, Release::Later),
    (
        GUID::from_u128(0xe0b195da_58ef_4a22_90f1_1f28169cab8d),
        Attribute::ComputeAccelerator,
        Release::Later,
    ),
    (GUID::from_u128(0xd46140c4_add7_451b_9e56_06fe8c3b58ed), Attribute::Npu, Release::Later),
    (
        GUID::from_u128(0x66bdb96a_050b_44c7_a4fd_d144ce0ab443),
        Attribute::MediaAccelerator,
        Release::Later,
    ),
];

/// The attribute with this GUID, and the release that introduced it.
pub(crate) fn find(guid: &GUID) -> Option<(Attribute, Release)> {
    let row = ATTRIBUTES.iter().find(|(known, _, _)| known == guid);
    row.map(|(_, attribute, release)| (*attribute, *release))
}
