//! The APIs that can be tested.

/// A GPU API, or a list of adapters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Api {
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

impl Api {
    /// Every API, in the order of the report.
    pub(crate) const ALL: [Api; 14] = [
        Api::D3dkmt,
        Api::Dxgi,
        Api::Dxcore,
        Api::D3d11,
        Api::D3d12,
        Api::Directml,
        Api::Vulkan,
        Api::Opencl,
        Api::Opengl,
        Api::Cuda,
        Api::Nvml,
        Api::Nvenc,
        Api::Amf,
        Api::Qsv,
    ];

    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Api::D3dkmt => "d3dkmt",
            Api::Dxgi => "dxgi",
            Api::Dxcore => "dxcore",
            Api::D3d11 => "d3d11",
            Api::D3d12 => "d3d12",
            Api::Directml => "directml",
            Api::Vulkan => "vulkan",
            Api::Opencl => "opencl",
            Api::Opengl => "opengl",
            Api::Cuda => "cuda",
            Api::Nvml => "nvml",
            Api::Nvenc => "nvenc",
            Api::Amf => "amf",
            Api::Qsv => "qsv",
        }
    }

    /// What its test does, for the help.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Api::D3dkmt => "adapters of the Windows graphics kernel",
            Api::Dxgi => "adapters that DXGI lists",
            Api::Dxcore => "adapters that DXCore lists",
            Api::D3d11 => "Direct3D 11 compute shader",
            Api::D3d12 => "Direct3D 12 compute shader",
            Api::Directml => "DirectML: 100 runs of a small convolutional network",
            Api::Vulkan => "Vulkan compute shader",
            Api::Opencl => "OpenCL kernel",
            Api::Opengl => "OpenGL compute shader",
            Api::Cuda => "CUDA kernel, Monte Carlo π and memory bandwidth",
            Api::Nvml => "GPUs and utilization from NVIDIA's management library",
            Api::Nvenc => "NVIDIA's video encoder: ten frames of H.264",
            Api::Amf => "AMD's video encoder: start of its runtime",
            Api::Qsv => "Intel Quick Sync Video: a session and the codecs",
        }
    }

    /// Whether it is a part of Windows.
    pub(crate) fn is_directx(self) -> bool {
        matches!(
            self,
            Api::D3dkmt | Api::Dxgi | Api::Dxcore | Api::D3d11 | Api::D3d12 | Api::Directml
        )
    }

    /// Whether this operating system can have it.
    pub(crate) fn exists_here(self) -> bool {
        cfg!(windows) || !self.is_directx()
    }
}
