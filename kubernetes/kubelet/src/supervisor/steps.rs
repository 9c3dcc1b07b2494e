//! What the supervisor does for its resources: it looks at the sockets, asks each
//! resource's [`Lane`](crate::lane::Lane) for the next step, and takes it.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Leftovers, Supervisor};
use crate::endpoint::{self, Bound, Endpoint};
use crate::events::{EndpointId, Event};
use crate::lane::{Cause, Step, View};
use crate::leftovers;
use crate::readiness::ResourceState;
use crate::registration::register;
use crate::service::{Service, Watched};
use crate::transport::{Identity, Transport};

impl<T: Transport> Supervisor<T> {
    /// Looks at the sockets and does every step that is due.
    pub(super) fn advance(&mut self) {
        let kubelet = self.look_for_kubelet();
        for index in 0..self.lanes.len() {
            // Binding makes registering due.
            while self.take_step(index, kubelet) == Progress::Made {}
        }
    }

    fn look_for_kubelet(&mut self) -> Option<Identity> {
        let (kubelet, trouble) = match self.transport.identity(&self.kubelet_path) {
            Ok(Some(identity)) => (Some(identity), None),
            Ok(None) => {
                (None, Some(format!("there is no kubelet at {}", self.kubelet_path.display())))
            }
            Err(error) => {
                let path = self.kubelet_path.display();
                (None, Some(format!("could not look at {path}: {error}")))
            }
        };
        let Some(trouble) = trouble else { return kubelet };
        let now = Instant::now();
        for m in &mut self.lanes {
            m.lane.note(trouble.clone());
            let waiting = matches!(m.lane.state(), ResourceState::WaitingForKubelet { .. });
            if waiting && m.pacer.lets_through(&trouble, now) {
                tracing::warn!(
                    resource = m.resource.name(),
                    reason = trouble,
                    "waiting for the kubelet"
                );
            }
        }
        kubelet
    }

    fn take_step(&mut self, index: usize, kubelet: Option<Identity>) -> Progress {
        let lane = &self.lanes[index].lane;
        let own = lane.endpoint().and_then(|id| self.endpoints.get(&id));
        let view = View {
            now: Instant::now(),
            kubelet,
            own_in_place: own.is_some_and(|endpoint| endpoint.is_in_place(&self.transport)),
        };
        match lane.step(&view) {
            Step::Wait => Progress::None,
            Step::Bind(cause) => self.bind(index, cause),
            Step::Register(kubelet) => {
                self.register(index, kubelet);
                Progress::Made
            }
        }
    }

    fn bind(&mut self, index: usize, cause: Cause) -> Progress {
        let managed = &mut self.lanes[index];
        let now = Instant::now();
        let resource = managed.resource.name();
        let path = self.directory.join(self.socket_names.next(managed.resource.socket_prefix()));
        let socket = path.display();
        match Endpoint::bind(&self.transport, path.clone()) {
            Ok(bound) => {
                if matches!(cause, Cause::Retry | Cause::NoStream) {
                    // One of many, and its cause was logged.
                    tracing::debug!(resource, %socket, cause = cause.as_str(), "listening");
                } else {
                    tracing::info!(resource, %socket, cause = cause.as_str(), "listening");
                }
                self.serve(index, bound, cause);
                self.clear_leftovers();
                Progress::Made
            }
            Err(error) => {
                let text = format!("could not listen on {}: {error}", self.directory.display());
                if managed.pacer.lets_through(&text, now) {
                    tracing::warn!(resource, %socket, %error, "could not listen");
                }
                managed.lane.bind_failed(text, now);
                Progress::None
            }
        }
    }

    /// Serves on a socket that was just bound, in the place of the one there was.
    fn serve(&mut self, index: usize, bound: Bound<T::Listener>, cause: Cause) {
        let Bound { endpoint, listener, closing, kubelet_expected } = bound;
        let managed = &mut self.lanes[index];
        let id = EndpointId(self.next_endpoint);
        self.next_endpoint += 1;
        let resource = Arc::clone(&managed.resource);
        let name = resource.name().to_owned();
        let previous = managed.lane.endpoint();
        managed.lane.bound(id, cause, Instant::now());
        self.endpoints.insert(id, endpoint);
        if let Some(previous) = previous {
            self.retire(previous);
        }
        let service = Service::new(Watched {
            id,
            resource,
            closing: closing.clone(),
            kubelet_expected,
            events: self.events_in.clone(),
            readiness: self.readiness.subscribe(),
        });
        let task = format!("the listener of {name}");
        let serving = endpoint::serve(listener, service, closing, name);
        self.spawn(task, async move {
            match serving.await {
                Ok(()) => Event::EndpointEnded(id),
                Err(panicked) => Event::Panicked(panicked),
            }
        });
    }

    /// Closes a socket that another one has replaced.
    fn retire(&mut self, id: EndpointId) {
        if let Some(attempt) = self.attempts.remove(&id) {
            attempt.abort();
        }
        if let Some(endpoint) = self.endpoints.get(&id) {
            endpoint.close(&self.transport);
        }
    }

    fn register(&mut self, index: usize, kubelet: Identity) {
        let managed = &mut self.lanes[index];
        let Some(id) = managed.lane.endpoint() else { return };
        let Some(endpoint) = self.endpoints.get(&id) else { return };
        let name = managed.resource.name().to_owned();
        managed.lane.asking(kubelet);
        endpoint.expect_kubelet(true);
        tracing::debug!(resource = name, socket = endpoint.file_name(), "registering");
        let (transport, path) = (self.transport.clone(), self.kubelet_path.clone());
        let socket = endpoint.file_name();
        let task = format!("the registration of {name}");
        let attempt = self.spawn(task, async move {
            Event::RegistrationEnded(id, register(transport, &path, name, socket).await)
        });
        self.attempts.insert(id, attempt);
    }

    /// Starts the search for leftovers once every resource has its first socket.
    fn clear_leftovers(&mut self) {
        let all_bound = self.lanes.iter().all(|m| m.lane.endpoint().is_some());
        if self.leftovers == Leftovers::Cleared || !all_bound {
            return;
        }
        self.leftovers = Leftovers::Cleared;
        let ours = self.endpoints.values().map(|endpoint| endpoint.path.clone()).collect();
        let prefixes = self.lanes.iter().map(|m| m.resource.socket_prefix().to_owned()).collect();
        let (transport, directory) = (self.transport.clone(), self.directory.clone());
        self.spawn("the search for leftover sockets".to_owned(), async move {
            leftovers::clear(transport, directory, prefixes, ours).await;
            Event::LeftoversCleared
        });
    }
}

/// Whether a step was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Made,
    None,
}
