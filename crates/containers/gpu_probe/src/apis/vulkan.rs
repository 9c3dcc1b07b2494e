//! Vulkan: a compute shader on every physical device.
#![allow(unsafe_code, reason = "calls the Vulkan loader")]

use ash::vk;
use ash::{Device, Entry, Instance, StaticFn};

use crate::library::{Loaded, Symbols};
use crate::outcome::{DeviceInfo, Fault, Kind};
use crate::session::{Candidate, Devices, Refusal, Work};
use crate::workload::{BYTES, GROUPS, WORDS};

pub(super) const NAMES: &[&str] =
    if cfg!(windows) { &["vulkan-1.dll"] } else { &["libvulkan.so.1"] };

/// `kernels/mix.comp`, compiled.
const SHADER: &[u8] = include_bytes!("../../kernels/mix.spv");

/// Lists every device, with a kernel on each.
pub(super) fn list(library: Loaded) -> Result<Devices, Refusal> {
    let entry = entry(&library)?;
    let version = instance_version(&entry);
    let text = Some(version_text(version));
    match candidates(&entry, version) {
        Ok(candidates) => Ok((text, candidates)),
        Err(fault) => Err(Refusal::Broken(Some(library.describe(text)), fault)),
    }
}

fn entry(library: &Loaded) -> Result<Entry, Fault> {
    let address = library.function("vkGetInstanceProcAddr")?;
    // SAFETY: the specification declares the function of this name with this type.
    let get_instance_proc_addr =
        unsafe { std::mem::transmute::<*mut (), vk::PFN_vkGetInstanceProcAddr>(address) };
    // SAFETY: the library stays loaded.
    Ok(unsafe { Entry::from_static_fn(StaticFn { get_instance_proc_addr }) })
}

fn instance_version(entry: &Entry) -> u32 {
    // SAFETY: the function has no requirements.
    let version = unsafe { entry.try_enumerate_instance_version() };
    version.ok().flatten().unwrap_or(vk::API_VERSION_1_0)
}

fn version_text(version: u32) -> String {
    let major = vk::api_version_major(version);
    let minor = vk::api_version_minor(version);
    format!("Vulkan {major}.{minor}.{}", vk::api_version_patch(version))
}

fn failed(call: &'static str) -> impl Fn(vk::Result) -> Fault {
    move |result| {
        let fault = Fault::new(format!("{call} failed: {result:?}"));
        match result {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => fault.hint(concat!(
                "the loader found no driver: the driver's files are not mounted, or not \
                 registered; see ",
                page!("runtime-files")
            )),
            vk::Result::ERROR_DEVICE_LOST => fault.hint(
                "the driver was reset or the device was removed: restart the container, and check \
                 the device on the node",
            ),
            _ => fault,
        }
    }
}

fn candidates(entry: &Entry, version: u32) -> Result<Vec<Candidate>, Fault> {
    let wanted = if version >= vk::API_VERSION_1_1 { vk::API_VERSION_1_1 } else { version };
    let application =
        vk::ApplicationInfo::default().application_name(c"gpu-probe").api_version(wanted);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    // SAFETY: the structures are complete and live during the call.
    let created =
        unsafe { entry.create_instance(&info, None) }.map_err(failed("vkCreateInstance"))?;
    let instance: &Instance = Box::leak(Box::new(created));
    // SAFETY: the instance is never destroyed.
    let devices = unsafe { instance.enumerate_physical_devices() }
        .map_err(failed("vkEnumeratePhysicalDevices"))?;
    let candidates = devices.into_iter().map(|device| Candidate {
        info: describe(instance, wanted, device),
        work: Work::kernel(move || ComputeKernel::open(instance, device)?.run()),
    });
    Ok(candidates.collect())
}

fn describe(instance: &Instance, version: u32, device: vk::PhysicalDevice) -> DeviceInfo {
    // SAFETY: here and below, the instance listed the device.
    let properties = unsafe { instance.get_physical_device_properties(device) };
    let memory = unsafe { instance.get_physical_device_memory_properties(device) };
    let local = memory
        .memory_heaps_as_slice()
        .iter()
        .filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    let name = properties.device_name_as_c_str().unwrap_or_default();
    let is_cpu = properties.device_type == vk::PhysicalDeviceType::CPU;
    let (luid, driver) = if version.min(properties.api_version) >= vk::API_VERSION_1_1 {
        identity(instance, device, properties.api_version)
    } else {
        (None, None)
    };
    DeviceInfo {
        name: name.to_string_lossy().into_owned(),
        kind: if is_cpu { Kind::Software } else { Kind::Hardware },
        luid,
        driver,
        memory_bytes: Some(local.map(|heap| heap.size).sum()),
        license: None,
    }
}

