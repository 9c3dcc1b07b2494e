//! Which files a container is given, and what became of those it is not.
//!
//! A [`MountTable`] is made once for each device: the registry's files, then the
//! user's, then the defaults. At allocation only two questions are left: does the
//! file exist now, and has an earlier one claimed its destination.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::{
    AdditionalMount, AdditionalMounts, ContainerPolicy, Device, Entry, FileName, HostFacts, Luid,
    ModelPolicy, RuntimeFile, RuntimeMounts, StoreFolder, StorePath, Vendor, Visibility, Wow64,
};

/// The first build on which Windows itself gives containers the runtime files:
/// Windows Server 2025.
pub const FIRST_BUILD_WITHOUT_MOUNTS: u32 = 26_100;

/// Files of NVIDIA drivers that the driver store has and the registry does not name.
const NVIDIA_SYSTEM32: [(&str, &str); 2] =
    [("nvidia-smi.exe", "nvidia-smi.exe"), ("vulkaninfo-x64.exe", "vulkaninfo.exe")];
const NVIDIA_WOW64: [(&str, &str); 1] = [("vulkaninfo-x86.exe", "vulkaninfo.exe")];

const SYSTEM32: &str = r"C:\Windows\System32";
const SYSWOW64: &str = r"C:\Windows\SysWOW64";

/// Who asked for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MountOrigin {
    /// The driver, in the registry.
    Registry,
    /// The configuration's additional mounts.
    Configuration,
    /// The defaults for the vendor.
    Default,
}

impl fmt::Display for MountOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MountOrigin::Registry => "the driver",
            MountOrigin::Configuration => "the configuration",
            MountOrigin::Default => "the defaults",
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
    /// Who asked for it.
    pub origin: MountOrigin,
    /// The destination without case; two files with one cannot both be mounted.
    claim: String,
    /// A hash of the claim, so that comparing claims costs little at each allocation.
    claim_hash: u64,
    presence: Presence,
}

impl MountCandidate {
    fn rivals(&self, other: &MountCandidate) -> bool {
        self.claim_hash == other.claim_hash && self.claim == other.claim
    }
}

/// What is known of a file before anything is asked of the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    /// It is recorded.
    There,
    /// A recording lists its folder without it.
    Missing,
    /// The disk says, when asked.
    OnDisk,
    /// The configuration does not want it.
    Excluded,
}

/// What became of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is mounted.
    Mounted,
    /// It does not exist.
    Missing,
    /// `excludeMounts` names its destination.
    Excluded,
    /// Another file has the destination: `by`, on the host.
    Shadowed {
        /// The file that has it.
        by: Arc<MountCandidate>,
    },
}

/// A file and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileFate {
    /// The file.
    pub file: Arc<MountCandidate>,
    /// What became of it.
    pub fate: Fate,
}

/// Why a device's files are not mounted at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoMounts {
    /// `runtimeMounts: never`.
    #[error("runtimeMounts is never")]
    Never,
    /// `runtimeMounts: auto` on a build that gives containers the files itself.
    #[error(
        "runtimeMounts is auto, and from build {FIRST_BUILD_WITHOUT_MOUNTS} on Windows does it"
    )]
    NotOnThisBuild,
    /// The driver store folder is not known.
    #[error("the driver store folder of the device is not known")]
    NoDriverStore,
    /// Discovery runs inside a container.
    #[error("inside a container the driver's files cannot be enumerated")]
    InsideContainer,
}

/// A device's files in the order in which they claim destinations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MountTable {
    system32: Vec<Arc<MountCandidate>>,
    wow64: Vec<Arc<MountCandidate>>,
    unavailable: Option<NoMounts>,
}

impl MountTable {
    /// The files of `device` under `policy`.
    pub(crate) fn of(device: &Device, policy: &ModelPolicy) -> MountTable {
        let empty = |why| MountTable { system32: vec![], wow64: vec![], unavailable: Some(why) };
        let Some(store) = &device.driver_store else {
            return empty(NoMounts::NoDriverStore);
        };
        if device.runtime_files.visibility == Visibility::InsideContainer {
            return empty(NoMounts::InsideContainer);
        }
        let files = &device.runtime_files;
        let container = &policy.container;
        let lister = Lister { store, excluded: &container.exclude_mounts };
        let user = |mounts: &AdditionalMounts| {
            mounts
                .get(&device.vendor)
                .map(|list| list.iter().map(as_file).collect())
                .unwrap_or_default()
        };
        let nvidia = device.vendor == Vendor::Nvidia;
        let extras = |list: &[(&str, &str)]| {
            let list = if nvidia { list } else { &[] };
            list.iter().filter_map(extra).collect()
        };
        MountTable {
            system32: lister.list(
                SYSTEM32,
                [files.system32.clone(), user(&container.additional), extras(&NVIDIA_SYSTEM32)],
            ),
            wow64: lister.list(
                SYSWOW64,
                [files.wow64.clone(), user(&container.additional_wow64), extras(&NVIDIA_WOW64)],
            ),
            unavailable: None,
        }
    }

