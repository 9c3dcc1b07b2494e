//! The checks of what no event announces: the files of the sockets, and the locks.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::RegisteredResource;
use super::reason::NewSocketReason;
use crate::names::{KUBELET_SOCKET, has_prefix};
use crate::node::Node;
use crate::resource::Resource;
use crate::retry::FailureKind;
use crate::status::Phase;
use crate::transport::{Identity, Lock, Transport};

/// How long to wait after another daemon freed a lock before registering. When the stream of the
/// other daemon ends, the kubelet removes whatever is registered under the name of the resource.
/// This daemon cannot observe when that has happened.
const HANDOVER_DELAY: Duration = Duration::from_millis(500);

/// How long a kubelet may be absent before the log warns. A restart takes some seconds.
const ABSENCE_LIMIT: Duration = Duration::from_secs(30);

/// How long to wait for a process to accept a connection. A stale socket refuses it at once.
const STALE_LIMIT: Duration = Duration::from_secs(1);

impl<T: Transport> RegisteredResource<T> {
    /// Checks the sockets and the locks. Returns the kubelet's socket, if it exists, or why the
    /// resource needs a new socket.
    pub(super) fn check(&mut self) -> Result<Option<Identity>, NewSocketReason> {
        let found = self.find_kubelet();
        self.check_locks();
        self.publish();
        // If a stream stayed open, its end would later remove the registration of the other daemon.
        if self.kubelet_may_hold_stream && self.state.phase == Phase::WaitingForOtherDaemon {
            return Err(NewSocketReason::LockLost);
        }
        if let Some(found) = found
            && self.kubelet_may_hold_stream
            && !self.kubelet.is_some_and(|known| known.is_same_file(&found))
        {
            return Err(NewSocketReason::KubeletReplaced);
        }
        let is_in_place = self.socket.as_ref().is_some_and(|socket| socket.file.is_in_place());
        if !is_in_place {
            if found.is_some() || !self.has_stream() {
                return Err(NewSocketReason::SocketLost);
            }
            // An open stream works without the socket's file. It is kept while there is no kubelet
            // that could register a new socket; probes and `status` need one anyway.
            self.bind_beside_stream();
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
            let resource = self.resource.name();
            let now = Instant::now();
            let since = *self.absent_since.get_or_insert_with(|| {
                tracing::info!(resource, error, "waiting for kubelet");
                now
            });
            if now >= since + ABSENCE_LIMIT
                && self.log_limiter.should_log(FailureKind::KubeletAbsent, now)
            {
                tracing::warn!(resource, error, "waiting for kubelet");
            }
            self.wait_for_kubelet(Some(error));
        }
        None
    }

    /// Takes the locks that this daemon does not have or no longer has.
    fn check_locks(&mut self) {
        let had_locks = self.lock.is_some();
        let taken = self.take_locks();
        let resource = self.resource.name();
        let now = Instant::now();
        match taken {
            Ok(()) => {
                if self.state.phase == Phase::WaitingForOtherDaemon {
                    tracing::info!(resource, "no longer waiting for another daemon");
                    self.handover_ends = now + HANDOVER_DELAY;
                    self.set_phase(Phase::WaitingForKubelet, None);
                }
                if !had_locks {
                    self.sweep();
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let holder = error.to_string();
                if self.state.phase != Phase::WaitingForOtherDaemon {
                    let hint = "run only one daemon for a resource and for its devices";
                    tracing::warn!(resource, holder, hint, "waiting for another daemon");
                    self.sweep();
                }
                self.set_phase(Phase::WaitingForOtherDaemon, Some(holder));
            }
            // Without the directory, no daemon can take the lock. No socket can be bound either,
            // which the log reports.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let text = format!("cannot lock the resource: {error}");
                if self.log_limiter.should_log(FailureKind::Lock(error.kind()), now) {
                    tracing::warn!(resource, %error, "cannot lock the resource");
                }
                // An open stream is still served, although the lock was lost.
                if !self.kubelet_may_hold_stream {
                    self.wait_for_kubelet(Some(text));
                }
            }
        }
    }

    /// Takes the locks that the resource shares with others, then the lock of its name. Without the
    /// shared ones it does not keep the lock of its name, which the daemon that has them needs.
    fn take_locks(&mut self) -> io::Result<()> {
        if let Err(error) = self.node.take_locks(&self.resource.locks()) {
            self.lock = None;
            return Err(error);
        }
        if self.lock.as_ref().is_some_and(Lock::is_held) {
            return Ok(());
        }
        let resource = self.resource.name();
        if self.lock.take().is_some() {
            tracing::warn!(resource, "the lock was removed; taking it again");
        }
        self.lock = Some(self.node.transport.lock(&self.node.directory, resource)?);
        Ok(())
    }

    fn sweep(&mut self) {
        self.sweeps.spawn(remove_stale_sockets(self.node.clone(), self.resource.clone()));
    }
}

/// Removes the sockets of processes that were killed.
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
