//! The operators of the network on a `DirectML` device.
#![allow(unsafe_code, reason = "calls the interfaces of a DirectML device")]

use std::mem::ManuallyDrop;
use std::ptr::null;

use windows::Win32::AI::MachineLearning::DirectML::{
    DML_ACTIVATION_RELU_OPERATOR_DESC, DML_BINDING_DESC, DML_BINDING_PROPERTIES,
    DML_BINDING_TABLE_DESC, DML_BINDING_TYPE_BUFFER, DML_BINDING_TYPE_NONE, DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC, DML_CONVOLUTION_DIRECTION_FORWARD,
    DML_CONVOLUTION_MODE_CROSS_CORRELATION, DML_CONVOLUTION_OPERATOR_DESC, DML_EXECUTION_FLAG_NONE,
    DML_OPERATOR_ACTIVATION_RELU, DML_OPERATOR_CONVOLUTION, DML_OPERATOR_DESC,
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DESC, DML_TENSOR_FLAG_NONE, DML_TENSOR_TYPE_BUFFER,
    IDMLBindingTable, IDMLCommandRecorder, IDMLCompiledOperator, IDMLDevice, IDMLDispatchable,
    IDMLOperator, IDMLOperatorInitializer,
};
use windows::Win32::Graphics::Direct3D12::{
    D3D12_CPU_DESCRIPTOR_HANDLE, D3D12_DESCRIPTOR_HEAP_DESC,
    D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV,
    D3D12_GPU_DESCRIPTOR_HANDLE, D3D12_HEAP_TYPE_DEFAULT, D3D12_HEAP_TYPE_READBACK,
    D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_STATE_COPY_SOURCE,
    D3D12_RESOURCE_STATE_UNORDERED_ACCESS, ID3D12DescriptorHeap, ID3D12Device, ID3D12Resource,
};
use windows::core::Interface;

use super::super::com::failed;
use super::super::queue::{Queue, borrowed, buffer, each_after_the_other, map, read, transition};
use crate::network::{self, LAYERS, VALUES, VALUES_SHAPE, WEIGHTS, WEIGHTS_SHAPE};
use crate::outcome::Fault;

/// The size of the values between two layers, and of a layer's weights.
const VALUES_SIZE: u64 = (VALUES * size_of::<f32>()) as u64;
const WEIGHTS_SIZE: u64 = (WEIGHTS * size_of::<f32>()) as u64;
/// The offset of the weights, which follow the input and the output of each layer.
const WEIGHTS_START: u64 = VALUES_SIZE * (LAYERS as u64 + 1);
/// The size of everything.
const SIZE: u64 = WEIGHTS_START + WEIGHTS_SIZE * LAYERS as u64;

/// The network on a device. All layers are the same operator with other weights.
pub(super) struct Inference {
    queue: Queue,
    recorder: IDMLCommandRecorder,
    operator: IDMLCompiledOperator,
    /// The bindings of each layer.
    tables: Vec<IDMLBindingTable>,
    heap: ID3D12DescriptorHeap,
    /// The input, the output of each layer, and the weights.
    data: ID3D12Resource,
    /// The content of `data` before a run.
    start: ID3D12Resource,
    readback: ID3D12Resource,
}

/// A range of descriptors for each dispatch.
struct Descriptors {
    heap: ID3D12DescriptorHeap,
    increment: u32,
    used: u32,
}

