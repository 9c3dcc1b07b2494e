//! The attributes by their GUIDs.

use devices::Attribute;
use windows::Win32::Graphics::DXCore::{
    DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
    DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS,
};
use windows::core::GUID;

/// Whether every host with `DXCore` knows an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// From Windows 10 version 2004 on.
    First,
    /// From a later Windows on.
    Newer,
}

/// The first three are the `windows` crate's own; the others are those of the
/// later `dxcore_interface.h` (also in the metadata of newer `windows` crates).
const ATTRIBUTES: [(GUID, Attribute, Age); 9] = [
    (DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, Attribute::D3d11Graphics, Age::First),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, Attribute::D3d12Graphics, Age::First),
    (DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, Attribute::D3d12CoreCompute, Age::First),
    (
        GUID::from_u128(0xb71b0d41_1088_422f_a27c_0250b7d3a988),
        Attribute::D3d12GenericMl,
        Age::Newer,
    ),
    (
        GUID::from_u128(0x8eb2c848_82f6_4b49_aa87_aecfcf0174c6),
        Attribute::D3d12GenericMedia,
        Age::Newer,
    ),
    (GUID::from_u128(0xb69eb219_3ded_4464_979f_a00bd4687006), Attribute::Gpu, Age::Newer),
    (
        GUID::from_u128(0xe0b195da_58ef_4a22_90f1_1f28169cab8d),
        Attribute::ComputeAccelerator,
        Age::Newer,
    ),
    (GUID::from_u128(0xd46140c4_add7_451b_9e56_06fe8c3b58ed), Attribute::Npu, Age::Newer),
    (
        GUID::from_u128(0x66bdb96a_050b_44c7_a4fd_d144ce0ab443),
        Attribute::MediaAccelerator,
        Age::Newer,
    ),
];

/// The attribute that `guid` stands for, and its age.
pub(crate) fn find(guid: &GUID) -> Option<(Attribute, Age)> {
    let row = ATTRIBUTES.iter().find(|(known, _, _)| known == guid);
    row.map(|(_, attribute, age)| (*attribute, *age))
}
