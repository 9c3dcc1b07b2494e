//! Lists the adapters that the calls of each GPU API list in this process, by LUID, for the check
//! of `directx-visible`. A driver may crash or hang, so each API is asked in a separate process.

#[cfg(windows)]
mod d3dkmt;
#[cfg(windows)]
mod dxcore;
#[cfg(windows)]
mod dxgi;
#[cfg(windows)]
mod opened;

use serde::{Deserialize, Serialize};

#[cfg(windows)]
pub use self::d3dkmt::allocatable;
use crate::api::Api;
#[cfg(windows)]
use crate::{apis, session::Refusal};

/// The APIs whose lists are known, from the lowest level up.
pub const APIS: [Api; 8] = [
    Api::D3dkmt,
    Api::Dxgi,
    Api::Dxcore,
    Api::D3d11,
    Api::D3d12,
    Api::Vulkan,
    Api::Opencl,
    Api::Cuda,
];

/// The adapters that a call lists.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The function, and how it is called if there are several ways.
    pub call: String,
    /// The devices, or why there are none.
    pub adapters: Adapters,
}

/// The devices that a call lists, software adapters included.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Adapters {
    /// The call lists these devices.
    Devices {
        /// In the order of the API.
        luids: Vec<i64>,
        /// The number of devices for which the API has no LUID.
        without_luid: usize,
    },
    /// The call does not exist, for this reason.
    Absent(String),
    /// The call failed with this error.
    Failed(String),
    /// The process ended without a result, in this way.
    Stopped(String),
}

/// What the calls of `api` list. Calls that take a LUID are tried with the LUIDs in `known`.
#[cfg(windows)]
#[must_use]
pub fn list(api: Api, known: &[i64]) -> Vec<Listed> {
    let (first, lists) = match api {
        Api::D3dkmt => ("D3DKMTEnumAdapters", d3dkmt::list(known)),
        Api::Dxgi => ("CreateDXGIFactory1", dxgi::list(known)),
        Api::Dxcore => ("DXCoreCreateAdapterFactory", dxcore::list(known)),
        Api::D3d11 => return vec![listed("D3D11CreateDevice without adapter", dxgi::d3d11())],
        Api::D3d12 => return vec![listed("D3D12CreateDevice without adapter", dxgi::d3d12())],
        Api::Vulkan => return vec![listed("vkEnumeratePhysicalDevices", tested(api))],
        Api::Opencl => return vec![listed("clGetDeviceIDs", tested(api))],
        _ => return vec![listed("cuDeviceGetCount", tested(api))],
    };
    // Without the library or its object, no list can be read.
    lists.unwrap_or_else(|refusal| vec![listed(first, Err(refusal))])
}

/// The LUID of each device; `None` for a device without one.
#[cfg(windows)]
type Luids = Result<Vec<Option<i64>>, Refusal>;

#[cfg(windows)]
fn listed(call: &str, luids: Luids) -> Listed {
    let adapters = match luids {
        Ok(all) => {
            let luids: Vec<i64> = all.iter().copied().flatten().collect();
            Adapters::Devices { without_luid: all.len() - luids.len(), luids }
        }
        Err(Refusal::Absent(fault)) => Adapters::Absent(fault.message),
        Err(Refusal::Broken(_, fault)) => Adapters::Failed(fault.message),
    };
    Listed { call: call.to_owned(), adapters }
}

/// The devices that the test of an API lists.
#[cfg(windows)]
fn tested(api: Api) -> Luids {
    let session = apis::open(api)?;
    Ok(session.candidates.into_iter().map(|candidate| candidate.info.luid).collect())
}
