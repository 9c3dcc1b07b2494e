//! The commands that run the shader on a Direct3D 12 device.
#![allow(unsafe_code, reason = "calls the interfaces of a Direct3D 12 device")]

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use windows::Win32::Foundation::HANDLE;
use windows::Win32::Graphics::Direct3D::ID3DBlob;
use windows::Win32::Graphics::Direct3D12::{
    D3D12_COMMAND_LIST_TYPE_COMPUTE, D3D12_COMMAND_QUEUE_DESC, D3D12_COMPUTE_PIPELINE_STATE_DESC,
    D3D12_FENCE_FLAG_NONE, D3D12_HEAP_FLAG_NONE, D3D12_HEAP_PROPERTIES, D3D12_HEAP_TYPE,
    D3D12_HEAP_TYPE_DEFAULT, D3D12_HEAP_TYPE_READBACK, D3D12_HEAP_TYPE_UPLOAD,
    D3D12_RESOURCE_BARRIER, D3D12_RESOURCE_BARRIER_0, D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES,
    D3D12_RESOURCE_BARRIER_TYPE_TRANSITION, D3D12_RESOURCE_BARRIER_TYPE_UAV, D3D12_RESOURCE_DESC,
    D3D12_RESOURCE_DIMENSION_BUFFER, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS,
    D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_STATE_COPY_DEST,
    D3D12_RESOURCE_STATE_COPY_SOURCE, D3D12_RESOURCE_STATE_GENERIC_READ,
    D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATES,
    D3D12_RESOURCE_TRANSITION_BARRIER, D3D12_RESOURCE_UAV_BARRIER, D3D12_ROOT_DESCRIPTOR,
    D3D12_ROOT_PARAMETER, D3D12_ROOT_PARAMETER_0, D3D12_ROOT_PARAMETER_TYPE_UAV,
    D3D12_ROOT_SIGNATURE_DESC, D3D12_SHADER_BYTECODE, D3D12_SHADER_VISIBILITY_ALL,
    D3D12_TEXTURE_LAYOUT_ROW_MAJOR, ID3D12CommandAllocator, ID3D12CommandQueue, ID3D12Device,
    ID3D12Fence, ID3D12GraphicsCommandList, ID3D12PipelineState, ID3D12Resource,
    ID3D12RootSignature,
};
use windows::Win32::Graphics::Dxgi::Common::{DXGI_FORMAT_UNKNOWN, DXGI_SAMPLE_DESC};
use windows::Win32::System::Threading::{CreateEventW, INFINITE, WaitForSingleObject};
use windows::core::Interface;

use super::super::com::failed;
use super::super::shader;
use crate::outcome::Fault;
use crate::workload::{BYTES, GROUPS, WORDS};

/// The size of every buffer.
const SIZE: u64 = BYTES as u64;

/// A device's queue, and what its commands use.
pub(super) struct Commands {
    device: ID3D12Device,
    queue: ID3D12CommandQueue,
    allocator: ID3D12CommandAllocator,
    list: ID3D12GraphicsCommandList,
    signature: ID3D12RootSignature,
    pipeline: ID3D12PipelineState,
    result: ID3D12Resource,
    /// Zeros, which the result is overwritten with before each run.
    zeros: ID3D12Resource,
    readback: ID3D12Resource,
    fence: ID3D12Fence,
    /// The value of the fence after the last submission.
    signaled: u64,
    event: HANDLE,
}

// Objects are live, of one device, and used by one thread; structures live during the calls. The
// comments below name only what goes beyond this.
impl Commands {
    /// `serialize` writes a root signature as a blob.
    pub(super) fn new(
        device: &ID3D12Device,
        serialize: impl Fn(*const c_void, *mut *mut c_void) -> Result<(), Fault>,
    ) -> Result<Commands, Fault> {
        let kind = D3D12_COMMAND_LIST_TYPE_COMPUTE;
        let description = D3D12_COMMAND_QUEUE_DESC { Type: kind, ..Default::default() };
        // SAFETY: as above.
        let queue = unsafe { device.CreateCommandQueue(&raw const description) };
        // SAFETY: as above.
        let allocator: ID3D12CommandAllocator = unsafe { device.CreateCommandAllocator(kind) }
            .map_err(failed("CreateCommandAllocator"))?;
        let signature = root_signature(device, serialize)?;
        let pipeline = shader::with_bytecode(|bytecode| pipeline(device, &signature, bytecode))?;
        // SAFETY: as above.
        let list: ID3D12GraphicsCommandList =
            unsafe { device.CreateCommandList(0, kind, &allocator, &pipeline) }
                .map_err(failed("CreateCommandList"))?;
        // SAFETY: a new list is open; each run opens it again.
        unsafe { list.Close() }.map_err(failed("Close"))?;
        // SAFETY: as above.
        let fence = unsafe { device.CreateFence(0, D3D12_FENCE_FLAG_NONE) };
        // SAFETY: as above.
        let event = unsafe { CreateEventW(None, false, false, None) };
        let (upload, readback) = (D3D12_HEAP_TYPE_UPLOAD, D3D12_HEAP_TYPE_READBACK);
        let zeros = buffer(device, upload, D3D12_RESOURCE_STATE_GENERIC_READ)?;
        // SAFETY: the buffer has this many words and no submission uses it.
        unsafe { map(&zeros)?.write_bytes(0, WORDS) };
        Ok(Commands {
            queue: queue.map_err(failed("CreateCommandQueue"))?,
            allocator,
            list,
            signature,
            pipeline,
            result: buffer(device, D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_STATE_COMMON)?,
            zeros,
            readback: buffer(device, readback, D3D12_RESOURCE_STATE_COPY_DEST)?,
            fence: fence.map_err(failed("CreateFence"))?,
            signaled: 0,
            event: event.map_err(failed("CreateEvent"))?,
            device: device.clone(),
        })
    }

