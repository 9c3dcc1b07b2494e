//! What other daemons with the same resource change in a registration.

use tokio::time::Instant;

use super::handover::HANDOVER_DELAY;
use super::{BindReason, Link, ResourceRegistration};
use crate::other_daemons::{RegistrationUse, Standing};
use crate::readiness::ResourceState;

impl ResourceRegistration {
    pub(crate) fn standing(&self) -> &Standing {
        &self.handover.standing
    }

    /// Whether a kubelet may use the registration.
    pub(crate) fn registration_use(&self) -> RegistrationUse {
        match self.link {
            Link::None => RegistrationUse::Unregistered,
            Link::Registering { .. } | Link::Registered { .. } => RegistrationUse::Registered,
        }
    }

    /// A search that started at `searched_at` has ended. `standing` is not [`Standing::Unknown`].
    pub(crate) fn set_standing(&mut self, standing: Standing, searched_at: Instant, now: Instant) {
        self.handover.searched_at = searched_at;
        if standing != self.handover.standing {
            self.change_standing(standing, now);
        }
        // Until then, other daemons must not take this one for a daemon that may register.
        if self.handover.standing == Standing::Alone && searched_at >= self.handover.over_at {
            self.handover.state = None;
        }
    }

    fn change_standing(&mut self, standing: Standing, now: Instant) {
        let before = std::mem::replace(&mut self.handover.standing, standing);
        self.handover.since = now;
        match &self.handover.standing {
            Standing::Outranked(socket) | Standing::Contested(socket) => {
                if self.pending_rebind == Some(BindReason::OtherDaemonEnded) {
                    self.pending_rebind = None;
                }
                let since = match &self.handover.state {
                    Some(ResourceState::WaitingForOtherDaemon { since, .. }) => *since,
                    _ => now,
                };
                let socket = socket.clone();
                self.handover.state = Some(ResourceState::WaitingForOtherDaemon { since, socket });
            }
            Standing::Unknown | Standing::Alone => {
                if before != Standing::Unknown {
                    self.other_daemon_ended(now);
                }
            }
        }
    }

    /// The kubelet may have ended this daemon's registration with that of the other one.
    fn other_daemon_ended(&mut self, now: Instant) {
        self.handover.over_at = now + HANDOVER_DELAY;
        if self.link != Link::None {
            self.pending_rebind = Some(BindReason::OtherDaemonEnded);
        }
        self.wait_for_kubelet(now, None);
    }
}
