//! How the supervisor follows other daemons that have the same resources.
//!
//! Every check of the sockets also lists the directory. Only if it contains sockets that are named
//! like this daemon's, a task queries the processes behind them.

use std::collections::BTreeSet;
use std::path::Path;

use tokio::time::Instant;

use super::search_state::{NextSearch, OtherDaemons, RunningSearch};
use super::steps::Progress;
use super::{ManagedResource, Supervisor};
use crate::claim::{Claim, Takeover};
use crate::events::Event;
use crate::other_daemons::{
    Own, OwnResource, RegistrationUse, Standing, standing, with_earlier_answers,
};
use crate::socket_search::{self, Found};
use crate::transport::Transport;

impl<T: Transport> Supervisor<T> {
    /// Lists the directory if that is due, and starts to query the processes behind sockets of
    /// others. Returns whether the resources' standing may have changed already.
    pub(super) fn search_for_other_daemons(&mut self) -> Progress {
        let is_new = |m: &ManagedResource| {
            *m.registration.standing() == Standing::Unknown && m.registration.endpoint().is_some()
        };
        let due = self.other_daemons.next_search == NextSearch::Due;
        if self.other_daemons.running.is_some() || !(due || self.resources.iter().any(is_new)) {
            return Progress::None;
        }
        self.other_daemons.next_search = NextSearch::WithNextCheck;
        let started = Instant::now();
        let searching = self.resources.iter().filter(|m| m.registration.endpoint().is_some());
        let resources: BTreeSet<String> = searching.map(|m| m.resource.name().to_owned()).collect();
        let prefixes: Vec<&str> =
            self.resources.iter().map(|m| m.resource.socket_prefix()).collect();
        let own: BTreeSet<&Path> = self.endpoints.values().map(|e| e.path.as_path()).collect();
        let sockets = socket_search::sockets(&self.transport, &self.directory, &prefixes, &own);
        if sockets.is_empty() {
            self.apply(Found::default(), &resources, started);
            return Progress::Made;
        }
        let refused = std::mem::take(&mut self.other_daemons.refused);
        let query = socket_search::query(self.transport.clone(), sockets, refused);
        let task = self.spawn("search for other daemons".to_owned(), async move {
            Event::SearchEnded(query.await)
        });
        self.other_daemons.running = Some(RunningSearch { task, started, resources });
        Progress::None
    }

    pub(super) fn search_ended(&mut self, found: Found) {
        if let Some(running) = self.other_daemons.running.take() {
            self.apply(found, &running.resources, running.started);
        }
    }

    fn apply(&mut self, found: Found, resources: &BTreeSet<String>, started: Instant) {
        let OtherDaemons { claim, known, found_first, refused, .. } = &mut self.other_daemons;
        *refused = found.refused;
        *known = with_earlier_answers(found.others, known);
        let found_first = found_first
            .get_or_insert_with(|| known.iter().map(|other| other.path.clone()).collect());
        let own = Own { claim: *claim, found_first };
        let now = Instant::now();
        for m in self.resources.iter_mut().filter(|m| resources.contains(m.resource.name())) {
            let resource = OwnResource {
                name: m.resource.name(),
                socket_prefix: m.resource.socket_prefix(),
                registration: m.registration.registration_use(),
            };
            let after = standing(own, resource, known);
            if after != *m.registration.standing() {
                log_change(m, &after, own.claim);
            }
            m.registration.set_standing(after, started, now);
        }
    }
}

/// Logs what an administrator should know about a change of a resource's standing.
fn log_change(managed: &ManagedResource, after: &Standing, own: Claim) {
    let resource = managed.resource.name();
    match (managed.registration.standing(), after) {
        (_, Standing::Outranked(socket)) => {
            let socket = socket.display();
            let hint = match own.takeover() {
                Takeover::Wait => "stop the other daemon, or start this one with --replace",
                Takeover::Replace => "run only one daemon; the other one was started later",
            };
            tracing::warn!(resource, %socket, hint, "waiting for another daemon");
        }
        (_, Standing::Contested(socket)) => {
            let socket = socket.display();
            match managed.registration.registration_use() {
                RegistrationUse::Registered => tracing::warn!(
                    resource,
                    %socket,
                    hint = "run only one device plugin for a resource",
                    "another program registered the resource; waiting until it ends"
                ),
                RegistrationUse::Unregistered => {
                    tracing::info!(resource, %socket, "taking over from another daemon");
                }
            }
        }
        (Standing::Outranked(_) | Standing::Contested(_), Standing::Alone) => {
            tracing::info!(resource, "no other daemon serves the resource any more");
        }
        _ => {}
    }
}