// Objects are live, of one device, and used by one thread; structures live during the calls. The
// comments below name only what goes beyond this.
impl Inference {
    pub(super) fn new(device: &ID3D12Device, directml: &IDMLDevice) -> Result<Inference, Fault> {
        let operator = compile(directml)?;
        // SAFETY: as above.
        let initializer: IDMLOperatorInitializer =
            unsafe { directml.CreateOperatorInitializer(Some(&[Some(operator.clone())])) }
                .map_err(failed("CreateOperatorInitializer"))?;
        // SAFETY: as above.
        let (needs, start_needs) =
            unsafe { (operator.GetBindingProperties(), initializer.GetBindingProperties()) };
        let layers = u32::try_from(LAYERS).unwrap_or(u32::MAX);
        let count = start_needs.RequiredDescriptorCount + needs.RequiredDescriptorCount * layers;
        let mut descriptors = Descriptors::new(device, count)?;
        let temporary_size = needs.TemporaryResourceSize.max(start_needs.TemporaryResourceSize);
        let temporary = optional_buffer(device, temporary_size)?;
        let persistent = optional_buffer(device, needs.PersistentResourceSize)?;
        let data = buffer(device, D3D12_HEAP_TYPE_DEFAULT, SIZE)?;

        let initial = descriptors.table(directml, &initializer, &start_needs)?;
        bind_temporary(&initial, temporary.as_ref(), start_needs.TemporaryResourceSize);
        bind_all(&initial, &[], &[whole(persistent.as_ref(), needs.PersistentResourceSize)]);
        let mut tables = Vec::new();
        for layer in 0..LAYERS as u64 {
            let table = descriptors.table(directml, &operator, &needs)?;
            bind_temporary(&table, temporary.as_ref(), needs.TemporaryResourceSize);
            if let Some(persistent) = &persistent {
                let buffer = range(persistent, 0, needs.PersistentResourceSize);
                let binding = described(&buffer);
                // SAFETY: as above.
                unsafe { table.BindPersistentResource(Some(&raw const binding)) };
            }
            let weights = range(&data, WEIGHTS_START + layer * WEIGHTS_SIZE, WEIGHTS_SIZE);
            let input = range(&data, layer * VALUES_SIZE, VALUES_SIZE);
            let output = range(&data, (layer + 1) * VALUES_SIZE, VALUES_SIZE);
            // The convolution has no bias.
            bind_all(&table, &[Some(input), Some(weights), None], &[Some(output)]);
            tables.push(table);
        }
        // SAFETY: as above.
        let recorder: IDMLCommandRecorder =
            unsafe { directml.CreateCommandRecorder() }.map_err(failed("CreateCommandRecorder"))?;
        let mut queue = Queue::new(device)?;
        let list = queue.record(None)?;
        // SAFETY: the descriptors of the table are in the heap.
        unsafe {
            list.SetDescriptorHeaps(&[Some(descriptors.heap.clone())]);
            recorder.RecordDispatch(list, &initializer, &initial);
        }
        queue.execute()?;
        let (start, heap) = (start_data(device)?, descriptors.heap);
        let readback = buffer(device, D3D12_HEAP_TYPE_READBACK, VALUES_SIZE)?;
        Ok(Inference { queue, recorder, operator, tables, heap, data, start, readback })
    }

    /// Writes the input and the weights, and zeros for the results.
    pub(super) fn reset(&mut self) -> Result<(), Fault> {
        let list = self.queue.record(None)?;
        // SAFETY: both buffers have this size.
        unsafe { list.CopyBufferRegion(&self.data, 0, &self.start, 0, SIZE) };
        self.queue.execute()
    }

    /// Runs the network and returns the output of its last layer.
    pub(super) fn run(&mut self) -> Result<Vec<f32>, Fault> {
        let (list, data) = (self.queue.record(None)?, &self.data);
        let (written, source) =
            (D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_SOURCE);
        // SAFETY: the descriptors of the tables are in the heap. The first dispatch promotes the
        // buffer from the common state.
        unsafe {
            list.SetDescriptorHeaps(&[Some(self.heap.clone())]);
            for table in &self.tables {
                self.recorder.RecordDispatch(list, &self.operator, table);
                list.ResourceBarrier(&[each_after_the_other(data)]);
            }
            list.ResourceBarrier(&[transition(data, written, source)]);
            let output = LAYERS as u64 * VALUES_SIZE;
            list.CopyBufferRegion(&self.readback, 0, data, output, VALUES_SIZE);
        }
        self.queue.execute()?;
        read(&self.readback, VALUES)
    }
}

impl Descriptors {
    fn new(device: &ID3D12Device, count: u32) -> Result<Descriptors, Fault> {
        let kind = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
        let description = D3D12_DESCRIPTOR_HEAP_DESC {
            Type: kind,
            NumDescriptors: count.max(1),
            Flags: D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE,
            NodeMask: 0,
        };
        // SAFETY: as above.
        let heap = unsafe { device.CreateDescriptorHeap(&raw const description) }
            .map_err(failed("CreateDescriptorHeap"))?;
        // SAFETY: as above.
        let increment = unsafe { device.GetDescriptorHandleIncrementSize(kind) };
        Ok(Descriptors { heap, increment, used: 0 })
    }

    /// The bindings of `dispatchable`, in the next descriptors.
    fn table<T: Interface>(
        &mut self,
        directml: &IDMLDevice,
        dispatchable: &T,
        needs: &DML_BINDING_PROPERTIES,
    ) -> Result<IDMLBindingTable, Fault> {
        let dispatchable: IDMLDispatchable =
            dispatchable.cast().map_err(failed("QueryInterface"))?;
        let offset = self.used * self.increment;
        self.used += needs.RequiredDescriptorCount;
        // SAFETY: as above.
        let (cpu, gpu) = unsafe {
            let heap = &self.heap;
            (heap.GetCPUDescriptorHandleForHeapStart(), heap.GetGPUDescriptorHandleForHeapStart())
        };
        let mut description = DML_BINDING_TABLE_DESC {
            Dispatchable: ManuallyDrop::new(Some(dispatchable)),
            CPUDescriptorHandle: D3D12_CPU_DESCRIPTOR_HANDLE { ptr: cpu.ptr + offset as usize },
            GPUDescriptorHandle: D3D12_GPU_DESCRIPTOR_HANDLE { ptr: gpu.ptr + u64::from(offset) },
            SizeInDescriptors: needs.RequiredDescriptorCount,
        };
        // SAFETY: the heap has room for the descriptors.
        let table = unsafe { directml.CreateBindingTable(Some(&raw const description)) };
        // SAFETY: the description is not used any more.
        unsafe { ManuallyDrop::drop(&mut description.Dispatchable) };
        table.map_err(failed("CreateBindingTable"))
    }
}

