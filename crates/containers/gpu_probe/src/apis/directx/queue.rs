//! A queue of a Direct3D 12 device, and its buffers.
#![allow(unsafe_code, reason = "calls the interfaces of a Direct3D 12 device")]

use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use windows::Win32::Foundation::HANDLE;
use windows::Win32::Graphics::Direct3D12::{
    D3D12_COMMAND_LIST_TYPE_COMPUTE, D3D12_COMMAND_QUEUE_DESC, D3D12_FENCE_FLAG_NONE,
    D3D12_HEAP_FLAG_NONE, D3D12_HEAP_PROPERTIES, D3D12_HEAP_TYPE, D3D12_HEAP_TYPE_READBACK,
    D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_BARRIER, D3D12_RESOURCE_BARRIER_0,
    D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES, D3D12_RESOURCE_BARRIER_TYPE_TRANSITION,
    D3D12_RESOURCE_DESC, D3D12_RESOURCE_DIMENSION_BUFFER,
    D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS, D3D12_RESOURCE_FLAG_NONE,
    D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_GENERIC_READ,
    D3D12_RESOURCE_STATES, D3D12_RESOURCE_TRANSITION_BARRIER, D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
    ID3D12CommandAllocator, ID3D12CommandQueue, ID3D12Device, ID3D12Fence,
    ID3D12GraphicsCommandList, ID3D12PipelineState, ID3D12Resource,
};
use windows::Win32::Graphics::Dxgi::Common::DXGI_SAMPLE_DESC;
use windows::Win32::System::Threading::{CreateEventW, INFINITE, WaitForSingleObject};
use windows::core::Interface;

use super::com::failed;
use crate::outcome::Fault;

/// A device's queue for compute commands.
pub(super) struct Queue {
    pub(super) device: ID3D12Device,
    commands: ID3D12CommandQueue,
    allocator: ID3D12CommandAllocator,
    list: ID3D12GraphicsCommandList,
    fence: ID3D12Fence,
    /// The value of the fence after the last submission.
    signaled: u64,
    event: HANDLE,
}

// Objects are live, of one device, and used by one thread; structures live during the calls. The
// comments below name only what goes beyond this.
impl Queue {
    pub(super) fn new(device: &ID3D12Device) -> Result<Queue, Fault> {
        let kind = D3D12_COMMAND_LIST_TYPE_COMPUTE;
        let description = D3D12_COMMAND_QUEUE_DESC { Type: kind, ..Default::default() };
        // SAFETY: as above.
        let queue = unsafe { device.CreateCommandQueue(&raw const description) };
        // SAFETY: as above.
        let allocator: ID3D12CommandAllocator = unsafe { device.CreateCommandAllocator(kind) }
            .map_err(failed("CreateCommandAllocator"))?;
        // SAFETY: as above.
        let list: ID3D12GraphicsCommandList =
            unsafe { device.CreateCommandList(0, kind, &allocator, None) }
                .map_err(failed("CreateCommandList"))?;
        // SAFETY: a new list is open; each recording opens it again.
        unsafe { list.Close() }.map_err(failed("Close"))?;
        // SAFETY: as above.
        let fence = unsafe { device.CreateFence(0, D3D12_FENCE_FLAG_NONE) };
        // SAFETY: as above.
        let event = unsafe { CreateEventW(None, false, false, None) };
        Ok(Queue {
            commands: queue.map_err(failed("CreateCommandQueue"))?,
            allocator,
            list,
            fence: fence.map_err(failed("CreateFence"))?,
            signaled: 0,
            event: event.map_err(failed("CreateEvent"))?,
            device: device.clone(),
        })
    }

    /// Starts a recording. Buffers are in the common state.
    pub(super) fn record(
        &self,
        pipeline: Option<&ID3D12PipelineState>,
    ) -> Result<&ID3D12GraphicsCommandList, Fault> {
        // SAFETY: the previous submission has ended.
        unsafe {
            self.allocator.Reset().map_err(failed("Reset"))?;
            self.list.Reset(&self.allocator, pipeline).map_err(failed("Reset"))?;
        }
        Ok(&self.list)
    }

    /// Runs what was recorded, and waits for its end.
    pub(super) fn execute(&mut self) -> Result<(), Fault> {
        let list = self.list.cast().map_err(failed("QueryInterface"))?;
        self.signaled += 1;
        // SAFETY: the event is signaled when the commands have ended.
        unsafe {
            self.list.Close().map_err(failed("Close"))?;
            self.commands.ExecuteCommandLists(&[Some(list)]);
            self.commands.Signal(&self.fence, self.signaled).map_err(failed("Signal"))?;
            let waiting = self.fence.SetEventOnCompletion(self.signaled, self.event);
            waiting.map_err(failed("SetEventOnCompletion"))?;
            WaitForSingleObject(self.event, INFINITE);
            // A removed device signals every fence.
            self.device.GetDeviceRemovedReason().map_err(failed("ExecuteCommandLists"))
        }
    }
}

/// A resource without a reference of its own: it must live until the commands that use it have
/// ended.
pub(super) fn borrowed(resource: &ID3D12Resource) -> ManuallyDrop<Option<ID3D12Resource>> {
    // SAFETY: a copy of the pointer, whose reference is never released.
    unsafe { std::mem::transmute_copy(resource) }
}

pub(super) fn transition(
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

/// A buffer of `size` bytes, in the state that its heap demands.
pub(super) fn buffer(
    device: &ID3D12Device,
    heap: D3D12_HEAP_TYPE,
    size: u64,
) -> Result<ID3D12Resource, Fault> {
    let (state, flags) = match heap {
        D3D12_HEAP_TYPE_UPLOAD => (D3D12_RESOURCE_STATE_GENERIC_READ, D3D12_RESOURCE_FLAG_NONE),
        D3D12_HEAP_TYPE_READBACK => (D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_FLAG_NONE),
        _ => (D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS),
    };
    let heap = D3D12_HEAP_PROPERTIES { Type: heap, ..Default::default() };
    let description = D3D12_RESOURCE_DESC {
        Dimension: D3D12_RESOURCE_DIMENSION_BUFFER,
        Width: size,
        Height: 1,
        DepthOrArraySize: 1,
        MipLevels: 1,
        SampleDesc: DXGI_SAMPLE_DESC { Count: 1, Quality: 0 },
        Layout: D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
        Flags: flags,
        ..Default::default()
    };
    let mut buffer = None;
    // SAFETY: as above.
    let created = unsafe {
        let heap = &raw const heap;
        let description = &raw const description;
        let none = D3D12_HEAP_FLAG_NONE;
        device.CreateCommittedResource(heap, none, description, state, None, &raw mut buffer)
    };
    created.map_err(failed("CreateCommittedResource"))?;
    buffer.ok_or_else(|| Fault::new("CreateCommittedResource returned no buffer"))
}

pub(super) fn map<T>(buffer: &ID3D12Resource) -> Result<*mut T, Fault> {
    let mut start = null_mut();
    // SAFETY: the buffer is in memory that can be mapped.
    unsafe { buffer.Map(0, None, Some(&raw mut start)) }.map_err(failed("Map"))?;
    Ok(start.cast())
}

/// The first `count` values of a buffer that no submission uses.
pub(super) fn read<T: Copy>(buffer: &ID3D12Resource, count: usize) -> Result<Vec<T>, Fault> {
    let values = map::<T>(buffer)?;
    // SAFETY: the callers ask for what their buffer has.
    let result = unsafe { std::slice::from_raw_parts(values, count) }.to_vec();
    // SAFETY: the buffer is mapped.
    unsafe { buffer.Unmap(0, None) };
    Ok(result)
}
