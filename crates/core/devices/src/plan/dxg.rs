//! What the containers of a Linux host with `/dev/dxg` get.
//!
//! The host is a virtual machine to which Windows lends its adapters, such as WSL2. All adapters
//! are behind one device file, so nothing here keeps a container from using the devices of others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plan::container_contents::{ContainerContents, PlanWarning};
use crate::plan::mounts::{FileDecision, MountCandidate, MountOrigin};
use crate::text::paths::check_component;
use crate::text::printable::printable;
use crate::{
    ContainerPolicy, Device, HostFacts, MountOutcome, MountPlan, NoMountsReason, RuntimeMounts,
    Vendor,
};

/// The device file.
pub const DXG_DEVICE: &str = "/dev/dxg";

/// The name of the CDI device that contains the device file, the folders and the search path.
pub const DXG_CDI_DEVICE: &str = "directx.microsoft.com/dxg=all";

/// The folders of the host with libraries for every driver, and with the driver store of Windows.
/// The libraries contain these paths.
pub const DXG_FOLDERS: [&str; 2] = ["/usr/lib/wsl/lib", "/usr/lib/wsl/drivers"];

/// The variable with which programs find the libraries, and its value.
pub const DXG_LIBRARY_PATH: (&str, &str) = ("LD_LIBRARY_PATH", DXG_FOLDERS[0]);

/// Where a Linux host has the driver store folder `path` of Windows, if it is in the repository.
#[must_use]
pub fn dxg_driver_folder(path: &str) -> Option<String> {
    const REPOSITORY: &str = r"\filerepository\";
    let start = path.to_ascii_lowercase().find(REPOSITORY)? + REPOSITORY.len();
    let below = path[start..].trim_end_matches('\\');
    below.split('\\').try_for_each(check_component).ok()?;
    Some(format!("{}/{}", DXG_FOLDERS[1], below.replace('\\', "/")))
}

/// What a container with these devices gets, except for the hints that Windows containers get too.
pub(crate) fn contents(
    devices: &[Arc<Device>],
    policy: &ContainerPolicy,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
    warnings: &mut Vec<PlanWarning>,
) -> ContainerContents {
    let mut envs =
        if policy.omit_environment_hints { BTreeMap::new() } else { vendor_hints(devices) };
    let mut mounts = MountPlan::default();
    let mut reason = no_folders(policy);
    if reason.is_none() {
        for folder in DXG_FOLDERS {
            let found = !host.is_this_machine || exists(folder);
            if !found {
                warnings.push(PlanWarning::MissingFolder(folder));
            }
            let outcome = if found { MountOutcome::Mounted } else { MountOutcome::Missing };
            let [host_path, container_path] = [folder, folder].map(str::to_owned);
            let file = MountCandidate { host_path, container_path, origin: MountOrigin::Default };
            mounts.files.push(FileDecision { file, outcome });
        }
        if mounts.mounted().next().is_none() {
            reason = Some(NoMountsReason::NoFolders);
        }
        let (name, value) = DXG_LIBRARY_PATH;
        envs.insert(name.to_owned(), value.to_owned());
    }
    if let Some(reason) = reason {
        mounts.devices_without_mounts = devices.iter().map(|d| (d.luid, reason)).collect();
    }
    ContainerContents { devices: devices.to_vec(), mounts, envs }
}

/// Why the configuration mounts neither folder. The CDI device has them, and the search path,
/// whatever `runtimeMounts` says.
fn no_folders(policy: &ContainerPolicy) -> Option<NoMountsReason> {
    if policy.cdi_devices {
        return Some(NoMountsReason::InCdiDevice);
    }
    match policy.runtime_mounts {
        RuntimeMounts::Never => Some(NoMountsReason::Never),
        RuntimeMounts::Extra => Some(NoMountsReason::ExtraOnLinux),
        RuntimeMounts::Auto | RuntimeMounts::Always => None,
    }
}

/// The variables with which each vendor's libraries choose GPUs.
fn vendor_hints(devices: &[Arc<Device>]) -> BTreeMap<String, String> {
    let mut hints = Vec::new();
    if let Some(indexes) = indexes(devices, Vendor::Intel) {
        hints.push(("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1".to_owned()));
        hints.push(("ZE_AFFINITY_MASK", indexes));
    }
    if let Some(indexes) = indexes(devices, Vendor::Nvidia) {
        hints.push(("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()));
        hints.push(("CUDA_VISIBLE_DEVICES", indexes));
    }
    if let Some(indexes) = indexes(devices, Vendor::Amd) {
        hints.push(("HIP_VISIBLE_DEVICES", indexes));
    }
    if devices.iter().any(|device| device.vendor == Vendor::Amd && device.display) {
        hints.push(("HSA_ENABLE_DXG_DETECTION", "1".to_owned()));
    }
    if let Some(device) = devices.iter().find(|device| device.display) {
        let name = printable(&device.description).into_owned();
        hints.push(("MESA_D3D12_DEFAULT_ADAPTER_NAME", name));
    }
    hints.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The positions of a container's GPUs of a vendor. `None` if the container has all of them:
/// libraries skip GPUs that they do not support, so that a list of all can name the wrong ones.
fn indexes(devices: &[Arc<Device>], vendor: Vendor) -> Option<String> {
    let of_vendor = devices.iter().filter(|device| device.vendor == vendor);
    let known: Vec<_> = of_vendor.filter_map(|device| device.vendor_index).collect();
    let (_, count) = known.first()?;
    let indexes: Vec<String> = known.iter().map(|(index, _)| index.to_string()).collect();
    (indexes.len() != *count).then(|| indexes.join(","))
}
