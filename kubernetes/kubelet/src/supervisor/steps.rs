//! How the supervisor carries out the steps of its resources: it checks the sockets, gets the next
//! [`Step`] of each resource and carries it out.

use std::io::ErrorKind;
use std::sync::Arc;

use tokio::time::Instant;

use super::Supervisor;
use crate::endpoint::{self, Bound, Endpoint};
use crate::events::{EndpointId, Event};
use crate::readiness::ResourceState;
use crate::registration::register;
use crate::resource_registration::{BindReason, Sockets, Step};
use crate::service::{EndpointContext, Service};
use crate::transport::{Identity, Transport};

/// What an administrator can do if a socket's directory does not exist.
const MISSING_DIRECTORY: &str = "start kubelet, which creates its device plugin directory, and \
    check that the plugin is configured with the same directory";

impl<T: Transport> Supervisor<T> {
    /// Checks the sockets and carries out every step that is due.
    pub(super) fn advance(&mut self) {
        self.forget_ended();
        let kubelet = self.find_kubelet();
        self.carry_out_steps(kubelet);
        // Other daemons find this one by its sockets, so these exist before it searches for others.
        // Of two daemons that start at the same time, at least one finds the other.
        if self.search_for_other_daemons() == Progress::Made {
            self.carry_out_steps(kubelet);
        }
    }

    fn carry_out_steps(&mut self, kubelet: Option<Identity>) {
        for index in 0..self.resources.len() {
            // After `Bind`, `Register` is due.
            while self.carry_out_step(index, kubelet) == Progress::Made {}
        }
    }

    fn find_kubelet(&mut self) -> Option<Identity> {
        let path = self.kubelet_path.display();
        let error = match self.transport.identity(&self.kubelet_path) {
            Ok(Some(found)) => {
                // The first observation of the same socket, so that the others can use `==`.
                let known = self.known_kubelet.filter(|known| known.is_same_file(&found));
                self.known_kubelet = known.or(Some(found));
                return self.known_kubelet;
            }
            Ok(None) => {
                self.known_kubelet = None;
                format!("kubelet socket `{path}` does not exist")
            }
            Err(error) => format!("cannot inspect kubelet socket `{path}`: {error}"),
        };
        let now = Instant::now();
        for m in &mut self.resources {
            m.registration.set_last_error(error.clone());
            let waiting = matches!(m.registration.state(), ResourceState::WaitingForKubelet { .. });
            if waiting && m.log_limiter.should_log(&error, now) {
                tracing::warn!(resource = m.resource.name(), error, "waiting for kubelet");
            }
        }
        None
    }

    fn carry_out_step(&mut self, index: usize, kubelet: Option<Identity>) -> Progress {
        let registration = &self.resources[index].registration;
        let own = registration.endpoint().and_then(|id| self.endpoints.get(&id));
        let sockets = Sockets {
            now: Instant::now(),
            kubelet,
            own_in_place: own.is_some_and(|endpoint| endpoint.is_in_place(&self.transport)),
        };
        match registration.step(&sockets) {
            Step::Wait => Progress::None,
            Step::Bind(reason) => self.bind(index, reason),
            Step::Register(kubelet) => {
                self.register(index, kubelet);
                Progress::Made
            }
        }
    }

    fn bind(&mut self, index: usize, reason: BindReason) -> Progress {
        let managed = &mut self.resources[index];
        let now = Instant::now();
        let resource = managed.resource.name();
        let path = self.directory.join(self.socket_names.next(managed.resource.socket_prefix()));
        let socket = path.display();
        match Endpoint::bind(&self.transport, path.clone(), &mut managed.leftover) {
            Ok(bound) => {
                let text = reason.as_str();
                if matches!(reason, BindReason::RegistrationFailed | BindReason::NoStream) {
                    // Repeats with every retry, and the failure itself was logged.
                    tracing::debug!(resource, %socket, reason = text, "listening on plugin socket");
                } else {
                    tracing::info!(resource, %socket, reason = text, "listening on plugin socket");
                }
                self.serve(index, bound, reason);
                Progress::Made
            }
            Err(error) => {
                let directory = self.directory.display();
                let text = format!("cannot create a plugin socket in `{directory}`: {error}");
                if managed.log_limiter.should_log(&text, now) {
                    let hint = (error.kind() == ErrorKind::NotFound).then_some(MISSING_DIRECTORY);
                    tracing::warn!(resource, %socket, %error, hint, "cannot listen on plugin socket");
                }
                managed.registration.bind_failed(text, now);
                Progress::None
            }
        }
    }

    /// Serves on a new socket and closes the previous one.
    fn serve(&mut self, index: usize, bound: Bound<T::Listener>, reason: BindReason) {
        let Bound { endpoint, listener, close_signal, kubelet_expected } = bound;
        let managed = &mut self.resources[index];
        let id = EndpointId(self.next_endpoint);
        self.next_endpoint += 1;
        let resource = Arc::clone(&managed.resource);
        let name = resource.name().to_owned();
        let previous = managed.registration.endpoint();
        managed.registration.bound(id, reason, Instant::now());
        self.endpoints.insert(id, endpoint);
        if let Some(previous) = previous {
            self.close_endpoint(previous);
        }
        let service = Service::new(EndpointContext {
            id,
            resource,
            close_signal: close_signal.clone(),
            kubelet_expected,
            events: self.event_sender.clone(),
            readiness: self.readiness.subscribe(),
            claim: self.other_daemons.claim(),
            memory: Arc::clone(&self.memory),
        });
        let task = format!("listener of {name}");
        let slots = self.connection_slots.of_socket();
        let serving = endpoint::serve(listener, service, slots, close_signal, name);
        self.spawn(task, async move {
            match serving.await {
                Ok(()) => Event::EndpointEnded(id),
                Err(panicked) => Event::Panicked(panicked),
            }
        });
    }

    /// Closes a socket that was replaced by another one, or whose resource was removed.
    pub(super) fn close_endpoint(&mut self, id: EndpointId) {
        if let Some(attempt) = self.attempts.remove(&id) {
            attempt.abort();
        }
        if let Some(endpoint) = self.endpoints.get(&id) {
            endpoint.close(&self.transport);
        }
    }

    fn register(&mut self, index: usize, kubelet: Identity) {
        let managed = &mut self.resources[index];
        let Some(id) = managed.registration.endpoint() else { return };
        let Some(endpoint) = self.endpoints.get(&id) else { return };
        let name = managed.resource.name().to_owned();
        managed.registration.registering(kubelet);
        endpoint.expect_kubelet();
        tracing::debug!(resource = name, socket = endpoint.file_name(), "registering with kubelet");
        let (transport, path) = (self.transport.clone(), self.kubelet_path.clone());
        let socket = endpoint.file_name();
        let task = format!("registration of {name}");
        let attempt = self.spawn(task, async move {
            Event::RegistrationEnded(id, register(transport, &path, name, socket).await)
        });
        self.attempts.insert(id, attempt);
    }
}

/// Whether a step was carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Made,
    None,
}
