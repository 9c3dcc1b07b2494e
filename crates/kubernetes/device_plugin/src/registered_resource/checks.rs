//! The checks of what no event announces: the files of the sockets, and the lock.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{KUBELET_REPLACED, LOCK_LOST, Reason, RegisteredResource, SOCKET_LOST};
use crate::names::KUBELET_SOCKET;
use crate::names::has_prefix;
use crate::node::Node;
use crate::resource::Resource;
use crate::status::Phase;
use crate::transport::{Identity, Lock, Transport};

/// How long to wait after another daemon freed the lock of the resource before registering. The
/// kubelet handles the end of the other daemon's stream under the name of the resource, whatever is
/// registered by then, and this daemon cannot observe when it has done so.
const HANDOVER_DELAY: Duration = Duration::from_millis(500);

/// How long a kubelet may be away before that is a warning. A restart takes some seconds.
const ABSENCE_LIMIT: Duration = Duration::from_secs(30);

/// How long a process may take to accept a connection on a socket that is not stale.
const STALE_LIMIT: Duration = Duration::from_secs(1);

impl<T: Transport> RegisteredResource<T> {
    /// Checks the sockets and the lock. Returns the kubelet's socket, if it exists.
    pub(super) fn check(&mut self) -> Result<Option<Identity>, Reason> {
        let found = self.find_kubelet();
        self.check_lock();
        self.publish();
        // A stream that is still open would end the registration of the other daemon later.
        if self.is_linked && self.state.phase == Phase::WaitingForOtherDaemon {
            return Err(LOCK_LOST);
        }
        if let Some(found) = found
            && self.is_linked
            && !self.kubelet.is_some_and(|known| known.is_same_file(&found))
        {
            return Err(KUBELET_REPLACED);
        }
        // Without a kubelet to register a new socket with, an open stream on a socket that lost
        // its name is worth keeping: the kubelet needs no name to hold the stream open.
        let is_in_place = self.socket.as_ref().is_some_and(|socket| socket.file.is_in_place());
        if !is_in_place && (found.is_some() || !self.has_stream()) {
            return Err(SOCKET_LOST);
        }
        Ok(found)
    }

    fn find_kubelet(&mut self) -> Option<Identity> {
        let path = self.node.directory.join(KUBELET_SOCKET);
        let error = match self.node.transport.identity(&path) {
            Ok(Some(found)) => {
                self.absent_since = None;
                return Some(found);
            }
            Ok(None) => {
                // The next kubelet is another one, even if its socket looks the same.
                self.kubelet = None;
                format!("kubelet socket `{}` does not exist", path.display())
            }
            Err(error) => format!("cannot inspect kubelet socket `{}`: {error}", path.display()),
        };
        if self.state.phase == Phase::WaitingForKubelet {
            let (resource, now) = (self.resource.name(), Instant::now());
            let since = *self.absent_since.get_or_insert_with(|| {
                tracing::info!(resource, error, "waiting for kubelet");
                now
            });
            if now >= since + ABSENCE_LIMIT && self.log_limiter.should_log(&error, now) {
                tracing::warn!(resource, error, "waiting for kubelet");
            }
            self.wait_for_kubelet(Some(error));
        }
        None
    }

    /// Takes the lock, if this daemon does not have it or no longer has it.
    fn check_lock(&mut self) {
        if self.lock.as_ref().is_some_and(Lock::is_held) {
            return;
        }
        let (resource, now) = (self.resource.name(), Instant::now());
        if self.lock.take().is_some() {
            tracing::warn!(resource, "the lock was removed; taking it again");
        }
        match self.node.transport.lock(&self.node.directory, resource) {
            Ok(lock) => {
                self.lock = Some(lock);
                if self.state.phase == Phase::WaitingForOtherDaemon {
                    tracing::info!(resource, "the other daemon no longer serves the resource");
                    self.registers_from = now + HANDOVER_DELAY;
                    self.set_phase(Phase::WaitingForKubelet, None);
                }
                self.sweep();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let holder = error.to_string();
                if self.state.phase != Phase::WaitingForOtherDaemon {
                    let hint = "run only one daemon for a resource";
                    tracing::warn!(resource, holder, hint, "waiting for another daemon");
                    self.sweep();
                }
                self.set_phase(Phase::WaitingForOtherDaemon, Some(holder));
            }
            // Without the directory, no daemon can take the lock, nor bind a socket, which is
            // reported.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let text = format!("cannot lock the resource: {error}");
                if self.log_limiter.should_log(&text, now) {
                    tracing::warn!(resource, %error, "cannot lock the resource");
                }
                // A stream that is open is still served, although the lock was lost.
                if !self.is_linked {
                    self.wait_for_kubelet(Some(text));
                }
            }
        }
    }

    fn sweep(&mut self) {
        self.sweeps.spawn(remove_stale_sockets(self.node.clone(), self.resource.clone()));
    }
}

/// Removes the sockets that processes left behind which were killed while they served or waited.
async fn remove_stale_sockets<T: Transport>(node: Arc<Node<T>>, resource: Arc<dyn Resource>) {
    for path in node.other_files() {
        if has_prefix(&resource.socket_prefix(), &path)
            && let Ok(Err(error)) = timeout(STALE_LIMIT, node.transport.connect(&path)).await
            && error.kind() == ErrorKind::ConnectionRefused
            && node.transport.remove(&path).is_ok()
        {
            tracing::info!(socket = %path.display(), "removed stale socket");
        }
    }
}
