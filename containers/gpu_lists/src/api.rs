//! The APIs, and what they list.

/// A GPU API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Api {
    /// The kernel's interface below all of Windows' own APIs.
    D3dkmt,
    /// The lists that Direct3D programs use.
    Dxgi,
    /// The lists that also have compute-only devices.
    Dxcore,
    /// Direct3D 11.
    D3d11,
    /// Direct3D 12.
    D3d12,
    /// Vulkan.
    Vulkan,
    /// `OpenCL`.
    Opencl,
    /// CUDA.
    Cuda,
}

/// What the calls of an API list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Every device.
    Every,
    /// The one that the API uses if a program names none.
    Default,
}

impl Api {
    /// Every API, from the lowest level up.
    pub const ALL: [Api; 8] = [
        Api::D3dkmt,
        Api::Dxgi,
        Api::Dxcore,
        Api::D3d11,
        Api::D3d12,
        Api::Vulkan,
        Api::Opencl,
        Api::Cuda,
    ];

    /// Its name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Api::D3dkmt => "d3dkmt",
            Api::Dxgi => "dxgi",
            Api::Dxcore => "dxcore",
            Api::D3d11 => "d3d11",
            Api::D3d12 => "d3d12",
            Api::Vulkan => "vulkan",
            Api::Opencl => "opencl",
            Api::Cuda => "cuda",
        }
    }

    /// The API with this name.
    #[must_use]
    pub fn with_name(name: &str) -> Option<Api> {
        Api::ALL.into_iter().find(|api| api.name() == name)
    }

    /// What its calls list.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Api::D3d11 | Api::D3d12 => Scope::Default,
            _ => Scope::Every,
        }
    }
}

/// What one call lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// The function, and how it is called if there are several ways.
    pub call: &'static str,
    /// The devices, or why there are none.
    pub devices: Result<Devices, Unlisted>,
}

impl Listing {
    /// A call and its result.
    #[must_use]
    pub fn new(call: &'static str, devices: Result<Devices, Unlisted>) -> Listing {
        Listing { call, devices }
    }
}

/// Devices, software adapters included.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Devices {
    /// In the order of the API.
    pub luids: Vec<i64>,
    /// The number of devices for which the API has no LUID.
    pub without_luid: usize,
}

impl FromIterator<Option<i64>> for Devices {
    fn from_iter<I: IntoIterator<Item = Option<i64>>>(devices: I) -> Devices {
        let mut found = Devices::default();
        for device in devices {
            match device {
                Some(luid) => found.luids.push(luid),
                None => found.without_luid += 1,
            }
        }
        found
    }
}

/// Why a call lists nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unlisted {
    /// The library or the function does not exist.
    Absent(String),
    /// It returned an error.
    Failed(String),
}
