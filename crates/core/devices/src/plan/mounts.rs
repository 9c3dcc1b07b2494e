//! Which runtime files a container gets, and why it does not get the others.
//!
//! For each device: the driver's files (from the registry), then the additional mounts of the
//! configuration, then the defaults.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::text::case_folding::fold_case;
use crate::{
    ContainerPolicy, Device, HostFacts, ListedDevice, Luid, NoStoreFolder, RuntimeFile,
    RuntimeMounts, StoreFolder, StorePath, Vendor, Wow64,
};

/// The first build on which Windows itself mounts the driver's files into containers:
/// Windows Server 2025.
pub const FIRST_BUILD_WITHOUT_MOUNTS: u32 = 26_100;

/// Files of NVIDIA drivers that are in the driver store but not named in the registry.
static NVIDIA_SYSTEM32: LazyLock<Vec<RuntimeFile>> = LazyLock::new(|| {
    files_of(&[("nvidia-smi.exe", "nvidia-smi.exe"), ("vulkaninfo-x64.exe", "vulkaninfo.exe")])
});
static NVIDIA_WOW64: LazyLock<Vec<RuntimeFile>> =
    LazyLock::new(|| files_of(&[("vulkaninfo-x86.exe", "vulkaninfo.exe")]));

pub(crate) const SYSTEM32: &str = r"C:\Windows\System32";
pub(crate) const SYSWOW64: &str = r"C:\Windows\SysWOW64";

/// Where a mount candidate comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::Display)]
pub enum MountOrigin {
    /// The driver, in the registry.
    #[strum(to_string = "the driver")]
    Registry,
    /// The configuration's additional mounts.
    #[strum(to_string = "the configuration")]
    Configuration,
    /// The defaults for the vendor.
    #[strum(to_string = "the defaults")]
    Default,
    /// `visibility: launcher`.
    #[strum(to_string = "visibility: launcher")]
    Launcher,
}

/// A file that may be mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountCandidate {
    /// The file on the host.
    pub host_path: String,
    /// The file in the container.
    pub container_path: String,
    /// Where it comes from.
    pub origin: MountOrigin,
}

impl MountCandidate {
    /// The destination with its case folded; only one file can be mounted there.
    pub(crate) fn destination(&self) -> String {
        fold_case(&self.container_path)
    }
}

/// What the plan decided about a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MountOutcome {
    /// The file is mounted.
    Mounted,
    /// The file does not exist.
    Missing,
    /// `excludeMounts` names its destination.
    Excluded,
    /// Another file is mounted at the same destination.
    DestinationTaken {
        /// The file that is mounted there.
        by: MountCandidate,
    },
    /// An additional mount of the configuration is dropped with the driver's files, which Windows
    /// mounts itself.
    NotApplied,
}

/// A file and what the plan decided about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileDecision {
    /// The file.
    pub file: MountCandidate,
    /// The decision.
    pub outcome: MountOutcome,
}

/// Why none of a device's files are mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoMountsReason {
    /// `runtimeMounts: never`.
    #[error("runtimeMounts is never")]
    Never,
    /// `runtimeMounts: extra` on Linux.
    #[error("runtimeMounts is extra, and Linux containers have no additional mounts")]
    ExtraOnLinux,
    /// `runtimeMounts: auto` on a build that mounts the driver's files itself.
    #[error(
        "runtimeMounts is auto and Windows build {FIRST_BUILD_WITHOUT_MOUNTS} or newer mounts \
         driver files itself"
    )]
    MountedByWindows,
    /// The driver store folder was not found.
    #[error("the driver store folder of the device is unknown")]
    NoDriverStore,
    /// The driver store folder is not where Windows keeps driver packages.
    #[error("the driver store folder of the device is outside the driver store of Windows")]
    DriverStoreOutside,
    /// Discovery runs inside a container.
    #[error("driver files cannot be enumerated inside a container")]
    InsideContainer,
}

/// How to get additional mounts that are [not applied](MountOutcome::NotApplied).
pub const NOT_APPLIED_HINT: &str = "set `runtimeMounts: extra` to mount only the additional mounts";