/// The LUID and the driver of a device with Vulkan 1.1 or newer.
fn identity(
    instance: &Instance,
    device: vk::PhysicalDevice,
    version: u32,
) -> (Option<i64>, Option<String>) {
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut id = vk::PhysicalDeviceIDProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
    if version >= vk::API_VERSION_1_2 {
        properties = properties.push_next(&mut driver);
    }
    // SAFETY: the device has the version that introduced each structure of the chain.
    unsafe { instance.get_physical_device_properties2(device, &mut properties) };
    let luid = (id.device_luid_valid == vk::TRUE).then(|| i64::from_le_bytes(id.device_luid));
    let parts: Vec<String> = [driver.driver_name_as_c_str(), driver.driver_info_as_c_str()]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .map(|text| text.to_string_lossy().into_owned())
        .collect();
    (luid, (!parts.is_empty()).then(|| parts.join(" ")))
}

/// The compute shader on a device. Its buffer is mapped.
struct ComputeKernel {
    device: Device,
    queue: vk::Queue,
    commands: vk::CommandBuffer,
    fence: vk::Fence,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    descriptors: vk::DescriptorSet,
    words: *mut u32,
}

// SAFETY (of all blocks of this module below): handles were created by the same device and are
// never destroyed; structures are complete and live during the call.
impl ComputeKernel {
    fn open(instance: &Instance, physical: vk::PhysicalDevice) -> Result<ComputeKernel, Fault> {
        // SAFETY: as above.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let family = families
            .iter()
            .position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE))
            .and_then(|index| u32::try_from(index).ok())
            .ok_or_else(|| Fault::new("the device has no compute queue"))?;
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        // SAFETY: as above.
        let device = unsafe { instance.create_device(physical, &info, None) }
            .map_err(failed("vkCreateDevice"))?;
        // SAFETY: the device was created with this queue.
        let queue = unsafe { device.get_device_queue(family, 0) };
        // SAFETY: as above.
        let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
        let (buffer, words) = mapped_buffer(&device, &memory)?;
        let set_layout = set_layout(&device)?;
        let (layout, pipeline) = pipeline(&device, set_layout)?;
        let descriptors = descriptors(&device, set_layout, buffer)?;
        let commands = command_buffer(&device, family)?;
        // SAFETY: as above.
        let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }
            .map_err(failed("vkCreateFence"))?;
        Ok(ComputeKernel { device, queue, commands, fence, layout, pipeline, descriptors, words })
    }

    fn record(&self) -> Result<(), Fault> {
        let device = &self.device;
        let commands = self.commands;
        let begin = vk::CommandBufferBeginInfo::default();
        let compute = vk::PipelineStageFlags::COMPUTE_SHADER;
        // Makes what the shader wrote visible to this process.
        let visible = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        let none = vk::DependencyFlags::empty();
        let bind = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: all commands belong to one recording, and the pipeline is bound before the
        // dispatch.
        unsafe {
            device
                .begin_command_buffer(commands, &begin)
                .map_err(failed("vkBeginCommandBuffer"))?;
            device.cmd_bind_pipeline(commands, bind, self.pipeline);
            let sets = [self.descriptors];
            device.cmd_bind_descriptor_sets(commands, bind, self.layout, 0, &sets, &[]);
            device.cmd_dispatch(commands, GROUPS, 1, 1);
            let stage = vk::PipelineStageFlags::HOST;
            device.cmd_pipeline_barrier(commands, compute, stage, none, &visible, &[], &[]);
            device.end_command_buffer(commands).map_err(failed("vkEndCommandBuffer"))
        }
    }

    fn run(&self) -> Result<Vec<u32>, Fault> {
        // SAFETY: the mapping has this length, and no submission is running.
        unsafe { self.words.write_bytes(0, WORDS) };
        self.record()?;
        let commands = [self.commands];
        let submission = [vk::SubmitInfo::default().command_buffers(&commands)];
        let device = &self.device;
        // SAFETY: the commands are recorded, and the fence is not in use.
        unsafe {
            device
                .queue_submit(self.queue, &submission, self.fence)
                .map_err(failed("vkQueueSubmit"))?;
            device
                .wait_for_fences(&[self.fence], true, u64::MAX)
                .map_err(failed("vkWaitForFences"))?;
        }
        // SAFETY: the memory is coherent, and the submission that wrote it has ended.
        Ok(unsafe { std::slice::from_raw_parts(self.words, WORDS) }.to_vec())
    }
}

