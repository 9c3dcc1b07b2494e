//! The APIs that can be tested.

use clap::ValueEnum;

/// A GPU API, or a list of adapters.
#[allow(clippy::doc_markdown, reason = "the comments are texts of the help")]
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Api {
    /// Adapters of the Windows graphics kernel
    D3dkmt,
    /// Adapters that DXGI lists
    Dxgi,
    /// Adapters that DXCore lists
    Dxcore,
    /// Direct3D 11 compute shader
    D3d11,
    /// Direct3D 12 compute shader
    D3d12,
    /// Vulkan compute shader
    Vulkan,
    /// OpenCL kernel
    Opencl,
    /// CUDA kernel, memory bandwidth and Monte Carlo π
    Cuda,
    /// GPU list and utilization of NVIDIA's management library
    Nvml,
}

impl Api {
    /// Every API, in the order of the report.
    pub(crate) const ALL: [Api; 9] = [
        Api::D3dkmt,
        Api::Dxgi,
        Api::Dxcore,
        Api::D3d11,
        Api::D3d12,
        Api::Vulkan,
        Api::Opencl,
        Api::Cuda,
        Api::Nvml,
    ];

    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Api::D3dkmt => "d3dkmt",
            Api::Dxgi => "dxgi",
            Api::Dxcore => "dxcore",
            Api::D3d11 => "d3d11",
            Api::D3d12 => "d3d12",
            Api::Vulkan => "vulkan",
            Api::Opencl => "opencl",
            Api::Cuda => "cuda",
            Api::Nvml => "nvml",
        }
    }

    /// Whether it is a part of Windows.
    pub(crate) fn is_directx(self) -> bool {
        matches!(self, Api::D3dkmt | Api::Dxgi | Api::Dxcore | Api::D3d11 | Api::D3d12)
    }

    /// Whether this operating system can have it.
    pub(crate) fn exists_here(self) -> bool {
        cfg!(windows) || !self.is_directx()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_command_line() {
        assert_eq!(Api::value_variants(), Api::ALL);
        for api in Api::ALL {
            assert_eq!(api.to_possible_value().unwrap().get_name(), api.name());
        }
    }
}
