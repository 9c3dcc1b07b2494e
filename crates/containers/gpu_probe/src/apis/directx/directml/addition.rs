//! The operator that adds two tensors, on a `DirectML` device.
#![allow(unsafe_code, reason = "calls the interfaces of a DirectML device")]

use std::mem::ManuallyDrop;
use std::ptr::null;

use windows::Win32::AI::MachineLearning::DirectML::{
    DML_BINDING_DESC, DML_BINDING_PROPERTIES, DML_BINDING_TABLE_DESC, DML_BINDING_TYPE_BUFFER,
    DML_BINDING_TYPE_NONE, DML_BUFFER_BINDING, DML_BUFFER_TENSOR_DESC,
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC, DML_EXECUTION_FLAG_NONE, DML_OPERATOR_DESC,
    DML_OPERATOR_ELEMENT_WISE_ADD, DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DESC,
    DML_TENSOR_FLAG_NONE, DML_TENSOR_TYPE_BUFFER, IDMLBindingTable, IDMLCommandRecorder,
    IDMLCompiledOperator, IDMLDevice, IDMLDispatchable, IDMLOperator, IDMLOperatorInitializer,
};
use windows::Win32::Graphics::Direct3D12::{
    D3D12_DESCRIPTOR_HEAP_DESC, D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE,
    D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, D3D12_HEAP_TYPE_DEFAULT, D3D12_HEAP_TYPE_READBACK,
    D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_COPY_SOURCE,
    D3D12_RESOURCE_STATE_UNORDERED_ACCESS, ID3D12DescriptorHeap, ID3D12Device, ID3D12Resource,
};
use windows::core::Interface;

use super::super::com::failed;
use super::super::queue::{Queue, borrowed, buffer, map, read, transition};
use crate::outcome::Fault;
use crate::workload::{BYTES, GROUP, GROUPS, WORDS};

/// The shape of each tensor, which has [`WORDS`] values. Older versions of `DirectML` accept only
/// four dimensions.
const SHAPE: [u32; 4] = [1, 1, GROUPS, GROUP];
/// The size of a tensor.
const SIZE: u64 = BYTES as u64;

/// The operator on a device.
pub(super) struct Addition<'a> {
    device: &'a ID3D12Device,
    directml: &'a IDMLDevice,
    queue: Queue,
    recorder: IDMLCommandRecorder,
    operator: IDMLCompiledOperator,
    needs: DML_BINDING_PROPERTIES,
    /// What the operator keeps from its initialization to its run, if it keeps anything.
    persistent: Option<ID3D12Resource>,
}

/// The buffers of a dispatch. They must live until the dispatch has ended.
struct Bindings {
    heap: ID3D12DescriptorHeap,
    table: IDMLBindingTable,
    /// Scratch memory, if the dispatch needs any.
    _temporary: Option<ID3D12Resource>,
}

