//! The lists of adapters of Windows, and Direct3D.
//!
//! Each library is loaded at run time, because a program that imports `d3d12.dll` does not start
//! in an image without it.

mod com;
mod d3d11;
mod d3d12;
mod d3dkmt;
mod directml;
mod dxcore;
mod dxgi;
mod shader;

use crate::api::Api;
use crate::session::{Refusal, Session};

/// Opens one of the APIs that only Windows has.
pub(crate) fn open(api: Api) -> Result<Session, Refusal> {
    match api {
        Api::D3dkmt => d3dkmt::open(),
        Api::Dxgi => dxgi::open(),
        Api::Dxcore => dxcore::open(),
        Api::D3d11 => d3d11::open(),
        Api::Directml => directml::open(),
        _ => d3d12::open(),
    }
}
