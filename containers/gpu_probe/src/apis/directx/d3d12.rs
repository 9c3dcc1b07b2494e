//! Direct3D 12: a compute shader on every adapter of DXGI, and on the compute-only devices that
//! only `DXCore` lists.
#![allow(unsafe_code, reason = "calls d3d12.dll")]

use std::ffi::c_void;
use std::ptr::null_mut;

use windows::Win32::Graphics::Direct3D::{
    D3D_FEATURE_LEVEL, D3D_FEATURE_LEVEL_1_0_CORE, D3D_FEATURE_LEVEL_11_0, D3D_FEATURE_LEVEL_12_0,
};
use windows::Win32::Graphics::Direct3D12::ID3D12Device;
use windows::core::{GUID, HRESULT, IUnknown, Interface};

use super::com::{Adapter, check, create, feature_level};
use super::{dxcore, dxgi};
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::outcome::{Fault, Measurement};
use crate::session::{Candidate, Devices, Kernel, Refusal, Work};

mod commands;
pub(super) mod queue;

use self::commands::Commands;

pub(crate) const NAMES: &[&str] = &["d3d12.dll"];

functions! {
    /// The functions of `d3d12.h`.
    Functions {
        create_device = "D3D12CreateDevice"
            fn(*mut c_void, D3D_FEATURE_LEVEL, *const GUID, *mut *mut c_void) -> HRESULT;
        serialize = "D3D12SerializeRootSignature"
            fn(*const c_void, i32, *mut *mut c_void, *mut *mut c_void) -> HRESULT;
    }
}

/// The feature levels that are tried, from the best to the level of compute-only devices.
const LEVELS: [D3D_FEATURE_LEVEL; 3] =
    [D3D_FEATURE_LEVEL_12_0, D3D_FEATURE_LEVEL_11_0, D3D_FEATURE_LEVEL_1_0_CORE];

/// Lists the adapters, with a kernel on each.
pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    let candidates = adapters()?.into_iter().map(|Adapter { info, object }| Candidate {
        info,
        work: Work::kernel(move || {
            let (device, level) = create_device(library, &object)?;
            Computation::open(functions, &device, level)
        }),
    });
    Ok((None, candidates.collect()))
}

/// A device with its feature level.
type Device = (ID3D12Device, D3D_FEATURE_LEVEL);

/// The adapters of DXGI, then the adapters that only `DXCore` lists. If neither lists any, the
/// error is the fault of DXGI.
pub(super) fn adapters() -> Result<Vec<Adapter<IUnknown>>, Fault> {
    let listed = Loaded::open(Api::Dxgi, dxgi::NAMES).map_err(Fault::from).and_then(dxgi::adapters);
    let others = Loaded::open(Api::Dxcore, dxcore::NAMES)
        .map_err(Fault::from)
        .and_then(dxcore::adapters)
        .unwrap_or_default();
    let mut found: Vec<Adapter<IUnknown>> = match listed {
        Ok(listed) => listed.into_iter().map(untyped).collect(),
        Err(fault) if others.is_empty() => return Err(fault),
        Err(_) => Vec::new(),
    };
    for other in others {
        if !found.iter().any(|adapter| adapter.info.luid == other.info.luid) {
            found.push(untyped(other));
        }
    }
    Ok(found)
}

fn untyped<T: Interface + Into<IUnknown>>(adapter: Adapter<T>) -> Adapter<IUnknown> {
    Adapter { info: adapter.info, object: adapter.object.into() }
}

/// The shader on a device.
struct Computation {
    commands: Commands,
    feature_level: f64,
}

impl Computation {
    fn open(
        functions: Functions,
        device: &ID3D12Device,
        level: D3D_FEATURE_LEVEL,
    ) -> Result<Computation, Fault> {
        let commands = Commands::new(device, |description, blob| {
            let mut errors = null_mut();
            // SAFETY: the caller passes a complete description of version 1.
            check("D3D12SerializeRootSignature", unsafe {
                (functions.serialize)(description, 1, blob, &raw mut errors)
            })
        })?;
        Ok(Computation { commands, feature_level: feature_level(level.0) })
    }
}

/// The device with the highest level that the adapter supports.
pub(super) fn create_device(library: Loaded, adapter: &IUnknown) -> Result<Device, Fault> {
    let mut refused = Fault::new("no feature level is supported");
    for level in LEVELS {
        match create_device_of(&library, adapter.as_raw(), level) {
            Ok(device) => return Ok((device, level)),
            Err(fault) => refused = fault,
        }
    }
    Err(refused)
}

/// A device with a feature level. `adapter` is null or a live adapter.
pub(crate) fn create_device_of(
    library: &Loaded,
    adapter: *mut c_void,
    level: D3D_FEATURE_LEVEL,
) -> Result<ID3D12Device, Fault> {
    let functions = Functions::load(library)?;
    // SAFETY: the caller passes no other pointer.
    create("D3D12CreateDevice", |id, object| unsafe {
        (functions.create_device)(adapter, level, id, object)
    })
}

impl Kernel for Computation {
    fn run(&mut self, repeats: u32) -> Result<Vec<u32>, Fault> {
        self.commands.run(repeats)
    }

    fn further_tests(&mut self) -> Result<Vec<Measurement>, Fault> {
        Ok(vec![Measurement::new("feature level at least", self.feature_level, "")])
    }
}
