//! The simulated host: the current content of the inventory file, and the modes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use host::{Adapter, Attribute, HostFacts, HostSnapshot, Luid};
use windows::core::GUID;

use crate::attributes::{self, Release};
use crate::modes::{Modes, NewerAttributes};

/// The only host of this process, or the reason why it cannot be read.
pub(crate) fn host() -> Result<&'static Host, &'static str> {
    static HOST: LazyLock<Result<Host, String>> = LazyLock::new(Host::from_environment);
    HOST.as_ref().map_err(String::as_str)
}

pub(crate) struct Host {
    path: PathBuf,
    modes: Modes,
    history: Mutex<History>,
}

/// Every revision of the inventory that was read so far.
#[derive(Default)]
struct History {
    stamp: Option<FileStamp>,
    /// The adapters of each revision; the last one is the current host.
    revisions: Vec<Vec<Arc<Adapter>>>,
    /// The host facts of the last revision.
    facts: HostFacts,
}

/// A revision of the inventory. Each object remembers the revision it was created in,
/// because a change that invalidates it may be undone by the time the object is queried.
#[derive(Clone, Copy)]
pub(crate) struct Revision(usize);

/// Modification time and size, which detect a change of the file without reading it.
type FileStamp = (SystemTime, u64);

/// The adapters that a caller requests a list of.
pub(crate) enum Filter {
    /// Adapters that have all of these attributes.
    Attributes(Vec<Attribute>),
    /// No adapter, because this host does not know one of the requested attributes.
    Nothing,
}

impl History {
    fn add(&mut self, snapshot: HostSnapshot) {
        self.revisions.push(snapshot.adapters.into_iter().map(Arc::new).collect());
        self.facts = snapshot.host;
    }
}

impl Filter {
    /// The adapters among `adapters` that match the filter.
    pub(crate) fn select(&self, adapters: &[Arc<Adapter>]) -> Vec<Arc<Adapter>> {
        let Filter::Attributes(wanted) = self else { return Vec::new() };
        let matches = |adapter: &Adapter| wanted.iter().all(|a| adapter.attributes.has(*a));
        adapters.iter().filter(|adapter| matches(adapter)).cloned().collect()
    }
}

impl Host {
    fn from_environment() -> Result<Host, String> {
        let path = std::env::var_os("DXCORE_DOUBLE_INVENTORY");
        let path = path.map_or_else(|| PathBuf::from(r"C:\inventory.yaml"), PathBuf::from);
        let modes = Modes::read(|name| std::env::var(name).ok())?;
        let host = Host { path, modes, history: Mutex::default() };
        let snapshot = config::inventory::read(&host.path).map_err(|error| error.to_string())?;
        host.history().add(snapshot);
        Ok(host)
    }

    /// The history, after reading the file if it changed. A file that cannot be read, for
    /// example because it is being written, changes nothing.
    fn history(&self) -> MutexGuard<'_, History> {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        if stamp != history.stamp
            && let Ok(snapshot) = config::inventory::read(&self.path)
        {
            history.stamp = stamp;
            history.add(snapshot);
        }
        history
    }

    /// The current revision.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.history().revisions.len().saturating_sub(1))
    }

    /// The current adapters, in the order of the host.
    pub(crate) fn adapters(&self) -> Vec<Arc<Adapter>> {
        self.history().revisions.last().cloned().unwrap_or_default()
    }

    /// The product, build and HCS schemas of the host.
    pub(crate) fn facts(&self) -> HostFacts {
        self.history().facts.clone()
    }

    /// Whether `condition` was true in every revision from `since` on.
    fn held_since(&self, since: Revision, condition: impl Fn(&[Arc<Adapter>]) -> bool) -> bool {
        self.history().revisions[since.0..].iter().all(|adapters| condition(adapters))
    }

    /// Whether `filter` selected the same adapters in every revision from `since` on.
    pub(crate) fn is_list_current(&self, filter: &Filter, since: Revision) -> bool {
        let luids = |adapters: &[Arc<Adapter>]| -> BTreeSet<Luid> {
            filter.select(adapters).iter().map(|adapter| adapter.luid).collect()
        };
        let first = luids(&self.history().revisions[since.0]);
        self.held_since(since, |adapters| luids(adapters) == first)
            && first.iter().all(|luid| !self.modes.removed.contains(luid))
    }

    /// How the host interprets the attributes of a requested list.
    pub(crate) fn filter(&self, guids: &[GUID]) -> Filter {
        let mut wanted = Vec::new();
        for guid in guids {
            match (attributes::find(guid), self.modes.newer_attributes) {
                (Some((_, Release::Later)), NewerAttributes::Empty) | (None, _) => {
                    return Filter::Nothing;
                }
                (Some((attribute, _)), _) => wanted.push(attribute),
            }
        }
        Filter::Attributes(wanted)
    }

    /// Whether requests for such a list fail now.
    pub(crate) fn list_fails(&self, filter: &Filter) -> bool {
        let file = self.modes.failing_lists.as_ref();
        let Some(Ok(names)) = file.map(fs::read_to_string) else { return false };
        let Filter::Attributes(wanted) = filter else { return false };
        wanted.iter().any(|wanted| names.lines().any(|name| name == wanted.to_string()))
    }

    /// Whether an adapter was present in every revision from `since` on.
    pub(crate) fn is_present_since(&self, luid: Luid, since: Revision) -> bool {
        !self.modes.removed.contains(&luid)
            && self.held_since(since, |adapters| adapters.iter().any(|a| a.luid == luid))
    }

    /// How the host treats the attributes that older hosts do not know.
    pub(crate) fn newer_attributes(&self) -> NewerAttributes {
        self.modes.newer_attributes
    }

    /// Whether reading this property of the adapter fails.
    pub(crate) fn property_fails(&self, luid: Luid, property: u32) -> bool {
        self.modes.failing.contains(&(luid, property))
    }

    /// Whether the adapter's driver is being updated.
    pub(crate) fn is_updating_driver(&self, luid: Luid) -> bool {
        self.modes.updating.contains(&luid)
    }

    fn stamp(&self) -> Option<FileStamp> {
        let metadata = fs::metadata(&self.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }
}
