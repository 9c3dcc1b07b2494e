//! The APIs: each module loads one library, lists its devices and opens a kernel on each.
//!
//! Nothing that a library creates is destroyed. The process tests one API and ends then, and a
//! driver that crashes while it cleans up would hide what worked.

mod cuda;
mod nvml;
mod opencl;
mod vulkan;

use crate::api::Api;
use crate::outcome::Fault;
use crate::session::{Refusal, Session};

/// Opens `api` in this process.
pub(crate) fn open(api: Api) -> Result<Session, Refusal> {
    match api {
        Api::Vulkan => vulkan::open(),
        Api::Opencl => opencl::open(),
        Api::Cuda => cuda::open(),
        Api::Nvml => nvml::open(),
        _ => Err(Refusal::Absent(Fault::new("not on this operating system"))),
    }
}