// Objects are live, of one device, and used by one thread; structures live during the calls. The
// comments below name only what goes beyond this.
impl<'a> Addition<'a> {
    /// Compiles and initializes the operator.
    pub(super) fn new(
        device: &'a ID3D12Device,
        directml: &'a IDMLDevice,
    ) -> Result<Addition<'a>, Fault> {
        let operator = compile(directml)?;
        // SAFETY: as above.
        let recorder: IDMLCommandRecorder =
            unsafe { directml.CreateCommandRecorder() }.map_err(failed("CreateCommandRecorder"))?;
        // SAFETY: as above.
        let needs = unsafe { operator.GetBindingProperties() };
        let persistent = optional_buffer(device, needs.PersistentResourceSize)?;
        let queue = Queue::new(device)?;
        let mut addition =
            Addition { device, directml, queue, recorder, operator, needs, persistent };
        addition.initialize()?;
        Ok(addition)
    }

    fn initialize(&mut self) -> Result<(), Fault> {
        let operators = [Some(self.operator.clone())];
        // SAFETY: as above.
        let initializer: IDMLOperatorInitializer =
            unsafe { self.directml.CreateOperatorInitializer(Some(&operators)) }
                .map_err(failed("CreateOperatorInitializer"))?;
        // SAFETY: as above.
        let needs = unsafe { initializer.GetBindingProperties() };
        let bindings = Bindings::new(self.device, self.directml, &initializer, &needs)?;
        // The output of the initialization is what the operator keeps.
        let persistent = self.persistent_range();
        let output = match &persistent {
            Some(range) => described(range),
            None => DML_BINDING_DESC { Type: DML_BINDING_TYPE_NONE, Desc: null() },
        };
        // SAFETY: the table copies the binding.
        unsafe { bindings.table.BindOutputs(Some(&[output])) };
        let list = self.queue.record(None)?;
        // SAFETY: the descriptors of the table are in the heap.
        unsafe {
            list.SetDescriptorHeaps(&[Some(bindings.heap.clone())]);
            self.recorder.RecordDispatch(list, &initializer, &bindings.table);
        }
        self.queue.execute()
    }

    /// Adds the values of `left` and `right` and returns the bits of the sums. Each has [`WORDS`]
    /// values.
    pub(super) fn run(&mut self, left: &[f32], right: &[f32]) -> Result<Vec<u32>, Fault> {
        let start = start_data(self.device, left, right)?;
        // The two terms and the sums.
        let data = buffer(self.device, D3D12_HEAP_TYPE_DEFAULT, SIZE * 3)?;
        let sums = buffer(self.device, D3D12_HEAP_TYPE_READBACK, SIZE)?;
        let bindings = self.bind(&data)?;
        let writing = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
        let source = D3D12_RESOURCE_STATE_COPY_SOURCE;
        let list = self.queue.record(None)?;
        // SAFETY: the descriptors of the table are in the heap, and the buffers have the sizes
        // that are copied.
        unsafe {
            list.CopyBufferRegion(&data, 0, &start, 0, SIZE * 3);
            list.ResourceBarrier(&[transition(&data, D3D12_RESOURCE_STATE_COPY_DEST, writing)]);
            list.SetDescriptorHeaps(&[Some(bindings.heap.clone())]);
            self.recorder.RecordDispatch(list, &self.operator, &bindings.table);
            list.ResourceBarrier(&[transition(&data, writing, source)]);
            list.CopyBufferRegion(&sums, 0, &data, SIZE * 2, SIZE);
        }
        self.queue.execute()?;
        read(&sums, WORDS)
    }

    /// Binds the operator to the terms and the sums in `data`.
    fn bind(&self, data: &ID3D12Resource) -> Result<Bindings, Fault> {
        let bindings = Bindings::new(self.device, self.directml, &self.operator, &self.needs)?;
        if let Some(persistent) = self.persistent_range() {
            let binding = described(&persistent);
            // SAFETY: the table copies the binding.
            unsafe { bindings.table.BindPersistentResource(Some(&raw const binding)) };
        }
        let [left, right, sums] = [0, SIZE, SIZE * 2].map(|offset| range(data, offset, SIZE));
        // SAFETY: the table copies the bindings.
        unsafe {
            bindings.table.BindInputs(Some(&[described(&left), described(&right)]));
            bindings.table.BindOutputs(Some(&[described(&sums)]));
        }
        Ok(bindings)
    }

    fn persistent_range(&self) -> Option<DML_BUFFER_BINDING> {
        let size = self.needs.PersistentResourceSize;
        self.persistent.as_ref().map(|buffer| range(buffer, 0, size))
    }
}

impl Bindings {
    /// Bindings of `dispatchable` with its scratch memory. The caller binds the other buffers.
    fn new<T: Interface>(
        device: &ID3D12Device,
        directml: &IDMLDevice,
        dispatchable: &T,
        needs: &DML_BINDING_PROPERTIES,
    ) -> Result<Bindings, Fault> {
        let temporary = optional_buffer(device, needs.TemporaryResourceSize)?;
        let heap = heap(device, needs.RequiredDescriptorCount)?;
        let dispatchable: IDMLDispatchable =
            dispatchable.cast().map_err(failed("QueryInterface"))?;
        let mut description = DML_BINDING_TABLE_DESC {
            Dispatchable: ManuallyDrop::new(Some(dispatchable)),
            // SAFETY: as above.
            CPUDescriptorHandle: unsafe { heap.GetCPUDescriptorHandleForHeapStart() },
            // SAFETY: as above.
            GPUDescriptorHandle: unsafe { heap.GetGPUDescriptorHandleForHeapStart() },
            SizeInDescriptors: needs.RequiredDescriptorCount,
        };
        // SAFETY: the heap has room for the descriptors.
        let table: Result<IDMLBindingTable, _> =
            unsafe { directml.CreateBindingTable(Some(&raw const description)) };
        // SAFETY: the description is not used any more.
        unsafe { ManuallyDrop::drop(&mut description.Dispatchable) };
        let table = table.map_err(failed("CreateBindingTable"))?;
        if let Some(buffer) = &temporary {
            let buffer = range(buffer, 0, needs.TemporaryResourceSize);
            let binding = described(&buffer);
            // SAFETY: the table copies the binding.
            unsafe { table.BindTemporaryResource(Some(&raw const binding)) };
        }
        Ok(Bindings { heap, table, _temporary: temporary })
    }
}