/// Decides about the files of `devices`, in their order. `exists` answers for a live host's files.
pub(crate) fn resolve(
    devices: &[&ListedDevice],
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> MountPlan {
    let mut plan = MountPlan::default();
    // The file that is mounted at each destination, by folder and name.
    let mut taken: HashMap<(&str, String), usize> = HashMap::new();
    for entry in devices {
        let device = &*entry.device;
        let policy = &*entry.policy.container;
        let reason = no_mounts(device, policy, host);
        plan.devices_without_mounts.extend(reason.map(|reason| (device.luid, reason)));
        let Ok(store) = &device.driver_store else { continue };
        for (folder, origin, RuntimeFile { source, destination }) in
            files(device, policy, host.wow64)
        {
            let host_path = format!("{}\\{source}", store.path.trim_end_matches('\\'));
            let container_path = format!("{folder}\\{destination}");
            let file = MountCandidate { host_path, container_path, origin };
            let name = destination.folded();
            let is_excluded =
                policy.exclude_mounts.iter().any(|excluded| excluded.folded() == name);
            let place = (folder, name);
            let by = taken.get(&place).and_then(|index| plan.files.get(*index));
            let outcome = match (reason, by.map(|by| &by.file)) {
                // The other reasons are the administrator's own choice, or make every mount
                // impossible.
                (Some(NoMountsReason::MountedByWindows), _)
                    if origin == MountOrigin::Configuration && !is_excluded =>
                {
                    MountOutcome::NotApplied
                }
                (Some(_), _) => continue,
                (None, _) if is_excluded => MountOutcome::Excluded,
                // Two devices with the same driver name the same file, which is no collision.
                (None, Some(by)) if by.host_path == file.host_path => continue,
                (None, _) if !contains(store, source, &file, exists) => MountOutcome::Missing,
                (None, Some(by)) => MountOutcome::DestinationTaken { by: by.clone() },
                (None, None) => {
                    taken.insert(place, plan.files.len());
                    MountOutcome::Mounted
                }
            };
            let is_mounted = outcome == MountOutcome::Mounted;
            let decision = FileDecision { file, outcome };
            if is_mounted || !plan.files.contains(&decision) {
                plan.files.push(decision);
            }
        }
    }
    plan
}

/// Whether the folder contains the file at the path `source`, which is `file` on the host.
fn contains(
    folder: &StoreFolder,
    source: &StorePath,
    file: &MountCandidate,
    exists: &dyn Fn(&str) -> bool,
) -> bool {
    folder.files.contains(source.as_str()).unwrap_or_else(|| exists(&file.host_path))
}

/// The reason why no file of a device is mounted; `None` if files may be mounted.
fn no_mounts(
    device: &Device,
    policy: &ContainerPolicy,
    host: &HostFacts,
) -> Option<NoMountsReason> {
    let mounted_by_windows = host.build.is_some_and(|b| b.build >= FIRST_BUILD_WITHOUT_MOUNTS);
    match (policy.runtime_mounts, &device.driver_store) {
        (RuntimeMounts::Never, _) => Some(NoMountsReason::Never),
        (RuntimeMounts::Auto, _) if mounted_by_windows => Some(NoMountsReason::MountedByWindows),
        (_, Err(NoStoreFolder::Unknown)) => Some(NoMountsReason::NoDriverStore),
        (_, Err(NoStoreFolder::Rejected(_))) => Some(NoMountsReason::DriverStoreOutside),
        (_, Ok(_)) => host.inside_container.then_some(NoMountsReason::InsideContainer),
    }
}

/// The files of a device, each with the folder of its destination and its origin, in the order in
/// which they take destinations.
fn files<'a>(
    device: &'a Device,
    policy: &'a ContainerPolicy,
    wow64: Wow64,
) -> Vec<(&'static str, MountOrigin, &'a RuntimeFile)> {
    let with_driver = policy.runtime_mounts != RuntimeMounts::Extra;
    let files = &device.runtime_files;
    let mut folders =
        vec![(SYSTEM32, with_driver, &files.system32, &policy.additional, &NVIDIA_SYSTEM32)];
    if wow64 == Wow64::Present {
        folders.push((
            SYSWOW64,
            with_driver && !policy.omit_wow64,
            &files.wow64,
            &policy.additional_wow64,
            &NVIDIA_WOW64,
        ));
    }
    let mut list = Vec::new();
    for (folder, with_driver, of_driver, additional, defaults) in folders {
        if with_driver {
            list.extend(of_driver.iter().map(|file| (folder, MountOrigin::Registry, file)));
        }
        let additional = additional.get(&device.vendor).into_iter().flatten();
        list.extend(additional.map(|file| (folder, MountOrigin::Configuration, file)));
        if with_driver && device.vendor == Vendor::Nvidia {
            list.extend(defaults.iter().map(|file| (folder, MountOrigin::Default, file)));
        }
    }
    list
}

fn files_of(list: &[(&str, &str)]) -> Vec<RuntimeFile> {
    list.iter()
        .filter_map(|(source, destination)| {
            let source = source.parse().ok()?;
            let destination = destination.parse().ok()?;
            Some(RuntimeFile { source, destination })
        })
        .collect()
}

/// The files of a container and the decision about each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MountPlan {
    /// Every file that was considered, in order.
    pub files: Vec<FileDecision>,
    /// Devices of which no file is mounted, and why.
    pub devices_without_mounts: Vec<(Luid, NoMountsReason)>,
}

impl MountPlan {
    /// The files to mount, in order.
    pub fn mounted(&self) -> impl Iterator<Item = &MountCandidate> {
        self.files.iter().filter(|f| f.outcome == MountOutcome::Mounted).map(|f| &f.file)
    }

    /// The files to mount, in order, without a copy of their paths.
    pub fn into_mounted(self) -> impl Iterator<Item = MountCandidate> {
        self.files.into_iter().filter(|f| f.outcome == MountOutcome::Mounted).map(|f| f.file)
    }
}
