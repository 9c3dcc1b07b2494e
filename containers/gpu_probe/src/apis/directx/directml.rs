//! `DirectML`: a small convolutional network on every device of Direct3D 12.
#![allow(unsafe_code, reason = "calls DirectML.dll")]

use std::ffi::c_void;
use std::time::Instant;

use windows::Win32::AI::MachineLearning::DirectML::IDMLDevice;
use windows::Win32::Graphics::Direct3D12::ID3D12Device;
use windows::core::{GUID, HRESULT, Interface};

use super::com::create;
use super::d3d12;
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::network;
use crate::outcome::{Fault, Measurement};
use crate::session::{Candidate, Refusal, Session, Work};

mod inference;

use self::inference::Inference;

functions! {
    /// The function of `DirectML.h`. Version 1.0, which Windows has since 1903, has it.
    Functions {
        create_device = "DMLCreateDevice"
            fn(*mut c_void, u32, *const GUID, *mut *mut c_void) -> HRESULT;
    }
}

/// How often the network runs after the first time.
const RUNS: usize = 100;

/// Loads `DirectML` and prepares the test of every device.
pub(super) fn open() -> Result<Session, Refusal> {
    let library = Loaded::open(Api::Directml, &["DirectML.dll"])?;
    let functions = Functions::load(&library).map_err(|fault| library.broken(fault))?;
    let d3d12 = Loaded::open(Api::D3d12, &["d3d12.dll"])?;
    let adapters = d3d12::devices(&d3d12).map_err(|fault| library.broken(fault))?;
    let candidates = adapters.into_iter().map(|adapter| Candidate {
        info: adapter.info,
        work: match adapter.object {
            Ok((device, _)) => Work::Test(Box::new(move || test(functions, &device))),
            Err(fault) => Work::Failed(fault),
        },
    });
    Ok(Session { candidates: candidates.collect(), library: library.describe(None) })
}

fn test(functions: Functions, device: &ID3D12Device) -> Result<Vec<Measurement>, Fault> {
    // SAFETY: the device is a live object, and no flags are set.
    let directml: IDMLDevice = create("DMLCreateDevice", |id, object| unsafe {
        (functions.create_device)(device.as_raw(), 0, id, object)
    })?;
    let start = Instant::now();
    let mut inference = Inference::new(device, &directml)?;
    inference.reset()?;
    network::verify(&inference.run()?)?;
    let first = Measurement::new("first run", start.elapsed().as_secs_f64() * 1e3, "ms");
    let mut times = Vec::new();
    for _ in 0..RUNS {
        inference.reset()?;
        let start = Instant::now();
        let result = inference.run()?;
        times.push(start.elapsed());
        network::verify(&result)?;
    }
    Ok([vec![first], network::percentiles(times)].concat())
}