    /// Runs the shader `repeats` times and returns its result.
    pub(super) fn run(&mut self, repeats: u32) -> Result<Vec<u32>, Fault> {
        self.record(repeats)?;
        let list = self.list.cast().map_err(failed("QueryInterface"))?;
        self.signaled += 1;
        // SAFETY: the list is closed. The event is signaled when its commands have ended.
        unsafe {
            self.queue.ExecuteCommandLists(&[Some(list)]);
            self.queue.Signal(&self.fence, self.signaled).map_err(failed("Signal"))?;
            let waiting = self.fence.SetEventOnCompletion(self.signaled, self.event);
            waiting.map_err(failed("SetEventOnCompletion"))?;
            WaitForSingleObject(self.event, INFINITE);
            // A removed device signals every fence.
            self.device.GetDeviceRemovedReason().map_err(failed("ExecuteCommandLists"))?;
        }
        let words = map(&self.readback)?;
        // SAFETY: the mapping has this many words, and the commands that wrote them have ended.
        let result = unsafe { std::slice::from_raw_parts(words, WORDS) }.to_vec();
        // SAFETY: the buffer is mapped.
        unsafe { self.readback.Unmap(0, None) };
        Ok(result)
    }

    fn record(&self, repeats: u32) -> Result<(), Fault> {
        let Commands { list, result, .. } = self;
        let (writing, source) =
            (D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_SOURCE);
        // SAFETY: the previous submission has ended. Buffers return to the common state after
        // each submission, and a copy promotes them to that of its destination.
        unsafe {
            self.allocator.Reset().map_err(failed("Reset"))?;
            list.Reset(&self.allocator, &self.pipeline).map_err(failed("Reset"))?;
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
            list.Close().map_err(failed("Close"))
        }
    }
}

/// A barrier's resource. The list holds no reference, and the buffers live as long as the process.
fn borrowed(resource: &ID3D12Resource) -> ManuallyDrop<Option<ID3D12Resource>> {
    // SAFETY: a copy of the pointer, whose reference is never released.
    unsafe { std::mem::transmute_copy(resource) }
}

fn transition(
    resource: &ID3D12Resource,
    before: D3D12_RESOURCE_STATES,
    after: D3D12_RESOURCE_STATES,
) -> D3D12_RESOURCE_BARRIER {
    let transition = D3D12_RESOURCE_TRANSITION_BARRIER {
        pResource: borrowed(resource),
        Subresource: D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES,
        StateBefore: before,
        StateAfter: after,
    };
    D3D12_RESOURCE_BARRIER {
        Type: D3D12_RESOURCE_BARRIER_TYPE_TRANSITION,
        Anonymous: D3D12_RESOURCE_BARRIER_0 { Transition: ManuallyDrop::new(transition) },
        ..Default::default()
    }
}

fn each_after_the_other(resource: &ID3D12Resource) -> D3D12_RESOURCE_BARRIER {
    let access = D3D12_RESOURCE_UAV_BARRIER { pResource: borrowed(resource) };
    D3D12_RESOURCE_BARRIER {
        Type: D3D12_RESOURCE_BARRIER_TYPE_UAV,
        Anonymous: D3D12_RESOURCE_BARRIER_0 { UAV: ManuallyDrop::new(access) },
        ..Default::default()
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
    let mut blob = null_mut();
    serialize((&raw const description).cast(), &raw mut blob)?;
    if blob.is_null() {
        return Err(Fault::new("D3D12SerializeRootSignature returned no blob"));
    }
    // SAFETY: the call succeeded, so this is a blob, and this code owns the reference.
    let blob = unsafe { ID3DBlob::from_raw(blob) };
    // SAFETY: the blob lives until the signature is created.
    let created = unsafe {
        let bytes = blob.GetBufferPointer().cast::<u8>();
        device.CreateRootSignature(0, std::slice::from_raw_parts(bytes, blob.GetBufferSize()))
    };
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

fn buffer(
    device: &ID3D12Device,
    heap: D3D12_HEAP_TYPE,
    state: D3D12_RESOURCE_STATES,
) -> Result<ID3D12Resource, Fault> {
    let is_result = heap == D3D12_HEAP_TYPE_DEFAULT;
    let heap = D3D12_HEAP_PROPERTIES { Type: heap, ..Default::default() };
    let description = D3D12_RESOURCE_DESC {
        Dimension: D3D12_RESOURCE_DIMENSION_BUFFER,
        Width: SIZE,
        Height: 1,
        DepthOrArraySize: 1,
        MipLevels: 1,
        Format: DXGI_FORMAT_UNKNOWN,
        SampleDesc: DXGI_SAMPLE_DESC { Count: 1, Quality: 0 },
        Layout: D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
        Flags: if is_result {
            D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS
        } else {
            D3D12_RESOURCE_FLAG_NONE
        },
        ..Default::default()
    };
    let mut buffer = None;
    // SAFETY: as above.
    let created = unsafe {
        let (heap, description) = (&raw const heap, &raw const description);
        let none = D3D12_HEAP_FLAG_NONE;
        device.CreateCommittedResource(heap, none, description, state, None, &raw mut buffer)
    };
    created.map_err(failed("CreateCommittedResource"))?;
    buffer.ok_or_else(|| Fault::new("CreateCommittedResource returned no buffer"))
}

fn map(buffer: &ID3D12Resource) -> Result<*mut u32, Fault> {
    let mut words = null_mut();
    // SAFETY: the buffer is in memory that can be mapped.
    unsafe { buffer.Map(0, None, Some(&raw mut words)) }.map_err(failed("Map"))?;
    Ok(words.cast())
}
