//! Which runtime files a container gets, and why it does not get the others.
//!
//! A [`MountTable`] is built once per device: the driver's files (from the registry),
//! then the additional mounts of the configuration, then the defaults. An allocation
//! only checks whether each file exists and whether its destination is still free.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::case_folding::fold_case;
use crate::{
    AdditionalMount, AdditionalMounts, ContainerPolicy, Destination, Device, FileName, HostFacts,
    Luid, ModelPolicy, NoStoreFolder, RuntimeFile, RuntimeFiles, RuntimeMounts, StoreFolder,
    StorePath, Vendor, Wow64,
};

/// The first build on which Windows itself mounts the driver's files into containers:
/// Windows Server 2025.
pub const FIRST_BUILD_WITHOUT_MOUNTS: u32 = 26_100;

/// Files of NVIDIA drivers that are in the driver store but not named in the registry.
const NVIDIA_SYSTEM32: [(&str, &str); 2] =
    [("nvidia-smi.exe", "nvidia-smi.exe"), ("vulkaninfo-x64.exe", "vulkaninfo.exe")];
const NVIDIA_WOW64: [(&str, &str); 1] = [("vulkaninfo-x86.exe", "vulkaninfo.exe")];

pub(crate) const SYSTEM32: &str = r"C:\Windows\System32";
pub(crate) const SYSWOW64: &str = r"C:\Windows\SysWOW64";

/// Where a mount candidate comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MountOrigin {
    /// The driver, in the registry.
    Registry,
    /// The configuration's additional mounts.
    Configuration,
    /// The defaults for the vendor.
    Default,
    /// `visibility: launcher`.
    Launcher,
}

impl fmt::Display for MountOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MountOrigin::Registry => "the driver",
            MountOrigin::Configuration => "the configuration",
            MountOrigin::Default => "the defaults",
            MountOrigin::Launcher => "visibility: launcher",
        })
    }
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
    /// The case-folded destination; only one file can be mounted there.
    destination_key: String,
    presence: Presence,
}

impl MountCandidate {
    /// A file that was found.
    pub(crate) fn existing(origin: MountOrigin, host_path: String, to: &str, name: &str) -> Self {
        let destination_key = format!("{to}\\{}", fold_case(name));
        MountCandidate {
            host_path,
            container_path: format!("{to}\\{name}"),
            origin,
            destination_key,
            presence: Presence::Recorded,
        }
    }

    /// A folder that the container has at the same path.
    pub(crate) fn folder(path: &str) -> Self {
        MountCandidate {
            host_path: path.to_owned(),
            container_path: path.to_owned(),
            origin: MountOrigin::Default,
            destination_key: path.to_owned(),
            presence: Presence::Recorded,
        }
    }

    pub(crate) fn has_destination_of(&self, other: &MountCandidate) -> bool {
        self.destination_key == other.destination_key
    }
}

/// What is known about a file before the disk is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    /// The inventory has it.
    Recorded,
    /// The inventory lists its folder without it.
    Missing,
    /// A live host; the disk must be checked.
    OnDisk,
    /// `excludeMounts` names its destination.
    Excluded,
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
        by: Arc<MountCandidate>,
    },
    /// An additional mount of the configuration is dropped with the driver's files.
    NotApplied(NoMountsReason),
}

/// A file and what the plan decided about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileDecision {
    /// The file.
    pub file: Arc<MountCandidate>,
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

impl NoMountsReason {
    /// How to get additional mounts applied that were dropped for this reason.
    #[must_use]
    pub const fn additional_mounts_hint(self) -> Option<&'static str> {
        match self {
            NoMountsReason::MountedByWindows => {
                Some("set `runtimeMounts: extra` to mount only the additional mounts")
            }
            NoMountsReason::Never
            | NoMountsReason::ExtraOnLinux
            | NoMountsReason::NoDriverStore
            | NoMountsReason::DriverStoreOutside
            | NoMountsReason::InsideContainer => None,
        }
    }
}