/// A heap with `count` descriptors. A heap without descriptors cannot be created.
fn heap(device: &ID3D12Device, count: u32) -> Result<ID3D12DescriptorHeap, Fault> {
    let description = D3D12_DESCRIPTOR_HEAP_DESC {
        Type: D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV,
        NumDescriptors: count.max(1),
        Flags: D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE,
        NodeMask: 0,
    };
    // SAFETY: as above.
    unsafe { device.CreateDescriptorHeap(&raw const description) }
        .map_err(failed("CreateDescriptorHeap"))
}

fn compile(directml: &IDMLDevice) -> Result<IDMLCompiledOperator, Fault> {
    let buffer = DML_BUFFER_TENSOR_DESC {
        DataType: DML_TENSOR_DATA_TYPE_FLOAT32,
        Flags: DML_TENSOR_FLAG_NONE,
        DimensionCount: 4,
        Sizes: SHAPE.as_ptr(),
        Strides: null(),
        TotalTensorSizeInBytes: SIZE,
        GuaranteedBaseOffsetAlignment: 0,
    };
    let tensor = DML_TENSOR_DESC { Type: DML_TENSOR_TYPE_BUFFER, Desc: (&raw const buffer).cast() };
    let addition = DML_ELEMENT_WISE_ADD_OPERATOR_DESC {
        ATensor: &raw const tensor,
        BTensor: &raw const tensor,
        OutputTensor: &raw const tensor,
    };
    let description = DML_OPERATOR_DESC {
        Type: DML_OPERATOR_ELEMENT_WISE_ADD,
        Desc: (&raw const addition).cast(),
    };
    let mut operator: Option<IDMLOperator> = None;
    // SAFETY: the descriptions live during the call.
    unsafe { directml.CreateOperator(&raw const description, &raw mut operator) }
        .map_err(failed("CreateOperator"))?;
    let operator = operator.ok_or_else(|| Fault::new("CreateOperator returned no operator"))?;
    let mut compiled = None;
    // SAFETY: as above.
    unsafe { directml.CompileOperator(&operator, DML_EXECUTION_FLAG_NONE, &raw mut compiled) }
        .map_err(failed("CompileOperator"))?;
    compiled.ok_or_else(|| Fault::new("CompileOperator returned no operator"))
}

/// A buffer in memory that the CPU writes, with the terms, and zeros in place of the sums.
fn start_data(device: &ID3D12Device, left: &[f32], right: &[f32]) -> Result<ID3D12Resource, Fault> {
    let mut values = [left, right].concat();
    values.resize(WORDS * 3, 0.0);
    let start = buffer(device, D3D12_HEAP_TYPE_UPLOAD, SIZE * 3)?;
    // SAFETY: the buffer has room for all values, and no submission uses it.
    unsafe { map::<f32>(&start)?.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    Ok(start)
}

/// A buffer, unless its size is zero.
fn optional_buffer(device: &ID3D12Device, size: u64) -> Result<Option<ID3D12Resource>, Fault> {
    (size > 0).then(|| buffer(device, D3D12_HEAP_TYPE_DEFAULT, size)).transpose()
}

fn range(buffer: &ID3D12Resource, offset: u64, size: u64) -> DML_BUFFER_BINDING {
    DML_BUFFER_BINDING { Buffer: borrowed(buffer), Offset: offset, SizeInBytes: size }
}

/// The description refers to `binding`, which must outlive it.
fn described(binding: &DML_BUFFER_BINDING) -> DML_BINDING_DESC {
    let start = (&raw const *binding).cast();
    DML_BINDING_DESC { Type: DML_BINDING_TYPE_BUFFER, Desc: start }
}
