//! The commands that run the shader on a Direct3D 12 device.
#![allow(unsafe_code, reason = "calls the interfaces of a Direct3D 12 device")]

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use windows::Win32::Graphics::Direct3D12::{
    D3D12_COMPUTE_PIPELINE_STATE_DESC, D3D12_HEAP_TYPE_DEFAULT, D3D12_HEAP_TYPE_READBACK,
    D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_COPY_SOURCE,
    D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_ROOT_DESCRIPTOR, D3D12_ROOT_PARAMETER,
    D3D12_ROOT_PARAMETER_0, D3D12_ROOT_PARAMETER_TYPE_UAV, D3D12_ROOT_SIGNATURE_DESC,
    D3D12_SHADER_BYTECODE, D3D12_SHADER_VISIBILITY_ALL, ID3D12Device, ID3D12PipelineState,
    ID3D12Resource, ID3D12RootSignature,
};

use super::super::com::{blob, failed};
use super::super::shader;
use super::queue::{Queue, buffer, each_after_the_other, map, read, transition};
use crate::outcome::Fault;
use crate::workload::{BYTES, GROUPS, WORDS};

/// The size of every buffer.
const SIZE: u64 = BYTES as u64;

/// A device's queue, and what its commands use.
pub(super) struct Commands {
    queue: Queue,
    signature: ID3D12RootSignature,
    pipeline: ID3D12PipelineState,
    result: ID3D12Resource,
    /// Zeros, which the result is overwritten with before each run.
    zeros: ID3D12Resource,
    readback: ID3D12Resource,
}

// Objects are live, of one device, and used by one thread; structures live during the calls. The
// comments below name only what goes beyond this.
impl Commands {
    /// `serialize` writes a root signature as a blob.
    pub(super) fn new(
        device: &ID3D12Device,
        serialize: impl Fn(*const c_void, *mut *mut c_void) -> Result<(), Fault>,
    ) -> Result<Commands, Fault> {
        let signature = root_signature(device, serialize)?;
        let pipeline = shader::with_bytecode(|bytecode| pipeline(device, &signature, bytecode))?;
        let zeros = buffer(device, D3D12_HEAP_TYPE_UPLOAD, SIZE)?;
        // SAFETY: the buffer has this many words and no submission uses it.
        unsafe { map::<u32>(&zeros)?.write_bytes(0, WORDS) };
        Ok(Commands {
            queue: Queue::new(device)?,
            signature,
            pipeline,
            result: buffer(device, D3D12_HEAP_TYPE_DEFAULT, SIZE)?,
            zeros,
            readback: buffer(device, D3D12_HEAP_TYPE_READBACK, SIZE)?,
        })
    }

    /// Runs the shader `repeats` times and returns its result.
    pub(super) fn run(&mut self, repeats: u32) -> Result<Vec<u32>, Fault> {
        self.record(repeats)?;
        self.queue.execute()?;
        read(&self.readback, WORDS)
    }

    fn record(&self, repeats: u32) -> Result<(), Fault> {
        let (list, result) = (self.queue.record(Some(&self.pipeline))?, &self.result);
        let (writing, source) =
            (D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_SOURCE);
        // SAFETY: buffers return to the common state after each submission, and a copy promotes
        // them to the state that it needs.
        unsafe {
            list.CopyBufferRegion(result, 0, &self.zeros, 0, SIZE);
            list.ResourceBarrier(&[transition(result, D3D12_RESOURCE_STATE_COPY_DEST, writing)]);
            list.SetComputeRootSignature(&self.signature);
            list.SetComputeRootUnorderedAccessView(0, result.GetGPUVirtualAddress());
            for _ in 0..repeats {
                list.Dispatch(GROUPS, 1, 1);
                list.ResourceBarrier(&[each_after_the_other(result)]);
            }
            list.ResourceBarrier(&[transition(result, writing, source)]);
            list.CopyBufferRegion(&self.readback, 0, result, 0, SIZE);
        }
        Ok(())
    }
}

fn root_signature(
    device: &ID3D12Device,
    serialize: impl Fn(*const c_void, *mut *mut c_void) -> Result<(), Fault>,
) -> Result<ID3D12RootSignature, Fault> {
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
    let mut serialized = null_mut();
    serialize((&raw const description).cast(), &raw mut serialized)?;
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