/// A device's files in the order in which they take destinations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MountTable {
    system32: Vec<Arc<MountCandidate>>,
    wow64: Vec<Arc<MountCandidate>>,
    unavailable: Option<NoMountsReason>,
}

impl MountTable {
    /// The files of `device` under `policy`.
    pub(crate) fn of(device: &Device, policy: &ModelPolicy) -> MountTable {
        let empty =
            |reason| MountTable { system32: vec![], wow64: vec![], unavailable: Some(reason) };
        let store = match &device.driver_store {
            Ok(store) => store,
            Err(NoStoreFolder::Unknown) => return empty(NoMountsReason::NoDriverStore),
            Err(NoStoreFolder::Rejected(_)) => return empty(NoMountsReason::DriverStoreOutside),
        };
        let container = &policy.container;
        let only_additional = container.runtime_mounts == RuntimeMounts::Extra;
        let lister = Lister { store, excluded: &container.exclude_mounts };
        let driver = |files: &[RuntimeFile]| {
            if only_additional { Vec::new() } else { files.to_vec() }
        };
        let for_wow64 = |files: Vec<RuntimeFile>| if container.omit_wow64 { vec![] } else { files };
        let additional = |mounts: &AdditionalMounts| {
            mounts
                .get(&device.vendor)
                .map(|list| list.iter().map(as_file).collect())
                .unwrap_or_default()
        };
        let with_defaults = device.vendor == Vendor::Nvidia && !only_additional;
        let defaults = |list: &[(&str, &str)]| {
            let list = if with_defaults { list } else { &[] };
            list.iter().filter_map(default_file).collect()
        };
        let RuntimeFiles { system32, wow64, .. } = &*device.runtime_files;
        MountTable {
            system32: lister.list(
                SYSTEM32,
                [driver(system32), additional(&container.additional), defaults(&NVIDIA_SYSTEM32)],
            ),
            wow64: lister.list(
                SYSWOW64,
                [
                    for_wow64(driver(wow64)),
                    additional(&container.additional_wow64),
                    for_wow64(defaults(&NVIDIA_WOW64)),
                ],
            ),
            unavailable: None,
        }
    }

    /// This table, unless `policy` mounts none of its files on `host`.
    fn applicable(
        &self,
        policy: &ContainerPolicy,
        host: &HostFacts,
    ) -> Result<&MountTable, NoMountsReason> {
        let mounted_by_windows = host.build.is_some_and(|b| b.build >= FIRST_BUILD_WITHOUT_MOUNTS);
        let inside = host.inside_container;
        let inside = inside.then_some(NoMountsReason::InsideContainer);
        match (policy.runtime_mounts, self.unavailable.or(inside)) {
            (RuntimeMounts::Never, _) => Err(NoMountsReason::Never),
            (RuntimeMounts::Auto, _) if mounted_by_windows => Err(NoMountsReason::MountedByWindows),
            (_, Some(reason)) => Err(reason),
            (_, None) => Ok(self),
        }
    }

    fn candidates(&self, wow64: Wow64) -> impl Iterator<Item = &Arc<MountCandidate>> {
        let wow64 = if wow64 == Wow64::Present { self.wow64.as_slice() } else { &[] };
        self.system32.iter().chain(wow64)
    }
}

fn as_file(mount: &AdditionalMount) -> RuntimeFile {
    RuntimeFile { source: mount.source.clone(), destination: mount.destination.clone() }
}

fn default_file((source, destination): &(&str, &str)) -> Option<RuntimeFile> {
    Some(RuntimeFile {
        source: source.parse::<StorePath>().ok()?,
        destination: destination.parse::<Destination>().ok()?,
    })
}

/// Turns one device's files into mount candidates.
struct Lister<'a> {
    store: &'a StoreFolder,
    excluded: &'a [FileName],
}