    /// The files that `policy` lets a container on `host` have.
    fn open(&self, policy: &ContainerPolicy, host: &HostFacts) -> Result<&MountTable, NoMounts> {
        let modern = host.build.is_some_and(|b| b.build >= FIRST_BUILD_WITHOUT_MOUNTS);
        match (policy.runtime_mounts, self.unavailable) {
            (RuntimeMounts::Never, _) => Err(NoMounts::Never),
            (RuntimeMounts::Auto, _) if modern => Err(NoMounts::NotOnThisBuild),
            (_, Some(why)) => Err(why),
            (_, None) => Ok(self),
        }
    }

    fn candidates(&self, wow64: Wow64) -> impl Iterator<Item = &Arc<MountCandidate>> {
        let wow64 = if wow64 == Wow64::Present { self.wow64.as_slice() } else { &[] };
        self.system32.iter().chain(wow64)
    }
}

fn hash(claim: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    claim.hash(&mut hasher);
    hasher.finish()
}

fn as_file(mount: &AdditionalMount) -> RuntimeFile {
    RuntimeFile { source: mount.source.clone(), destination: mount.destination.clone() }
}

fn extra((source, destination): &(&str, &str)) -> Option<RuntimeFile> {
    Some(RuntimeFile {
        source: StorePath::parse(source).ok()?,
        destination: FileName::parse(destination).ok()?,
    })
}

/// Makes candidates of one device's files.
struct Lister<'a> {
    store: &'a StoreFolder,
    excluded: &'a [FileName],
}

impl Lister<'_> {
    /// The candidates for `folder`: the registry's, the configuration's, the defaults.
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
        let claimed = destination.folded();
        let presence = if self.excluded.iter().any(|name| name.folded() == claimed) {
            Presence::Excluded
        } else {
            match self.store.files.holds(source.as_str()) {
                Some(true) => Presence::There,
                Some(false) => Presence::Missing,
                None => Presence::OnDisk,
            }
        };
        let claim = format!("{folder}\\{claimed}");
        MountCandidate {
            host_path: format!("{}\\{source}", self.store.path.trim_end_matches('\\')),
            container_path: format!("{folder}\\{destination}"),
            origin,
            claim_hash: hash(&claim),
            claim,
            presence,
        }
    }
}

/// What becomes of the files of `entries`, in the order of the entries. `exists`
/// answers for files of a live host.
pub(crate) fn resolve<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    host: &HostFacts,
    exists: &dyn Fn(&str) -> bool,
) -> MountPlan {
    let mut plan = MountPlan::default();
    let mut claims: Vec<&'a Arc<MountCandidate>> = Vec::new();
    for entry in entries {
        let table = match entry.mounts.open(&entry.policy.container, host) {
            Ok(table) => table,
            Err(why) => {
                plan.without.push((entry.device.luid, why));
                continue;
            }
        };
        let most = table.system32.len() + table.wow64.len();
        plan.files.reserve(most);
        claims.reserve(most);
        for file in table.candidates(host.wow64) {
            let holder = claims.iter().find(|holder| holder.rivals(file));
            let fate = match (file.presence, holder) {
                (Presence::Excluded, _) => Fate::Excluded,
                // Two devices of one driver bring the same file: that is no collision.
                (_, Some(by)) if by.host_path == file.host_path => continue,
                (Presence::Missing, _) => Fate::Missing,
                (Presence::OnDisk, _) if !exists(&file.host_path) => Fate::Missing,
                (_, Some(holder)) => Fate::Shadowed { by: Arc::clone(holder) },
                (Presence::There | Presence::OnDisk, None) => {
                    claims.push(file);
                    Fate::Mounted
                }
            };
            plan.files.push(FileFate { file: file.clone(), fate });
        }
    }
    plan
}

/// The files of a container and what became of each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MountPlan {
    /// Every file that was considered, in order.
    pub files: Vec<FileFate>,
    /// Devices whose files are not mounted at all, and why.
    pub without: Vec<(Luid, NoMounts)>,
}

impl MountPlan {
    /// The files to mount, in order.
    pub fn mounted(&self) -> impl Iterator<Item = &MountCandidate> {
        self.files.iter().filter(|f| f.fate == Fate::Mounted).map(|f| &*f.file)
    }
}