/// The convolution of a layer. Its activation replaces negative sums by zero.
fn compile(directml: &IDMLDevice) -> Result<IDMLCompiledOperator, Fault> {
    let [values_buffer, weights_buffer] =
        [(&VALUES_SHAPE, VALUES_SIZE), (&WEIGHTS_SHAPE, WEIGHTS_SIZE)].map(|(shape, size)| {
            DML_BUFFER_TENSOR_DESC {
                DataType: DML_TENSOR_DATA_TYPE_FLOAT32,
                Flags: DML_TENSOR_FLAG_NONE,
                DimensionCount: 4,
                Sizes: shape.as_ptr(),
                Strides: null(),
                TotalTensorSizeInBytes: size,
                GuaranteedBaseOffsetAlignment: 0,
            }
        });
    let (values, weights) = (tensor(&values_buffer), tensor(&weights_buffer));
    // A fused activation uses the tensors of its operator.
    let relu = DML_ACTIVATION_RELU_OPERATOR_DESC { InputTensor: null(), OutputTensor: null() };
    let activation =
        DML_OPERATOR_DESC { Type: DML_OPERATOR_ACTIVATION_RELU, Desc: (&raw const relu).cast() };
    let (ones, zeros) = ([1, 1], [0, 0]);
    let convolution = DML_CONVOLUTION_OPERATOR_DESC {
        InputTensor: &raw const values,
        FilterTensor: &raw const weights,
        BiasTensor: null(),
        OutputTensor: &raw const values,
        Mode: DML_CONVOLUTION_MODE_CROSS_CORRELATION,
        Direction: DML_CONVOLUTION_DIRECTION_FORWARD,
        DimensionCount: 2,
        Strides: ones.as_ptr(),
        Dilations: ones.as_ptr(),
        StartPadding: ones.as_ptr(),
        EndPadding: ones.as_ptr(),
        OutputPadding: zeros.as_ptr(),
        GroupCount: 1,
        FusedActivation: &raw const activation,
    };
    let description =
        DML_OPERATOR_DESC { Type: DML_OPERATOR_CONVOLUTION, Desc: (&raw const convolution).cast() };
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

/// The description refers to `buffer`, which must outlive it.
fn tensor(buffer: &DML_BUFFER_TENSOR_DESC) -> DML_TENSOR_DESC {
    DML_TENSOR_DESC { Type: DML_TENSOR_TYPE_BUFFER, Desc: (&raw const *buffer).cast() }
}

/// A buffer in memory that the CPU writes, with the input, zeros and the weights.
fn start_data(device: &ID3D12Device) -> Result<ID3D12Resource, Fault> {
    let mut values = network::input();
    values.resize(VALUES * (LAYERS + 1), 0.0);
    values.extend(network::weights());
    let start = buffer(device, D3D12_HEAP_TYPE_UPLOAD, SIZE)?;
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

fn whole(buffer: Option<&ID3D12Resource>, size: u64) -> Option<DML_BUFFER_BINDING> {
    buffer.map(|buffer| range(buffer, 0, size))
}

fn described(binding: &DML_BUFFER_BINDING) -> DML_BINDING_DESC {
    let start = (&raw const *binding).cast();
    DML_BINDING_DESC { Type: DML_BINDING_TYPE_BUFFER, Desc: start }
}

fn bind_temporary(table: &IDMLBindingTable, buffer: Option<&ID3D12Resource>, size: u64) {
    let Some(buffer) = whole(buffer, size).filter(|_| size > 0) else { return };
    let binding = described(&buffer);
    // SAFETY: the table copies the binding.
    unsafe { table.BindTemporaryResource(Some(&raw const binding)) };
}

/// Binds inputs and outputs in the order of the operator's tensors. `None`: the operator has no
/// such tensor.
fn bind_all(
    table: &IDMLBindingTable,
    inputs: &[Option<DML_BUFFER_BINDING>],
    outputs: &[Option<DML_BUFFER_BINDING>],
) {
    let [inputs, outputs] = [inputs, outputs].map(|list| {
        list.iter()
            .map(|binding| match binding {
                Some(binding) => described(binding),
                None => DML_BINDING_DESC { Type: DML_BINDING_TYPE_NONE, Desc: null() },
            })
            .collect::<Vec<_>>()
    });
    // SAFETY: the table copies the bindings, which live as long as the arguments.
    unsafe {
        if !inputs.is_empty() {
            table.BindInputs(Some(&inputs));
        }
        table.BindOutputs(Some(&outputs));
    }
}
