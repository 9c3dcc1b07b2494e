//! Direct3D 12: a compute shader on every adapter of DXGI, and on the compute-only devices that
//! only `DXCore` lists.
#![allow(unsafe_code, reason = "calls d3d12.dll")]

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use windows::Win32::Graphics::Direct3D::{
    D3D_FEATURE_LEVEL, D3D_FEATURE_LEVEL_1_0_CORE, D3D_FEATURE_LEVEL_11_0, D3D_FEATURE_LEVEL_12_0,
};
use windows::Win32::Graphics::Direct3D12::{
    D3D12_COMPUTE_PIPELINE_STATE_DESC, D3D12_HEAP_TYPE_DEFAULT, D3D12_HEAP_TYPE_READBACK,
    D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_COPY_SOURCE,
    D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_ROOT_DESCRIPTOR, D3D12_ROOT_PARAMETER,
    D3D12_ROOT_PARAMETER_0, D3D12_ROOT_PARAMETER_TYPE_UAV, D3D12_ROOT_SIGNATURE_DESC,
    D3D12_SHADER_BYTECODE, D3D12_SHADER_VISIBILITY_ALL, ID3D12Device, ID3D12PipelineState,
    ID3D12Resource, ID3D12RootSignature,
};
use windows::core::{GUID, HRESULT, IUnknown, Interface};

use super::com::{Adapter, blob, check, create, failed};
use super::queue::{Queue, buffer, map, read, transition};
use super::{dxcore, dxgi, shader};
use crate::api::Api;
use crate::library::{Loaded, functions};
use crate::outcome::Fault;
use crate::session::{Candidate, Devices, Refusal, Work};
use crate::workload::{BYTES, GROUPS, WORDS};

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

/// The size of every buffer.
const SIZE: u64 = BYTES as u64;

/// Lists the adapters, with a kernel on each.
pub(in super::super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    Functions::load(&library)?;
    let candidates = adapters()?.into_iter().map(|Adapter { info, object }| Candidate {
        info,
        work: Work::kernel(move || Computation::open(library, &object)?.run()),
    });
    Ok((None, candidates.collect()))
}

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
    queue: Queue,
    signature: ID3D12RootSignature,
    pipeline: ID3D12PipelineState,
    result: ID3D12Resource,
    /// Zeros, which overwrite the result before the run.
    zeros: ID3D12Resource,
    readback: ID3D12Resource,
}

// Objects are live, of one device, and used by one thread; structures live during the calls. The
// comments below name only what goes beyond this.
impl Computation {
    fn open(library: Loaded, adapter: &IUnknown) -> Result<Computation, Fault> {
        let device = create_device(library, adapter)?;
        let signature = root_signature(library, &device)?;
        let pipeline = shader::with_bytecode(|bytecode| pipeline(&device, &signature, bytecode))?;
        let zeros = buffer(&device, D3D12_HEAP_TYPE_UPLOAD, SIZE)?;
        // SAFETY: the buffer has this many words and no submission uses it.
        unsafe { map::<u32>(&zeros)?.write_bytes(0, WORDS) };
        Ok(Computation {
            queue: Queue::new(&device)?,
            signature,
            pipeline,
            result: buffer(&device, D3D12_HEAP_TYPE_DEFAULT, SIZE)?,
            zeros,
            readback: buffer(&device, D3D12_HEAP_TYPE_READBACK, SIZE)?,
        })
    }

    fn record(&self) -> Result<(), Fault> {
        let list = self.queue.record(Some(&self.pipeline))?;
        let result = &self.result;
        let writing = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
        let source = D3D12_RESOURCE_STATE_COPY_SOURCE;
        // SAFETY: buffers return to the common state after each submission, and a copy promotes
        // them to the state that it needs.
        unsafe {
            list.CopyBufferRegion(result, 0, &self.zeros, 0, SIZE);
            list.ResourceBarrier(&[transition(result, D3D12_RESOURCE_STATE_COPY_DEST, writing)]);
            list.SetComputeRootSignature(&self.signature);
            list.SetComputeRootUnorderedAccessView(0, result.GetGPUVirtualAddress());
            list.Dispatch(GROUPS, 1, 1);
            list.ResourceBarrier(&[transition(result, writing, source)]);
            list.CopyBufferRegion(&self.readback, 0, result, 0, SIZE);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<Vec<u32>, Fault> {
        self.record()?;
        self.queue.execute()?;
        read(&self.readback, WORDS)
    }
}

/// The device with the highest level that the adapter supports.
pub(super) fn create_device(library: Loaded, adapter: &IUnknown) -> Result<ID3D12Device, Fault> {
    let mut refused = Fault::new("no feature level is supported");
    for level in LEVELS {
        match create_device_of(&library, adapter.as_raw(), level) {
            Ok(device) => return Ok(device),
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

fn root_signature(library: Loaded, device: &ID3D12Device) -> Result<ID3D12RootSignature, Fault> {
    let parameter = D3D12_ROOT_PARAMETER {
        ParameterType: D3D12_ROOT_PARAMETER_TYPE_UAV,
        Anonymous: D3D12_ROOT_PARAMETER_0 {
            Descriptor: D3D12_ROOT_DESCRIPTOR { ShaderRegister: 0, RegisterSpace: 0 },
        },
        ShaderVisibility: D3D12_SHADER_VISIBILITY_ALL,
    };
    let description = D3D12_ROOT_SIGNATURE_DESC {
        NumParameters: 1,
        pParameters: &raw const parameter,
        ..Default::default()
    };
    let functions = Functions::load(&library)?;
    let mut serialized = null_mut();
    let mut errors = null_mut();
    // SAFETY: the description is complete and of version 1.
    let result = unsafe {
        (functions.serialize)(
            (&raw const description).cast(),
            1,
            &raw mut serialized,
            &raw mut errors,
        )
    };
    check("D3D12SerializeRootSignature", result)?;
    let bytes = blob("D3D12SerializeRootSignature", serialized)?;
    // SAFETY: the bytes live until the signature is created.
    let created = unsafe { device.CreateRootSignature(0, &bytes) };
    created.map_err(failed("CreateRootSignature"))
}

fn pipeline(
    device: &ID3D12Device,
    signature: &ID3D12RootSignature,
    bytecode: &[u8],
) -> Result<ID3D12PipelineState, Fault> {
    let mut description = D3D12_COMPUTE_PIPELINE_STATE_DESC {
        pRootSignature: ManuallyDrop::new(Some(signature.clone())),
        CS: D3D12_SHADER_BYTECODE {
            pShaderBytecode: bytecode.as_ptr().cast(),
            BytecodeLength: bytecode.len(),
        },
        ..Default::default()
    };
    // SAFETY: as above.
    let created = unsafe { device.CreateComputePipelineState(&raw const description) };
    // SAFETY: the description is not used any more.
    unsafe { ManuallyDrop::drop(&mut description.pRootSignature) };
    created.map_err(failed("CreateComputePipelineState"))
}
