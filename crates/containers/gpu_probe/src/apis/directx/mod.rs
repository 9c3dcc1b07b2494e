//! The lists of adapters of Windows, and Direct3D.
//!
//! Each library is loaded at run time, because a program that imports `d3d12.dll` does not start
//! in an image without it.

pub(crate) mod com;
pub(crate) mod d3d11;
pub(crate) mod d3d12;
pub(crate) mod d3dkmt;
pub(super) mod directml;
pub(crate) mod dxcore;
pub(crate) mod dxgi;
mod queue;
mod shader;
