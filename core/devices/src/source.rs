//! Where adapters come from: the interface that the Windows source and the inventory
//! both implement.

use std::collections::BTreeMap;

use crate::{Adapter, HostFacts, Luid, NodeSoftware, PnpId};

/// What a source read from its host at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSnapshot {
    /// Facts of the host itself.
    pub host: HostFacts,
    /// The software of the node, as far as an inventory contains it. A live source leaves it
    /// empty, because reading it means running programs; `record` adds it.
    pub node: NodeSoftware,
    /// Every adapter that could be read, in the order the host lists them.
    pub adapters: Vec<Adapter>,
    /// What could not be read. Everything else stays in the snapshot: an adapter whose
    /// driver is being replaced, or one bad registry value, is reported here and only
    /// that adapter or value is missing.
    pub warnings: Vec<AdapterWarning>,
    /// The UUIDs (`GPU-…`) of NVIDIA devices, if NVML is available. NVML is slow, so
    /// sources leave this empty and callers that need the UUIDs add them. Inventories
    /// never contain them.
    pub gpu_uuids: BTreeMap<PnpId, String>,
}

/// A problem that a source had with one adapter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterWarning {
    /// The adapter.
    pub luid: Luid,
    /// What could not be read and why.
    pub text: String,
    /// What the problem means for the adapter.
    pub effect: WarningEffect,
}

/// What a warning means for its adapter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarningEffect {
    /// The adapter is in [`HostSnapshot::adapters`], without what the warning names.
    Incomplete,
    /// The adapter could not be read at all and is not in [`HostSnapshot::adapters`].
    Skipped,
}

/// Why a source could not read its host.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Called by a source, on any thread, whenever its host may have changed. The callback
/// must return immediately. It may also be called when nothing has changed.
pub type ChangeCallback = Box<dyn Fn() + Send + Sync>;

/// Reads the adapters of a host.
pub trait AdapterSource: Send {
    /// Reads the current state of the host. Blocks for milliseconds on a live host.
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError>;

    /// Calls `on_change` after every later change, until the source is dropped. A source
    /// can be watched only once.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError>;
}