/// A buffer, and its place in the memory of this process.
fn mapped_buffer(
    device: &Device,
    memory: &vk::PhysicalDeviceMemoryProperties,
) -> Result<(vk::Buffer, *mut u32), Fault> {
    let size = BYTES as u64;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
    let info = vk::BufferCreateInfo::default().size(size).usage(usage);
    // SAFETY: here and below, the structures are complete, and handles belong to the device.
    let buffer = unsafe { device.create_buffer(&info, None) }.map_err(failed("vkCreateBuffer"))?;
    // SAFETY: as above.
    let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
    let mappable = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let (index, _) = (0_u32..)
        .zip(memory.memory_types_as_slice())
        .find(|(index, memory_type)| {
            needs.memory_type_bits >> index & 1 == 1
                && memory_type.property_flags.contains(mappable)
        })
        .ok_or_else(|| Fault::new("the device has no memory that can be mapped"))?;
    let info =
        vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(index);
    // SAFETY: as above.
    let memory =
        unsafe { device.allocate_memory(&info, None) }.map_err(failed("vkAllocateMemory"))?;
    // SAFETY: the memory is as large and aligned as the buffer needs, and unused.
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }
        .map_err(failed("vkBindBufferMemory"))?;
    // SAFETY: the memory can be mapped and is not mapped yet.
    let words = unsafe { device.map_memory(memory, 0, size, vk::MemoryMapFlags::empty()) }
        .map_err(failed("vkMapMemory"))?;
    Ok((buffer, words.cast()))
}

fn set_layout(device: &Device) -> Result<vk::DescriptorSetLayout, Fault> {
    let bindings = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
        .descriptor_count(1)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the structures are complete.
    let layout = unsafe { device.create_descriptor_set_layout(&info, None) };
    layout.map_err(failed("vkCreateDescriptorSetLayout"))
}

fn pipeline(
    device: &Device,
    set_layout: vk::DescriptorSetLayout,
) -> Result<(vk::PipelineLayout, vk::Pipeline), Fault> {
    let layouts = [set_layout];
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
    // SAFETY: the set layout belongs to the device.
    let layout = unsafe { device.create_pipeline_layout(&info, None) }
        .map_err(failed("vkCreatePipelineLayout"))?;
    let code: Vec<u32> =
        SHADER.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let info = vk::ShaderModuleCreateInfo::default().code(&code);
    // SAFETY: a test validates the shader.
    let module = unsafe { device.create_shader_module(&info, None) }
        .map_err(failed("vkCreateShaderModule"))?;
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(c"main");
    let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
    // SAFETY: the module has this entry point, and the layout has what the shader uses.
    let pipelines =
        unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
    let pipelines = pipelines.map_err(|(_, result)| failed("vkCreateComputePipelines")(result))?;
    Ok((layout, pipelines[0]))
}

fn descriptors(
    device: &Device,
    set_layout: vk::DescriptorSetLayout,
    buffer: vk::Buffer,
) -> Result<vk::DescriptorSet, Fault> {
    let kind = vk::DescriptorType::STORAGE_BUFFER;
    let sizes = [vk::DescriptorPoolSize::default().ty(kind).descriptor_count(1)];
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    // SAFETY: the structures are complete.
    let pool = unsafe { device.create_descriptor_pool(&info, None) }
        .map_err(failed("vkCreateDescriptorPool"))?;
    let layouts = [set_layout];
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    // SAFETY: the pool has room for one set of this layout.
    let sets = unsafe { device.allocate_descriptor_sets(&info) };
    let set = sets.map_err(failed("vkAllocateDescriptorSets"))?[0];
    let buffers = [vk::DescriptorBufferInfo::default().buffer(buffer).range(vk::WHOLE_SIZE)];
    let write =
        vk::WriteDescriptorSet::default().dst_set(set).descriptor_type(kind).buffer_info(&buffers);
    // SAFETY: no submission uses the set yet.
    unsafe { device.update_descriptor_sets(&[write], &[]) };
    Ok(set)
}

fn command_buffer(device: &Device, family: u32) -> Result<vk::CommandBuffer, Fault> {
    let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
    // SAFETY: the device was created with a queue of this family.
    let pool = unsafe { device.create_command_pool(&info, None) }
        .map_err(failed("vkCreateCommandPool"))?;
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    // SAFETY: the pool is not used elsewhere.
    let buffers = unsafe { device.allocate_command_buffers(&info) };
    Ok(buffers.map_err(failed("vkAllocateCommandBuffers"))?[0])
}
