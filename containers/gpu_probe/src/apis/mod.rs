//! The APIs: each module loads one library, lists its devices and opens a kernel on each.
//!
//! Nothing that a library creates is destroyed. The process tests one API and ends then, and a
//! driver that crashes while it cleans up would hide what worked.

mod cuda;
#[cfg(windows)]
mod directx;
mod encoders;
mod nvml;
mod opencl;
mod opengl;
mod vulkan;

use crate::api::Api;
#[cfg(not(windows))]
use crate::outcome::Fault;
use crate::session::{Refusal, Session};

/// Opens `api` in this process.
pub(crate) fn open(api: Api) -> Result<Session, Refusal> {
    match api {
        Api::Vulkan => vulkan::open(),
        Api::Opencl => opencl::open(),
        Api::Opengl => opengl::open(),
        Api::Cuda => cuda::open(),
        Api::Nvml => nvml::open(),
        Api::Nvenc => encoders::nvenc::open(),
        Api::Amf => encoders::amf::open(),
        Api::Qsv => encoders::qsv::open(),
        Api::D3dkmt | Api::Dxgi | Api::Dxcore | Api::D3d11 | Api::D3d12 | Api::Directml => {
            directx(api)
        }
    }
}

#[cfg(windows)]
fn directx(api: Api) -> Result<Session, Refusal> {
    directx::open(api)
}

#[cfg(not(windows))]
fn directx(api: Api) -> Result<Session, Refusal> {
    let fault = Fault::new(format!("API `{}` exists only on Windows", api.name()));
    Err(Refusal::Absent(fault))
}
