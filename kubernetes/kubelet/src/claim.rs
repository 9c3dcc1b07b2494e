//! The claim of a daemon to its resources. Daemons on the same node compare their claims to agree
//! which of them serves a resource.

use std::time::{SystemTime, UNIX_EPOCH};

/// What a daemon does while another one serves the same resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Takeover {
    /// It waits until the other one has ended.
    Wait = 0,
    /// It takes the resource over, and the other one waits.
    Replace = 1,
}

/// The claim of a daemon to its resources.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Claim {
    /// Whether the daemon waits for daemons that started before it.
    #[prost(enumeration = "Takeover", tag = "1")]
    pub takeover: i32,
    /// When the daemon started, in nanoseconds since the Unix epoch.
    #[prost(uint64, tag = "2")]
    pub started: u64,
}

impl Claim {
    /// The claim of a daemon that starts now.
    pub(crate) fn now(takeover: Takeover) -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Claim { takeover: takeover.into(), started: u64::try_from(started).unwrap_or(u64::MAX) }
    }

    /// Whether this daemon serves the resources that both have: the last one that was started with
    /// [`Takeover::Replace`], and without such a daemon the first one that was started.
    pub(crate) fn outranks(&self, other: &Claim) -> bool {
        match (self.takeover(), other.takeover()) {
            (Takeover::Replace, Takeover::Wait) => true,
            (Takeover::Wait, Takeover::Replace) => false,
            (Takeover::Replace, Takeover::Replace) => self.started > other.started,
            (Takeover::Wait, Takeover::Wait) => self.started < other.started,
        }
    }
}
