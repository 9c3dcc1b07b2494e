//! The host that is played: the inventory file as it is now, and the modes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use devices::{Adapter, Attribute, HostFacts, HostSnapshot, Luid};

use crate::attributes::{self, Age};
use crate::modes::{Modes, NewerAttributes};
use windows::core::GUID;

/// The one host of this process, or why there is none.
pub(crate) fn host() -> Result<&'static Host, &'static str> {
    static HOST: LazyLock<Result<Host, String>> = LazyLock::new(Host::from_environment);
    HOST.as_ref().map_err(String::as_str)
}

pub(crate) struct Host {
    path: PathBuf,
    modes: Modes,
    readings: Mutex<Readings>,
}

/// What the file has said so far.
#[derive(Default)]
struct Readings {
    stamp: Option<Stamp>,
    /// The adapters of every reading; the last is the host as it is now.
    all: Vec<Vec<Arc<Adapter>>>,
    /// The host's own facts in the last reading.
    facts: HostFacts,
}

/// A moment in the life of the host: objects remember when they were made, as what
/// ends them may be over when they are asked.
#[derive(Clone, Copy)]
pub(crate) struct Moment(usize);

/// Tells one state of the file from another without reading it.
type Stamp = (SystemTime, u64);

/// What a list of adapters is asked for.
pub(crate) enum Filter {
    /// Adapters with all of these.
    Attributes(Vec<Attribute>),
    /// An attribute is among them that this host does not know: no adapter has it.
    Nothing,
    /// The host does not take the question.
    Refused,
}

impl Readings {
    fn add(&mut self, snapshot: HostSnapshot) {
        self.all.push(snapshot.adapters.into_iter().map(Arc::new).collect());
        self.facts = snapshot.host;
    }
}

impl Filter {
    /// The adapters among `adapters` that it lets through.
    pub(crate) fn pick(&self, adapters: &[Arc<Adapter>]) -> Vec<Arc<Adapter>> {
        let Filter::Attributes(wanted) = self else { return Vec::new() };
        let passes = |adapter: &Adapter| wanted.iter().all(|a| adapter.attributes.has(*a));
        adapters.iter().filter(|adapter| passes(adapter)).cloned().collect()
    }
}

impl Host {
    fn from_environment() -> Result<Host, String> {
        let name = "DXCORE_DOUBLE_INVENTORY";
        let path = std::env::var_os(name).ok_or_else(|| format!("{name} is not set"))?.into();
        let modes = Modes::read(|name| std::env::var(name).ok())?;
        let host = Host { path, modes, readings: Mutex::default() };
        let snapshot = inventory::read(&host.path).map_err(|error| error.to_string())?;
        host.readings().add(snapshot);
        Ok(host)
    }

    /// The readings, brought up to date. A file that cannot be read, as while it is
    /// being written, changes nothing.
    fn readings(&self) -> MutexGuard<'_, Readings> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        if stamp != readings.stamp
            && let Ok(snapshot) = inventory::read(&self.path)
        {
            readings.stamp = stamp;
            readings.add(snapshot);
        }
        readings
    }

    pub(crate) fn now(&self) -> Moment {
        Moment(self.readings().all.len().saturating_sub(1))
    }

    /// The adapters that the host has now, in its order.
    pub(crate) fn adapters(&self) -> Vec<Arc<Adapter>> {
        self.readings().all.last().cloned().unwrap_or_default()
    }

    /// Product, build and schemas of the host.
    pub(crate) fn facts(&self) -> HostFacts {
        self.readings().facts.clone()
    }

    /// Whether `holds` was true of the host all the time since `since`.
    fn always(&self, since: Moment, holds: impl Fn(&[Arc<Adapter>]) -> bool) -> bool {
        self.readings().all[since.0..].iter().all(|adapters| holds(adapters))
    }

    /// Whether a list of `filter` made at `since` would have been the same ever since.
    pub(crate) fn lists_the_same(&self, filter: &Filter, since: Moment) -> bool {
        let luids = |adapters: &[Arc<Adapter>]| -> BTreeSet<Luid> {
            filter.pick(adapters).iter().map(|adapter| adapter.luid).collect()
        };
        let first = luids(&self.readings().all[since.0]);
        self.always(since, |adapters| luids(adapters) == first)
            && first.iter().all(|luid| !self.modes.gone.contains(luid))
    }

    /// What the host makes of a list's attributes.
    pub(crate) fn filter(&self, guids: &[GUID]) -> Filter {
        let mut wanted = Vec::new();
        for guid in guids {
            match (attributes::find(guid), self.modes.newer_attributes) {
                (Some((_, Age::Newer)) | None, NewerAttributes::Refused) => return Filter::Refused,
                (Some((_, Age::Newer)), NewerAttributes::Ignored) | (None, _) => {
                    return Filter::Nothing;
                }
                (Some((attribute, _)), _) => wanted.push(attribute),
            }
        }
        Filter::Attributes(wanted)
    }

    /// Whether an adapter that was there at `since` has been there ever since.
    pub(crate) fn kept(&self, luid: Luid, since: Moment) -> bool {
        !self.modes.gone.contains(&luid)
            && self.always(since, |adapters| adapters.iter().any(|a| a.luid == luid))
    }

    /// What becomes of the attributes that older hosts do not know.
    pub(crate) fn newer_attributes(&self) -> NewerAttributes {
        self.modes.newer_attributes
    }

    /// Whether the adapter's properties cannot be read.
    pub(crate) fn fails(&self, luid: Luid) -> bool {
        self.modes.failing.contains(&luid)
    }

    /// Whether the adapter's driver is being replaced.
    pub(crate) fn replaces_driver_of(&self, luid: Luid) -> bool {
        self.modes.updating.contains(&luid)
    }

    fn stamp(&self) -> Option<Stamp> {
        let metadata = fs::metadata(&self.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }
}
