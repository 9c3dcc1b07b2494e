//! Whether a kubelet has our lists: what a readiness probe should ask.

use tokio::time::Instant;

/// The state of every resource, in the order they were given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Readiness {
    /// One entry for each resource.
    pub resources: Vec<ResourceReadiness>,
}

impl Readiness {
    /// Whether a kubelet has the list of every resource (and there is one).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.resources.is_empty()
            && self.resources.iter().all(|r| r.state == ResourceState::ListDelivered)
    }
}

/// The state of one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceReadiness {
    /// The extended resource's name.
    pub name: String,
    /// How far it has come.
    pub state: ResourceState,
}

/// How far a resource has come with the kubelet there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResourceState {
    /// Nothing was tried yet.
    Starting,
    /// No kubelet has accepted the resource, or the one that had it is gone.
    WaitingForKubelet {
        /// Since when.
        since: Instant,
        /// What went wrong last, cause included.
        last_error: Option<String>,
    },
    /// A kubelet has accepted the resource and not yet asked for the list.
    Registered,
    /// A kubelet has taken the list and waits for changes.
    ListDelivered,
}
