//! `DirectML`: an operator that adds two tensors, on every device of Direct3D 12.
#![allow(unsafe_code, reason = "calls DirectML.dll")]

use std::ffi::c_void;

use windows::Win32::AI::MachineLearning::DirectML::IDMLDevice;
use windows::Win32::Graphics::Direct3D12::ID3D12Device;
use windows::core::{GUID, HRESULT, Interface};

use super::com::{Adapter, create};
use super::d3d12;
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::outcome::Fault;
use crate::session::{Candidate, Devices, Refusal, Work};
use crate::workload::{WORDS, compare, mix};

mod addition;

use self::addition::Addition;

pub(in super::super) const NAMES: &[&str] = &["DirectML.dll"];

functions! {
    /// The function of `DirectML.h`. Version 1.0, which Windows has since 1903, has it.
    Functions {
        create_device = "DMLCreateDevice"
            fn(*mut c_void, u32, *const GUID, *mut *mut c_void) -> HRESULT;
    }
}

/// Lists the adapters, with a test of each.
pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let functions = Functions::load(&library)?;
    let d3d12 = Loaded::open(Api::D3d12, d3d12::NAMES)?;
    let candidates = d3d12::adapters()?.into_iter().map(|Adapter { info, object }| Candidate {
        info,
        work: Work::Test(Box::new(move || test(functions, &d3d12::create_device(d3d12, &object)?))),
    });
    Ok((None, candidates.collect()))
}

fn test(functions: Functions, device: &ID3D12Device) -> Result<(), Fault> {
    // SAFETY: the device is a live object, and no flags are set.
    let directml: IDMLDevice = create("DMLCreateDevice", |id, object| unsafe {
        (functions.create_device)(device.as_raw(), 0, id, object)
    })?;
    let [left, right] = terms();
    let sums: Vec<u32> = left.iter().zip(&right).map(|(a, b)| (a + b).to_bits()).collect();
    let mut addition = Addition::new(device, &directml)?;
    compare(&addition.run(&left, &right)?, &sums)
}

/// The terms of the sums. They are integers below 128, so that devices that compute with only
/// eight significant bits have the same sums.
fn terms() -> [Vec<f32>; 2] {
    let term = |seed: u32| f32::from(mix(seed).to_le_bytes()[0] >> 1);
    let seeds = (1_u32..).take(WORDS);
    [seeds.clone().map(term).collect(), seeds.map(|seed| term(!seed)).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terms_are_small_and_differ() {
        let [left, right] = terms();
        assert_eq!((left.len(), right.len()), (WORDS, WORDS));
        assert!(left.iter().chain(&right).all(|term| (0.0..128.0).contains(term)));
        assert!(left != right && left[1..] != left[..WORDS - 1]);
    }
}
