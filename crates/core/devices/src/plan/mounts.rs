//! Which runtime files a container gets, and why it does not get the others.
//!
//! For each device: the driver's files (from the registry), then the additional mounts of the
//! configuration, then the defaults.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use host::fold_case;
use host::{HostFacts, Luid, StorePattern, Vendor, Wow64};

use crate::plan::source_patterns::{Disk, NoSingleMatch, only_match};
use crate::{
    AdditionalMount, ContainerPolicy, Destination, DriverModel, ListedDevice, NoStoreFolder,
    RuntimeFile, RuntimeMounts, StoreFolder,
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
    /// `visibility: launcher` or `required`.
    #[strum(to_string = "visibility")]
    Launcher,
}

/// A file that may be mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountCandidate {
    pub host_path: String,
    pub container_path: String,
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
    /// The pattern of an additional mount matches no file, or several.
    NotOneMatch(NoSingleMatch),
    /// `excludeMounts` names its destination.
    Excluded,
    /// It is a file for 32-bit programs, and `runtimeFilesWow64` is false.
    Wow64Omitted,
    /// It is a file for 32-bit programs, and the host does not run such programs.
    NoWow64,
    /// Another file is mounted at the same destination.
    DestinationTaken {
        /// The file that is mounted there.
        by: MountCandidate,
    },
    /// An additional mount of the configuration, or a default that exists, is dropped with the
    /// driver's files, which Windows mounts itself.
    NotApplied,
}

/// A file and what the plan decided about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileDecision {
    pub file: MountCandidate,
    pub outcome: MountOutcome,
}

/// How many files are not mounted, by the decision about each. Defaults are optional, so that they
/// count only if they are excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeftOut {
    /// [`MountOutcome::Excluded`].
    pub excluded: usize,
    /// [`MountOutcome::Missing`].
    pub missing: usize,
    /// [`MountOutcome::NotOneMatch`].
    pub not_one_match: usize,
    /// [`MountOutcome::Wow64Omitted`].
    pub wow64_omitted: usize,
    /// [`MountOutcome::NoWow64`].
    pub no_wow64: usize,
    /// [`MountOutcome::DestinationTaken`].
    pub destination_taken: usize,
}

impl LeftOut {
    /// Counts the decisions.
    #[must_use]
    pub fn of(files: &[FileDecision]) -> LeftOut {
        let mut counts = LeftOut::default();
        for FileDecision { file, outcome } in files {
            if file.origin == MountOrigin::Default && *outcome != MountOutcome::Excluded {
                continue;
            }
            match outcome {
                MountOutcome::Mounted | MountOutcome::NotApplied => {}
                MountOutcome::Excluded => counts.excluded += 1,
                MountOutcome::Missing => counts.missing += 1,
                MountOutcome::NotOneMatch(_) => counts.not_one_match += 1,
                MountOutcome::Wow64Omitted => counts.wow64_omitted += 1,
                MountOutcome::NoWow64 => counts.no_wow64 += 1,
                MountOutcome::DestinationTaken { .. } => counts.destination_taken += 1,
            }
        }
        counts
    }
}

/// Prints the counts that are not 0: `14 in excludeMounts, 1 missing`.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.excluded, "in excludeMounts"),
            (self.missing, "missing"),
            (self.not_one_match, "with a pattern that does not match one file"),
            (self.wow64_omitted, "for 32-bit programs (runtimeFilesWow64 is false)"),
            (self.no_wow64, "for 32-bit programs, which the host does not run"),
            (self.destination_taken, "at the destination of another file"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let texts: Vec<String> = counts.map(|(count, why)| format!("{count} {why}")).collect();
        f.write_str(&texts.join(", "))
    }
}

/// Why none of a device's files are mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoMountsReason {
    /// The driver model `legacy`.
    #[error("the driver model legacy mounts no runtime files")]
    Legacy,
    /// `runtimeMounts: never`.
    #[error("runtimeMounts is never")]
    Never,
    /// `runtimeMounts: extra` without additional mounts for the vendor, and without defaults.
    #[error(
        "runtimeMounts is extra, and neither an additional mount nor a default of the plugin \
         applies to {0}"
    )]
    NoAdditionalMounts(Vendor),
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
    /// The driver names no file, and no additional mounts are configured for its vendor.
    #[error("the driver names no usable file")]
    NoneNamed,
    /// Files are named, and every one of them is left out.
    #[error("every file is left out: {0}")]
    LeftOut(LeftOut),
}

/// How to get files that are [not applied](MountOutcome::NotApplied).
pub const NOT_APPLIED_HINT: &str =
    "set `runtimeMounts: extra` to mount additional files without those of the driver";

