//! What each GPU API lists in this process, by LUID.
//!
//! Input: an API, and the LUIDs of the adapters that exist. Output: what each of its calls
//! lists. A driver may crash or hang, so whoever asks uses a process of its own for each API.

// The GPU APIs are unsafe to call.
#![cfg_attr(windows, allow(unsafe_code))]

mod api;
#[cfg(windows)]
mod cuda;
#[cfg(windows)]
mod d3dkmt;
#[cfg(windows)]
mod direct3d;
#[cfg(windows)]
mod dxcore;
#[cfg(windows)]
mod dxgi;
#[cfg(windows)]
mod library;
#[cfg(windows)]
mod luid;
#[cfg(windows)]
mod opencl;
#[cfg(windows)]
mod opened;
#[cfg(windows)]
mod vulkan;

pub use api::{Api, Devices, Listing, Scope, Unlisted};
#[cfg(windows)]
pub use d3dkmt::allocatable;

/// What the calls of `api` list. Calls that take a LUID are tried with those of `known`.
#[cfg(windows)]
#[must_use]
pub fn list(api: Api, known: &[i64]) -> Vec<Listing> {
    match api {
        Api::D3dkmt => d3dkmt::list(known),
        Api::Dxgi => dxgi::list(known),
        Api::Dxcore => dxcore::list(known),
        Api::D3d11 => vec![Listing::new("D3D11CreateDevice without adapter", direct3d::d3d11())],
        Api::D3d12 => vec![Listing::new("D3D12CreateDevice without adapter", direct3d::d3d12())],
        Api::Vulkan => vec![Listing::new("vkEnumeratePhysicalDevices", vulkan::list())],
        Api::Opencl => vec![Listing::new("clGetDeviceIDs", opencl::list())],
        Api::Cuda => vec![Listing::new("cuDeviceGetCount", cuda::list())],
    }
}
