//! Whether other daemons with the same resource allow a registration.

use std::time::Duration;

use tokio::time::Instant;

use crate::other_daemons::Standing;
use crate::readiness::ResourceState;

/// How long to wait after another daemon has ended or given the resource up before registering. The
/// kubelet handles the end of the other daemon's stream under the name of the resource, whatever is
/// registered by then, and this daemon cannot observe when it has done so. It is also longer than a
/// daemon takes to replace a socket that a starting kubelet deleted, so that such a daemon is still
/// found.
pub(super) const HANDOVER_DELAY: Duration = Duration::from_millis(500);

/// How long a daemon with precedence waits until the other one has given the resource up. That one
/// notices it within a second, unless it hangs.
pub(super) const HANDOVER_LIMIT: Duration = Duration::from_secs(5);

/// The other daemons, and when they allow a registration.
#[derive(Debug)]
pub(super) struct Handover {
    pub(super) standing: Standing,
    /// When `standing` changed.
    pub(super) since: Instant,
    /// A search that started before this time does not allow a registration.
    pub(super) over_at: Instant,
    /// When the last search that ended had started.
    pub(super) searched_at: Instant,
    /// The state of the resource while another daemon serves it, or may serve it.
    pub(super) state: Option<ResourceState>,
}

impl Handover {
    pub(super) fn new(now: Instant) -> Self {
        let state = Some(ResourceState::Starting);
        Handover { standing: Standing::Unknown, since: now, over_at: now, searched_at: now, state }
    }

    pub(super) fn is_outranked(&self) -> bool {
        matches!(self.standing, Standing::Outranked(_))
    }

    /// The state that precedes the one of the registration.
    pub(super) fn state(&self) -> Option<&ResourceState> {
        self.state.as_ref()
    }

    /// Whether the other daemons allow a registration.
    pub(super) fn allows_registration(&self, now: Instant) -> bool {
        match self.standing {
            Standing::Unknown | Standing::Outranked(_) => false,
            Standing::Alone => self.searched_at >= self.over_at,
            Standing::Contested(_) => now >= self.since + HANDOVER_LIMIT,
        }
    }

    /// When a search may allow a registration.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        match self.standing {
            Standing::Unknown | Standing::Outranked(_) => None,
            Standing::Alone => Some(self.over_at),
            Standing::Contested(_) => Some(self.since + HANDOVER_LIMIT),
        }
    }

    /// The resource is being registered, so this daemon is the last one that registered it.
    pub(super) fn registering(&mut self) {
        self.state = None;
    }
}
