//! How the supervisor carries out the steps of its resources: it checks the sockets, gets the next
//! [`Step`] of each resource and carries it out.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Supervisor;
use crate::endpoint::Endpoint;
use crate::events::{EndpointId, Event};
use crate::readiness::ResourceState;
use crate::registration::register;
use crate::resource_registration::{BindReason, Sockets, Step};
use crate::server;
use crate::service::{EndpointContext, Service};
use crate::socket_names::has_prefix;
use crate::transport::{Identity, Transport};

/// What an administrator can do if a socket's directory does not exist.
const MISSING_DIRECTORY: &str = "start kubelet, which creates its device plugin directory, and \
    check that the plugin is configured with the same directory";

/// How long a process may take to accept a connection on a socket that is not stale.
const STALE_LIMIT: Duration = Duration::from_secs(1);

impl<T: Transport> Supervisor<T> {
    /// Checks the sockets and the locks, and carries out every step that is due.
    pub(super) fn advance(&mut self) {
        self.forget_ended();
        let kubelet = self.find_kubelet();
        let locks_are_due = std::mem::take(&mut self.locks_are_due);
        for index in 0..self.resources.len() {
            if locks_are_due || self.resources[index].lock.is_none() {
                self.check_lock(index, locks_are_due);
            }
            // After `Bind`, `Register` is due.
            while self.carry_out_step(index, kubelet) == Progress::Made {}
        }
        if std::mem::take(&mut self.stale_are_due) {
            self.remove_stale_sockets();
        }
    }

    /// Removes the sockets that processes left behind which were killed.
    fn remove_stale_sockets(&mut self) {
        let Ok(mut stale) = self.transport.list(&self.directory) else { return };
        stale.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.resources.iter().any(|m| has_prefix(m.resource.socket_prefix(), &name))
                && self.endpoints.values().all(|endpoint| endpoint.path != *path)
        });
        if stale.is_empty() {
            return;
        }
        let transport = self.transport.clone();
        self.spawn("removal of stale sockets".to_owned(), async move {
            for path in stale {
                let connected = timeout(STALE_LIMIT, transport.connect(&path)).await;
                if let Ok(Err(error)) = connected
                    && error.kind() == ErrorKind::ConnectionRefused
                    && transport.remove(&path).is_ok()
                {
                    tracing::info!(socket = %path.display(), "removed stale socket");
                }
            }
            Event::Tick
        });
    }

    /// Takes the lock of a resource, if this daemon does not have it.
    fn check_lock(&mut self, index: usize, is_due: bool) {
        let managed = &mut self.resources[index];
        if managed.lock.as_ref().is_some_and(|lock| lock.is_held()) {
            return;
        }
        if !is_due && managed.registration.has_tried_lock() {
            return;
        }
        managed.lock = None;
        let (resource, now) = (managed.resource.name(), Instant::now());
        match self.transport.lock(&self.directory, resource) {
            Ok(lock) => {
                managed.lock = Some(lock);
                self.stale_are_due = true;
                if managed.registration.lock_taken(now) {
                    tracing::info!(resource, "no other daemon serves the resource any more");
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let holder = error.to_string();
                if managed.registration.lock_refused(holder.clone(), now) {
                    tracing::warn!(
                        resource,
                        holder,
                        hint = "run only one daemon for a resource",
                        "waiting for another daemon"
                    );
                }
            }
            // Without the directory, no socket can be bound either, which is reported.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let text = format!("cannot lock the resource: {error}");
                if managed.log_limiter.should_log(&text, now) {
                    tracing::warn!(resource, %error, "cannot lock the resource");
                }
                managed.registration.lock_failed(text, now);
            }
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
            Ok((endpoint, listener)) => {
                let text = reason.as_str();
                if matches!(reason, BindReason::RegistrationFailed | BindReason::NoStream) {
                    // Repeats with every retry, and the failure itself was logged.
                    tracing::debug!(resource, %socket, reason = text, "listening on plugin socket");
                } else {
                    tracing::info!(resource, %socket, reason = text, "listening on plugin socket");
                }
                self.serve(index, endpoint, listener, reason);
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
    fn serve(
        &mut self,
        index: usize,
        endpoint: Endpoint,
        listener: T::Listener,
        reason: BindReason,
    ) {
        let (close, expected) = (endpoint.close.clone(), Arc::clone(&endpoint.kubelet_expected));
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
            close: close.clone(),
            kubelet_expected: Arc::clone(&expected),
            events: self.event_sender.clone(),
            readiness: self.readiness.subscribe(),
            limits: self.limits.clone(),
        });
        let task = format!("listener of {name}");
        let serving = server::serve(listener, service, self.limits.clone(), expected, close, name);
        self.spawn(task, async move {
            serving.await;
            Event::EndpointEnded(id)
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
        let (socket, options) = (endpoint.file_name(), managed.resource.options());
        let task = format!("registration of {name}");
        let attempt = self.spawn(task, async move {
            Event::RegistrationEnded(id, register(transport, &path, name, socket, options).await)
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
