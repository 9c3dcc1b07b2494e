//! Which of several daemons on a node serves a resource.
//!
//! A kubelet sends its calls to the plugin that registered last. Up to 1.36, the end of that plugin
//! also ends the resource, although an earlier plugin is still connected, and the earlier one is
//! not notified. So only one daemon may register a resource: the others wait until it has ended.
//! Every daemon computes from the [`Claim`]s of all daemons which one that is. The order of the
//! claims is total, so all daemons reach the same result and never register in turns.
//!
//! In come the sockets in the device plugin directory and what their processes answer to the status
//! call; out comes the [`Standing`] of one resource. This module is pure; `socket_search` reads the
//! directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::claim::{Claim, Takeover};
use crate::socket_names;
use crate::status::{Phase, ResourceStatus, StatusReport};

/// A socket of another process that is named like a socket of this one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OtherSocket {
    pub(crate) path: PathBuf,
    pub(crate) answer: Answer,
}

/// What a process answers to the status call.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Answer {
    /// The resources of the process.
    Report(StatusReport),
    /// It does not know the call: it is a device plugin of another maker.
    UnknownCall,
    /// It accepted the connection and did not answer.
    Nothing,
}

/// What other daemons mean for a resource of this daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// The first search for other daemons has not ended.
    Unknown,
    /// No other daemon has registered the resource.
    Alone,
    /// The daemon behind this socket serves the resource, and this daemon must not.
    Outranked(PathBuf),
    /// The daemon behind this socket may have registered the resource, and may not have given it
    /// up.
    Contested(PathBuf),
}

/// This daemon, as far as it determines the [`Standing`] of its resources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a> {
    pub(crate) claim: Claim,
    /// The other sockets that the first search found. A daemon with [`Takeover::Replace`] registers
    /// after them.
    pub(crate) found_first: &'a BTreeSet<PathBuf>,
}

/// A resource of this daemon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnResource<'a> {
    pub(crate) name: &'a str,
    pub(crate) socket_prefix: &'a str,
    pub(crate) registration: RegistrationUse,
}

/// Whether a kubelet uses this daemon's registration of a resource, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RegistrationUse {
    Unregistered,
    Registered,
}

/// The standing of `resource` among the processes behind `others`.
pub(crate) fn standing(
    own: Own<'_>,
    resource: OwnResource<'_>,
    others: &[OtherSocket],
) -> Standing {
    let standings = || others.iter().map(|other| standing_towards(own, resource, other));
    let outranked = standings().find(|s| matches!(s, Standing::Outranked(_)));
    let contested = || standings().find(|s| matches!(s, Standing::Contested(_)));
    outranked.or_else(contested).unwrap_or(Standing::Alone)
}

fn standing_towards(own: Own<'_>, resource: OwnResource<'_>, other: &OtherSocket) -> Standing {
    let path = || other.path.clone();
    let Some(other_phase) = phase_of(resource, other) else { return Standing::Alone };
    match claim_of(other) {
        Some(claim) if claim.outranks(&own.claim) => Standing::Outranked(path()),
        Some(_) => match other_phase {
            // It has not registered, and will not while it finds this daemon.
            Phase::Starting | Phase::WaitingForOtherDaemon => Standing::Alone,
            Phase::WaitingForKubelet | Phase::Registered | Phase::Ready => {
                Standing::Contested(path())
            }
        },
        // A process without a claim gives nothing up. If it came later, it has taken the resource
        // over. This daemon's stream stays open all the same: up to 1.36, its end would end the
        // registration of the other process, which may not register again.
        None => match (own.claim.takeover(), resource.registration) {
            (Takeover::Wait, RegistrationUse::Unregistered) => Standing::Outranked(path()),
            (Takeover::Replace, _) if own.found_first.contains(&other.path) => Standing::Alone,
            // It could not have registered without answering the kubelet.
            _ if other.answer == Answer::Nothing => Standing::Alone,
            _ => Standing::Contested(path()),
        },
    }
}

/// The phase of `resource` in the process behind `other`, or `None` if the process does not have the
/// resource. For a process that does not report its resources, the name of its socket decides.
fn phase_of(resource: OwnResource<'_>, other: &OtherSocket) -> Option<Phase> {
    match &other.answer {
        Answer::Report(report) => {
            let found = report.resources.iter().find(|status| status.name == resource.name);
            found.map(ResourceStatus::phase)
        }
        Answer::UnknownCall | Answer::Nothing => {
            let name = file_name(&other.path);
            socket_names::may_serve(resource.socket_prefix, &name).then_some(Phase::Registered)
        }
    }
}

fn claim_of(other: &OtherSocket) -> Option<Claim> {
    match &other.answer {
        Answer::Report(report) => report.claim,
        Answer::UnknownCall | Answer::Nothing => None,
    }
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `found`, with the earlier answer of every process that did not answer this time.
pub(crate) fn with_earlier_answers(
    mut found: Vec<OtherSocket>,
    before: &[OtherSocket],
) -> Vec<OtherSocket> {
    for other in found.iter_mut().filter(|other| other.answer == Answer::Nothing) {
        if let Some(known) = before.iter().find(|known| known.path == other.path) {
            other.answer = known.answer.clone();
        }
    }
    found
}

#[cfg(test)]
mod tests;
