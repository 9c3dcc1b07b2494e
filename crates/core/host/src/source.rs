//! Where adapters come from: the interface that the Windows source and the inventory
//! both implement.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Adapter, Cordons, DriverStore, HostFacts, Luid, NodeSoftware, NvidiaFacts, PnpDevice, PnpId,
};

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
    /// The display and compute devices that have a problem code and no adapter, such as a GPU
    /// without a driver. They are only reported.
    pub devices_without_adapter: Vec<PnpDevice>,
    /// What could not be read. Everything else stays in the snapshot: an adapter whose
    /// driver is being replaced, or one bad registry value, is reported here and only
    /// that adapter or value is missing.
    pub warnings: Vec<AdapterWarning>,
    /// The devices that the node's annotation takes out of service. A source does not know them; the
    /// daemon adds them.
    pub cordoned: Cordons,
}

impl HostSnapshot {
    /// The adapters that the host lists, also those that could not be read.
    #[must_use]
    pub fn listed(&self) -> BTreeSet<Luid> {
        let unreadable = self.warnings.iter().filter(|w| w.effect == WarningEffect::Unreadable);
        let adapters = self.adapters.iter().map(|adapter| adapter.luid);
        adapters.chain(unreadable.map(|warning| warning.luid)).collect()
    }

    /// Adds what NVML reports of GPUs. Of other GPUs, the snapshot keeps what it contains.
    pub fn add_nvidia(&mut self, gpus: &BTreeMap<PnpId, NvidiaFacts>) {
        for adapter in &mut self.adapters {
            let facts = adapter.pnp.as_ref().and_then(|pnp| gpus.get(&pnp.id));
            if let Some(facts) = facts {
                adapter.nvidia = facts.clone();
            }
        }
    }

    /// Whether the state of an adapter of a live host is probably temporary: the adapter could not
    /// be read, it has no `PnP` device yet, or its driver store folder is missing or empty. Windows
    /// does not always report the end of such a state, so the host should be read again. Only GPUs
    /// and accelerators count.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.warnings.iter().any(|warning| warning.effect == WarningEffect::Unreadable)
            || self.adapters.iter().filter(|adapter| adapter.is_gpu_or_accelerator()).any(
                |adapter| {
                    adapter.pnp.is_none()
                        || adapter.driver_store.as_ref().is_some_and(DriverStore::lacks_files)
                },
            )
    }
}

/// A problem that a source had with one adapter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterWarning {
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
    Unreadable,
    /// Only the graphics kernel lists the adapter, so it is not in [`HostSnapshot::adapters`].
    NotListed,
}

/// Why a source could not read its host.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Called by a source, on any thread, whenever its host may have changed. The callback
/// must return immediately. It may also be called when nothing has changed.
pub type ChangeCallback = Box<dyn Fn() + Send + Sync>;

/// What a source is doing. If Windows does not answer, this is all that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, strum::Display)]
pub enum ReadStep {
    /// Loads the libraries and opens the host.
    #[default]
    #[strum(to_string = "opening the host")]
    Open,
    /// Subscribes to notifications of changes.
    #[strum(to_string = "subscribing to change notifications")]
    Watch,
    #[strum(to_string = "listing adapters")]
    Adapters,
    /// Lists the present `PnP` devices.
    #[strum(to_string = "listing PnP devices")]
    Devices,
    /// Reads the properties of an adapter.
    #[strum(to_string = "reading adapter {0}")]
    Adapter(Luid),
    /// Finds the driver store folder of an adapter.
    #[strum(to_string = "finding the driver store folder of adapter {0}")]
    DriverStore(Luid),
}

/// Called by a source, on the thread that reads, at the beginning of each step.
pub type StepCallback = Box<dyn Fn(ReadStep) + Send>;

/// Reads the adapters of a host.
pub trait AdapterSource: Send {
    /// Reads the current state of the host. Takes milliseconds on a live host, unless a part
    /// of Windows does not respond.
    fn snapshot(&mut self) -> Result<HostSnapshot, SourceError>;

    /// Calls `on_step` at the beginning of each step, from now on. A source whose reads cannot
    /// hang has no steps.
    fn report_steps(&mut self, _on_step: StepCallback) {}

    /// Calls `on_change` after every later change, until the source is dropped. A source
    /// can be watched only once; after an error, it can be tried again.
    fn watch(&mut self, on_change: ChangeCallback) -> Result<(), SourceError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_name_what_they_read() {
        let steps = [ReadStep::default(), ReadStep::Devices, ReadStep::DriverStore(Luid(7))];
        let texts = steps.map(|step| step.to_string());
        assert_eq!(
            texts,
            [
                "opening the host",
                "listing PnP devices",
                "finding the driver store folder of adapter 7"
            ]
        );
    }
}
