//! The APIs: each module lists the devices of one library and opens a kernel on each.
//!
//! Nothing that a library creates is destroyed. The process tests one API and ends then, and a
//! driver that crashes while it cleans up would hide what worked.

mod cuda;
#[cfg(windows)]
pub(crate) mod directx;
mod encoders;
mod nvml;
mod opencl;
mod opengl;
mod vulkan;

#[cfg(windows)]
use self::directx::{d3d11, d3d12, d3dkmt, directml, dxcore, dxgi};
use crate::api::Api;
use crate::library::Loaded;
#[cfg(not(windows))]
use crate::outcome::Fault;
use crate::session::{Devices, Refusal, Session};

/// The names of a library, and what lists its devices.
type Source = (&'static [&'static str], fn(Loaded) -> Result<Devices, Refusal>);

/// Opens `api` in this process.
pub(crate) fn open(api: Api) -> Result<Session, Refusal> {
    let (names, list): Source = match api {
        #[cfg(windows)]
        Api::D3dkmt => (d3dkmt::NAMES, d3dkmt::list),
        #[cfg(windows)]
        Api::Dxgi => (dxgi::NAMES, dxgi::list),
        #[cfg(windows)]
        Api::Dxcore => (dxcore::NAMES, dxcore::list),
        #[cfg(windows)]
        Api::D3d11 => (d3d11::NAMES, d3d11::list),
        #[cfg(windows)]
        Api::D3d12 => (d3d12::NAMES, d3d12::list),
        #[cfg(windows)]
        Api::Directml => (directml::NAMES, directml::list),
        Api::Vulkan => (vulkan::NAMES, vulkan::list),
        Api::Opencl => (opencl::NAMES, opencl::list),
        Api::Opengl => (opengl::NAMES, opengl::list),
        Api::Cuda => (cuda::NAMES, cuda::list),
        Api::Nvml => (nvml::NAMES, nvml::list),
        Api::Nvenc => (encoders::NVENC, encoders::nvenc),
        Api::Amf => (encoders::AMF, encoders::amf),
        Api::Qsv => (encoders::QSV, encoders::qsv),
        #[cfg(not(windows))]
        _ => {
            let fault = format!("API `{}` exists only on Windows", api.name());
            return Err(Refusal::Absent(Fault::new(fault)));
        }
    };
    let library = Loaded::open(api, names)?;
    match list(library) {
        Ok((version, candidates)) => Ok(Session { library: library.describe(version), candidates }),
        Err(Refusal::Broken(None, fault)) => {
            Err(Refusal::Broken(Some(library.describe(None)), fault))
        }
        Err(refusal) => Err(refusal),
    }
}
