//! Where adapters come from: the port that the Windows source and the recorded
//! inventory both fulfil.

use std::collections::BTreeMap;

use crate::{Adapter, HostFacts, Luid, PnpId};

/// What a source saw of its host at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSnapshot {
    /// Facts of the host itself.
    pub host: HostFacts,
    /// Every adapter that could be read, in the order the host lists them.
    pub adapters: Vec<Adapter>,
    /// What could not be read. It hides nothing else: an adapter whose driver is
    /// being replaced, or one bad registry value, is told here and left out alone.
    pub warnings: Vec<AdapterWarning>,
    /// The UUIDs (`GPU-…`) of NVIDIA devices, where NVML could be asked. Asking takes
    /// long, so no source does; whoever wants them adds them. Never recorded.
    pub gpu_uuids: BTreeMap<PnpId, String>,
}

/// Something about one adapter that a source could not read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterWarning {
    /// The adapter.
    pub luid: Luid,
    /// What could not be read and why, in words.
    pub text: String,
    /// Whether the adapter is still in [`HostSnapshot::adapters`] (something of it
    /// is missing), or could not be read at all and must be skipped for `text`.
    pub kept: Kept,
}

/// Whether a snapshot still holds the adapter that a warning is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The adapter is there, less the part the warning names.
    InPart,
    /// The adapter is not there.
    Not,
}

/// Why a source could not answer at all.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Called by a source, on any thread, whenever its host may have changed. It must
/// return at once and may be called more often than anything changed.
pub type ChangeCallback = Box<dyn Fn() + Send + Sync>;

/// A place that adapters are read from.
pub trait AdapterSource: Send {
    /// Reads the host as it is now. Blocking: milliseconds on a live host.
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError>;

    /// Calls `on_change` after every change from now on, until the source is
    /// dropped. A source is watched at most once.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError>;
}