impl Lister<'_> {
    /// The candidates for `folder`: from the registry, the configuration, the defaults.
    fn list(&self, folder: &str, files: [Vec<RuntimeFile>; 3]) -> Vec<Arc<MountCandidate>> {
        let origins = [MountOrigin::Registry, MountOrigin::Configuration, MountOrigin::Default];
        let pairs = origins.into_iter().zip(files);
        pairs
            .flat_map(|(origin, files)| files.into_iter().map(move |file| (origin, file)))
            .map(|(origin, file)| Arc::new(self.candidate(folder, origin, &file)))
            .collect()
    }

    fn candidate(&self, folder: &str, origin: MountOrigin, file: &RuntimeFile) -> MountCandidate {
        let RuntimeFile { source, destination } = file;
        let destination_name = destination.folded();
        let presence = if self.excluded.iter().any(|name| name.folded() == destination_name) {
            Presence::Excluded
        } else {
            match self.store.files.contains(source.as_str()) {
                Some(true) => Presence::Recorded,
                Some(false) => Presence::Missing,
                None => Presence::OnDisk,
            }
        };
        let destination_key = format!("{folder}\\{destination_name}");
        MountCandidate {
            host_path: format!("{}\\{source}", self.store.path.trim_end_matches('\\')),
            container_path: format!("{folder}\\{destination}"),
            origin,
            destination_key,
            presence,
        }
    }
}

/// The mounts of one device of an allocation.
#[derive(Clone, Copy)]
pub(crate) struct DeviceMounts<'a> {
    pub(crate) luid: Luid,
    pub(crate) table: &'a MountTable,
    pub(crate) policy: &'a ContainerPolicy,
}

/// Decides about the files of `devices`, in their order. `exists` answers
/// for files of a live host.
pub(crate) fn resolve<'a>(
    devices: impl IntoIterator<Item = DeviceMounts<'a>>,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> MountPlan {
    let mut plan = MountPlan::default();
    let mut taken: HashMap<&'a str, &'a Arc<MountCandidate>> = HashMap::new();
    for device in devices {
        let table = match device.table.applicable(device.policy, host) {
            Ok(table) => table,
            Err(reason) => {
                plan.devices_without_mounts.push((device.luid, reason));
                plan.drop_additional(device.table, host.wow64, reason);
                continue;
            }
        };
        for file in table.candidates(host.wow64) {
            let holder = taken.get(&*file.destination_key);
            let outcome = match (file.presence, holder) {
                (Presence::Excluded, _) => MountOutcome::Excluded,
                // Two devices with the same driver name the same file: not a collision.
                (_, Some(by)) if by.host_path == file.host_path => continue,
                (Presence::Missing, _) => MountOutcome::Missing,
                (Presence::OnDisk, _) if !exists(&file.host_path) => MountOutcome::Missing,
                (_, Some(holder)) => MountOutcome::DestinationTaken { by: Arc::clone(holder) },
                (Presence::Recorded | Presence::OnDisk, None) => {
                    taken.insert(&file.destination_key, file);
                    MountOutcome::Mounted
                }
            };
            plan.files.push(FileDecision { file: file.clone(), outcome });
        }
    }
    plan
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
    /// Records the additional mounts of a device that Windows itself serves. The other
    /// reasons are the administrator's own choice, or make every mount impossible.
    fn drop_additional(&mut self, table: &MountTable, wow64: Wow64, reason: NoMountsReason) {
        if reason != NoMountsReason::MountedByWindows {
            return;
        }
        for file in table.candidates(wow64) {
            let applies = file.origin == MountOrigin::Configuration
                && file.presence != Presence::Excluded
                && !self.files.iter().any(|known| known.file == *file);
            if applies {
                let outcome = MountOutcome::NotApplied(reason);
                self.files.push(FileDecision { file: file.clone(), outcome });
            }
        }
    }

    /// The files to mount, in order.
    pub fn mounted(&self) -> impl Iterator<Item = &MountCandidate> {
        self.files.iter().filter(|f| f.outcome == MountOutcome::Mounted).map(|f| &*f.file)
    }
}
