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
use crate::outcome::{DeviceInfo, Fault, Measurement};
use crate::session::{Candidate, Kernel, Refusal, Session, Work};

mod commands;
pub(super) mod queue;

use self::commands::Commands;

functions! {
    /// The functions of `d3d12.h`.
    Functions {
        create_device = "D3D12CreateDevice"
            fn(*mut c_void, D3D_FEATURE_LEVEL, *const GUID, *mut *mut c_void) -> HRESULT;
        serialize = "D3D12SerializeRootSignature"
            fn(*const c_void, i32, *mut *mut c_void, *mut *mut c_void) -> HRESULT;
    }
}

/// From the best to that of compute-only devices.
const LEVELS: [D3D_FEATURE_LEVEL; 3] =
    [D3D_FEATURE_LEVEL_12_0, D3D_FEATURE_LEVEL_11_0, D3D_FEATURE_LEVEL_1_0_CORE];

/// Loads Direct3D 12 and opens a kernel on every adapter.
pub(super) fn open() -> Result<Session, Refusal> {
    let library = Loaded::open(Api::D3d12, &["d3d12.dll"])?;
    let functions = Functions::load(&library).map_err(|fault| library.broken(fault))?;
    let adapters = devices(&library).map_err(|fault| library.broken(fault))?;
    let candidates = adapters.into_iter().map(|adapter| Candidate {
        work: Work::from(
            adapter.object.and_then(|(device, level)| Computation::open(functions, &device, level)),
        ),
        info: adapter.info,
    });
    Ok(Session { candidates: candidates.collect(), library: library.describe(None) })
}

/// A device with its feature level.
type Device = (ID3D12Device, D3D_FEATURE_LEVEL);

/// A device of every adapter.
pub(super) fn devices(library: &Loaded) -> Result<Vec<Adapter<Result<Device, Fault>>>, Fault> {
    let functions = Functions::load(library)?;
    let device =
        |Adapter { info, object }| Adapter { info, object: create_device(functions, &object) };
    Ok(adapters()?.into_iter().map(device).collect())
}

/// The adapters of DXGI, then those that only `DXCore` lists. The fault is that of DXGI, if neither
/// lists any.
fn adapters() -> Result<Vec<Adapter<IUnknown>>, Fault> {
    let load = |api, name| {
        Loaded::open(api, &[name]).map_err(|refusal| match refusal {
            Refusal::Absent(fault) | Refusal::Broken(_, fault) => fault,
        })
    };
    let listed = load(Api::Dxgi, "dxgi.dll").and_then(|library| dxgi::adapters(&library));
    let others = load(Api::Dxcore, dxcore::NAME).and_then(|library| dxcore::adapters(&library));
    let others = others.unwrap_or_default();
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
    let Adapter { info, object }: Adapter<T> = adapter;
    let info: DeviceInfo = info;
    Adapter { info, object: object.into() }
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
    ) -> Result<Box<dyn Kernel>, Fault> {
        let commands = Commands::new(device, |description, blob| {
            let mut errors = null_mut();
            // SAFETY: the caller passes a complete description of version 1.
            check("D3D12SerializeRootSignature", unsafe {
                (functions.serialize)(description, 1, blob, &raw mut errors)
            })
        })?;
        Ok(Box::new(Computation { commands, feature_level: feature_level(level.0) }))
    }
}

/// The device with the highest level that the adapter supports.
fn create_device(functions: Functions, adapter: &IUnknown) -> Result<Device, Fault> {
    let mut refused = Fault::new("no feature level is supported");
    for level in LEVELS {
        // SAFETY: the adapter is a live object.
        let device = create("D3D12CreateDevice", |id, object| unsafe {
            (functions.create_device)(adapter.as_raw(), level, id, object)
        });
        match device {
            Ok(device) => return Ok((device, level)),
            Err(fault) => refused = fault,
        }
    }
    Err(refused)
}

impl Kernel for Computation {
    fn run(&mut self, repeats: u32) -> Result<Vec<u32>, Fault> {
        self.commands.run(repeats)
    }

    fn further_tests(&mut self) -> Result<Vec<Measurement>, Fault> {
        Ok(vec![Measurement::new("feature level at least", self.feature_level, "")])
    }
}
