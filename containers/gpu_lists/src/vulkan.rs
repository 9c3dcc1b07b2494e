//! Vulkan.

use std::ptr::{null, null_mut};

use ash::vk;
use windows::core::s;

use crate::library::Library;
use crate::{Devices, Unlisted};

pub(crate) fn list() -> Result<Devices, Unlisted> {
    let library = Library::load("vulkan-1.dll")?;
    let create: vk::PFN_vkCreateInstance = library.function(s!("vkCreateInstance"))?;
    let instance = instance(create)?;
    let functions = Functions::load(library)?;
    let devices = functions.devices(instance)?;
    Ok(devices.into_iter().map(|device| functions.luid(device)).collect())
}

/// An instance of Vulkan 1.1, the first version with LUIDs.
fn instance(create: vk::PFN_vkCreateInstance) -> Result<vk::Instance, Unlisted> {
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    let mut instance = vk::Instance::null();
    // SAFETY: the structures are complete and live during the call.
    match unsafe { create(&raw const info, null(), &raw mut instance) } {
        vk::Result::SUCCESS => Ok(instance),
        // Without a driver there is no device.
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => Err(Unlisted::Absent("no driver".to_owned())),
        result => Err(failed("vkCreateInstance", result)),
    }
}

fn failed(call: &str, result: vk::Result) -> Unlisted {
    Unlisted::Failed(format!("{call} failed with {}", result.as_raw()))
}

/// Functions that the loader exports.
struct Functions {
    enumerate: vk::PFN_vkEnumeratePhysicalDevices,
    properties: vk::PFN_vkGetPhysicalDeviceProperties,
    properties2: vk::PFN_vkGetPhysicalDeviceProperties2,
}

impl Functions {
    fn load(library: Library) -> Result<Functions, Unlisted> {
        Ok(Functions {
            enumerate: library.function(s!("vkEnumeratePhysicalDevices"))?,
            properties: library.function(s!("vkGetPhysicalDeviceProperties"))?,
            properties2: library.function(s!("vkGetPhysicalDeviceProperties2"))?,
        })
    }

    fn devices(&self, instance: vk::Instance) -> Result<Vec<vk::PhysicalDevice>, Unlisted> {
        const CALL: &str = "vkEnumeratePhysicalDevices";
        let mut count = 0;
        // SAFETY: the instance exists; without a list the function only counts.
        match unsafe { (self.enumerate)(instance, &raw mut count, null_mut()) } {
            vk::Result::SUCCESS => {}
            result => return Err(failed(CALL, result)),
        }
        let mut list = vec![vk::PhysicalDevice::null(); count as usize];
        // SAFETY: the instance exists, and the list has this length.
        match unsafe { (self.enumerate)(instance, &raw mut count, list.as_mut_ptr()) } {
            vk::Result::SUCCESS | vk::Result::INCOMPLETE => {}
            result => return Err(failed(CALL, result)),
        }
        list.truncate(count as usize);
        Ok(list)
    }

    fn luid(&self, device: vk::PhysicalDevice) -> Option<i64> {
        let mut basic = vk::PhysicalDeviceProperties::default();
        // SAFETY: here and below, the device was listed, and the structures live during the call.
        unsafe { (self.properties)(device, &raw mut basic) };
        if basic.api_version < vk::API_VERSION_1_1 {
            return None;
        }
        let mut id = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
        // SAFETY: as above; the device has the version of the function and both structures.
        unsafe { (self.properties2)(device, &raw mut properties) };
        (id.device_luid_valid == vk::TRUE).then(|| i64::from_le_bytes(id.device_luid))
    }
}
