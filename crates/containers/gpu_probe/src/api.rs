//! The APIs that can be tested.

/// A GPU API, or a list of adapters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Api {
    D3dkmt,
    Dxgi,
    Dxcore,
    D3d11,
    D3d12,
    Directml,
    Vulkan,
    Opencl,
    Opengl,
    Cuda,
    Nvml,
    Nvenc,
    Amf,
    Qsv,
}

/// Every API with its name and what its test does, in the order of the report.
const APIS: [(Api, &str, &str); 14] = [
    (Api::D3dkmt, "d3dkmt", "adapters of the Windows graphics kernel"),
    (Api::Dxgi, "dxgi", "adapters that DXGI lists"),
    (Api::Dxcore, "dxcore", "adapters that DXCore lists"),
    (Api::D3d11, "d3d11", "Direct3D 11 compute shader"),
    (Api::D3d12, "d3d12", "Direct3D 12 compute shader"),
    (Api::Directml, "directml", "DirectML operator that adds two tensors"),
    (Api::Vulkan, "vulkan", "Vulkan compute shader"),
    (Api::Opencl, "opencl", "OpenCL kernel"),
    (Api::Opengl, "opengl", "OpenGL compute shader"),
    (Api::Cuda, "cuda", "CUDA kernel"),
    (Api::Nvml, "nvml", "GPUs that NVIDIA's management library lists"),
    (Api::Nvenc, "nvenc", "version of NVIDIA's video encoder"),
    (Api::Amf, "amf", "version of AMD's video encoder"),
    (Api::Qsv, "qsv", "version of Intel Quick Sync Video"),
];

impl Api {
    /// Every API, in the order of the report.
    pub(crate) fn all() -> impl Iterator<Item = Api> + Clone {
        APIS.into_iter().map(|(api, ..)| api)
    }

    #[must_use]
    pub fn with_name(name: &str) -> Option<Api> {
        Api::all().find(|api| api.name() == name)
    }

    /// The name of the API on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        APIS[self as usize].1
    }

    /// The description of the test, for the help.
    pub(crate) fn about(self) -> &'static str {
        APIS[self as usize].2
    }

    /// Whether the API is a part of Windows.
    pub(crate) fn is_directx(self) -> bool {
        self as usize <= Api::Directml as usize
    }

    /// Whether the API only reports the version of its library and lists no devices.
    pub(crate) fn is_encoder(self) -> bool {
        matches!(self, Api::Nvenc | Api::Amf | Api::Qsv)
    }

    /// Whether this operating system can have the API.
    pub(crate) fn exists_here(self) -> bool {
        cfg!(windows) || !self.is_directx()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_apis() {
        assert!(APIS.iter().enumerate().all(|(n, (api, ..))| *api as usize == n));
    }
}