/// Decides about the files of `devices`, in their order.
pub(crate) fn resolve(devices: &[&ListedDevice], host: &HostFacts, disk: Disk<'_>) -> MountPlan {
    let mut plan = MountPlan::default();
    let mut taken = Destinations::new();
    for entry in devices {
        let reason = match folder_to_mount(entry, host) {
            Ok(folder) => add_files(&mut plan, &mut taken, entry, folder, host, disk),
            Err(NoMountsReason::MountedByWindows) => {
                plan.add(not_applied(entry, host, disk));
                Some(NoMountsReason::MountedByWindows)
            }
            // The other reasons are the administrator's own choice, or make every mount impossible.
            Err(reason) => Some(reason),
        };
        plan.devices_without_mounts.extend(reason.map(|reason| (entry.device.luid, reason)));
    }
    plan
}

/// The files that are mounted, by their destinations with the case folded.
type Destinations = HashMap<String, MountCandidate>;

/// The folder whose files may be mounted, or why none of a device is.
fn folder_to_mount<'a>(
    entry: &'a ListedDevice,
    host: &HostFacts,
) -> Result<&'a StoreFolder, NoMountsReason> {
    if entry.policy.model == DriverModel::Legacy {
        return Err(NoMountsReason::Legacy);
    }
    let mounted_by_windows = host.build.is_some_and(|b| b.build >= FIRST_BUILD_WITHOUT_MOUNTS);
    match (entry.policy.container.runtime_mounts, &entry.device.driver_store) {
        (RuntimeMounts::Never, _) => Err(NoMountsReason::Never),
        (RuntimeMounts::Auto, _) if mounted_by_windows => Err(NoMountsReason::MountedByWindows),
        (_, Err(NoStoreFolder::Unknown)) => Err(NoMountsReason::NoDriverStore),
        (_, Err(NoStoreFolder::Rejected(_))) => Err(NoMountsReason::DriverStoreOutside),
        (_, Ok(_)) if host.inside_container => Err(NoMountsReason::InsideContainer),
        (_, Ok(folder)) => Ok(folder),
    }
}

/// The files of a device that are dropped although Windows does not mount them: the additional
/// mounts, and the defaults that exist.
fn not_applied(entry: &ListedDevice, host: &HostFacts, disk: Disk<'_>) -> Vec<FileDecision> {
    let Ok(folder) = &entry.device.driver_store else { return Vec::new() };
    let mut decisions = Vec::new();
    for candidate in candidates(entry, host) {
        let file = candidate.mount(folder, candidate.source);
        let is_dropped = match candidate.origin {
            MountOrigin::Configuration => true,
            MountOrigin::Default => contains(folder, candidate.source, &file, disk),
            MountOrigin::Registry | MountOrigin::Launcher => false,
        };
        if is_dropped && candidate.left_out.is_none() {
            decisions.push(FileDecision { file, outcome: MountOutcome::NotApplied });
        }
    }
    decisions
}

/// Adds the decision about each file of a device in `folder`. Returns the reason if none of them is
/// mounted.
fn add_files(
    plan: &mut MountPlan,
    taken: &mut Destinations,
    entry: &ListedDevice,
    folder: &StoreFolder,
    host: &HostFacts,
    disk: Disk<'_>,
) -> Option<NoMountsReason> {
    let mut is_any_mounted = false;
    let mut decisions = Vec::new();
    for candidate in candidates(entry, host) {
        let (source, left_out) = candidate.find(entry, folder, disk);
        let file = candidate.mount(folder, &source);
        let by = taken.get(&file.destination());
        let outcome = match (left_out, by) {
            (Some(left_out), _) => left_out,
            // Two devices with the same driver name the same file. That is not a collision.
            (None, Some(by)) if by.host_path == file.host_path => {
                is_any_mounted = true;
                continue;
            }
            (None, _) if !contains(folder, &source, &file, disk) => MountOutcome::Missing,
            (None, Some(by)) => MountOutcome::DestinationTaken { by: by.clone() },
            (None, None) => {
                taken.insert(file.destination(), file.clone());
                is_any_mounted = true;
                MountOutcome::Mounted
            }
        };
        decisions.push(FileDecision { file, outcome });
    }
    let reason = (!is_any_mounted).then(|| none_mounted(entry, &decisions));
    plan.add(decisions);
    reason
}

/// Why none of the files in `decisions` is mounted. The defaults do not count: they are optional.
fn none_mounted(entry: &ListedDevice, decisions: &[FileDecision]) -> NoMountsReason {
    if decisions.iter().any(|decision| decision.file.origin != MountOrigin::Default) {
        return NoMountsReason::LeftOut(LeftOut::of(decisions));
    }
    match entry.policy.container.runtime_mounts {
        RuntimeMounts::Extra => NoMountsReason::NoAdditionalMounts(entry.device.vendor),
        RuntimeMounts::Auto | RuntimeMounts::Always | RuntimeMounts::Never => {
            NoMountsReason::NoneNamed
        }
    }
}

