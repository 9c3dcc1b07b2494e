//! `DirectML`: a small convolutional network on every device of Direct3D 12.
#![allow(unsafe_code, reason = "calls DirectML.dll")]

use std::ffi::c_void;
use std::time::Instant;

use windows::Win32::AI::MachineLearning::DirectML::IDMLDevice;
use windows::Win32::Graphics::Direct3D12::ID3D12Device;
use windows::core::{GUID, HRESULT, Interface};

use super::com::{Adapter, create};
use super::d3d12;
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::network;
use crate::outcome::{Fault, Measurement};
use crate::session::{Candidate, Devices, Refusal, Work};

mod inference;

use self::inference::Inference;

pub(in super::super) const NAMES: &[&str] = &["DirectML.dll"];

functions! {
    /// The function of `DirectML.h`. Version 1.0, which Windows has since 1903, has it.
    Functions {
        create_device = "DMLCreateDevice"
            fn(*mut c_void, u32, *const GUID, *mut *mut c_void) -> HRESULT;
    }
}

/// How often the network runs after the first time.
const RUNS: usize = 100;

/// Lists the adapters, with a test of each.
pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    let d3d12 = Loaded::open(Api::D3d12, d3d12::NAMES)?;
    let candidates = d3d12::adapters()?.into_iter().map(|Adapter { info, object }| Candidate {
        info,
        work: Work::Test(Box::new(move || {
            let (device, _) = d3d12::create_device(d3d12, &object)?;
            test(functions, &device)
        })),
    });
    Ok((None, candidates.collect()))
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