/// Whether the folder contains `source`, which is `file` on the host.
fn contains(folder: &StoreFolder, source: &str, file: &MountCandidate, disk: Disk<'_>) -> bool {
    folder.files.contains(source).unwrap_or_else(|| (disk.exists)(&file.host_path))
}

/// A file that the driver, the configuration or the defaults name for a device.
struct Candidate<'a> {
    /// The folder of its destination.
    folder: &'static str,
    origin: MountOrigin,
    /// Its path below the driver store folder.
    source: &'a str,
    /// The path, if it is a pattern.
    pattern: Option<&'a StorePattern>,
    destination: &'a Destination,
    /// Why it is not mounted even if it exists.
    left_out: Option<MountOutcome>,
}

impl<'a> Candidate<'a> {
    /// The file's path below the driver store folder, and why it is not mounted even if it exists.
    fn find(
        &self,
        entry: &ListedDevice,
        folder: &StoreFolder,
        disk: Disk<'_>,
    ) -> (Cow<'a, str>, Option<MountOutcome>) {
        match (&self.left_out, self.pattern) {
            (None, Some(pattern)) => match only_match(pattern, folder, &entry.device, disk) {
                Ok(path) => (path.as_str().to_owned().into(), None),
                Err(files) => (self.source.into(), Some(MountOutcome::NotOneMatch(files))),
            },
            (left_out, _) => (self.source.into(), left_out.clone()),
        }
    }

    fn mount(&self, store: &StoreFolder, source: &str) -> MountCandidate {
        MountCandidate {
            host_path: format!("{}\\{source}", store.path.trim_end_matches('\\')),
            container_path: format!("{}\\{}", self.folder, self.destination),
            origin: self.origin,
        }
    }
}

/// The files of a device in the order in which they take destinations.
fn candidates<'a>(entry: &'a ListedDevice, host: &HostFacts) -> Vec<Candidate<'a>> {
    let device = &*entry.device;
    let policy = &*entry.policy.container;
    let with_driver = policy.runtime_mounts != RuntimeMounts::Extra;
    let files = &device.runtime_files;
    let folders = [
        (SYSTEM32, &files.system32, &policy.additional, &NVIDIA_SYSTEM32),
        (SYSWOW64, &files.wow64, &policy.additional_wow64, &NVIDIA_WOW64),
    ];
    let mut list = Vec::new();
    for (folder, of_driver, additional, defaults) in folders {
        let mut add = |origin, source, pattern, destination| {
            let left_out = left_out(folder, origin, destination, policy, host);
            list.push(Candidate { folder, origin, source, pattern, destination, left_out });
        };
        if with_driver {
            for RuntimeFile { source, destination } in of_driver {
                add(MountOrigin::Registry, source.as_str(), None, destination);
            }
        }
        for AdditionalMount { source, destination } in
            additional.get(&device.vendor).into_iter().flatten()
        {
            let pattern = Some(source).filter(|source| source.has_wildcard());
            add(MountOrigin::Configuration, source.as_str(), pattern, destination);
        }
        if device.vendor == Vendor::Nvidia {
            for RuntimeFile { source, destination } in defaults.iter() {
                add(MountOrigin::Default, source.as_str(), None, destination);
            }
        }
    }
    list
}

/// Why a file is not mounted even if it exists. `runtimeFilesWow64` is not about the files that the
/// user names.
fn left_out(
    folder: &str,
    origin: MountOrigin,
    destination: &Destination,
    policy: &ContainerPolicy,
    host: &HostFacts,
) -> Option<MountOutcome> {
    let is_wow64 = folder == SYSWOW64;
    if is_wow64 && host.wow64 == Wow64::Absent {
        return Some(MountOutcome::NoWow64);
    }
    if is_wow64 && policy.omit_wow64 && origin != MountOrigin::Configuration {
        return Some(MountOutcome::Wow64Omitted);
    }
    let name = destination.folded();
    let is_excluded = policy.exclude_mounts.iter().any(|excluded| excluded.folded() == name);
    is_excluded.then_some(MountOutcome::Excluded)
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
    /// Devices without mounted files, and why.
    pub devices_without_mounts: Vec<(Luid, NoMountsReason)>,
}

impl MountPlan {
    /// Adds the files of a device. A decision that another device with the same driver has as well
    /// is in the plan once.
    fn add(&mut self, decisions: Vec<FileDecision>) {
        for decision in decisions {
            if decision.outcome == MountOutcome::Mounted || !self.files.contains(&decision) {
                self.files.push(decision);
            }
        }
    }

    /// The files to mount, in order.
    pub fn mounted(&self) -> impl Iterator<Item = &MountCandidate> {
        self.files.iter().filter(|f| f.outcome == MountOutcome::Mounted).map(|f| &f.file)
    }

    /// The files to mount, in order, without a copy of their paths.
    pub fn into_mounted(self) -> impl Iterator<Item = MountCandidate> {
        self.files.into_iter().filter(|f| f.outcome == MountOutcome::Mounted).map(|f| f.file)
    }
}
