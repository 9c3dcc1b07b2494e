//! What all resources of a daemon share: its locks, and the sockets that they bind.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::names::socket_name;
use crate::readiness::Readiness;
use crate::transport::{Identity, Lock, Transport};

/// What all resources of a daemon share.
pub(crate) struct Node<T: Transport> {
    pub(crate) transport: T,
    pub(crate) started: Instant,
    /// The device plugin directory.
    pub(crate) directory: PathBuf,
    pub(crate) readiness: watch::Sender<Readiness>,
    /// A random number of this daemon.
    pub(crate) instance: u64,
    /// The locks that resources need in addition to those of their names. They stay until the
    /// daemon ends: a change of the configuration must not let another daemon advertise devices
    /// that this one still advertises or may advertise again.
    locks: Mutex<BTreeMap<String, T::Lock>>,
    sockets: Mutex<OwnSockets>,
}

/// The sockets of this daemon.
#[derive(Default)]
struct OwnSockets {
    paths: BTreeSet<PathBuf>,
    /// The time in the newest name, in milliseconds.
    newest: u64,
}

impl<T: Transport> Node<T> {
    pub(crate) fn new(
        transport: T,
        directory: PathBuf,
        readiness: watch::Sender<Readiness>,
    ) -> Self {
        Node {
            transport,
            started: Instant::now(),
            directory,
            readiness,
            instance: fastrand::u64(1..),
            locks: Mutex::default(),
            sockets: Mutex::default(),
        }
    }

    /// Takes the locks `names`, unless the daemon has them: all of them or, if one of them cannot be
    /// taken, none. So a daemon that waits for one lock does not keep the others from a daemon that
    /// could use them.
    ///
    /// # Errors
    /// See [`Transport::lock`].
    pub(crate) fn take_locks(&self, names: &[String]) -> io::Result<()> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = BTreeMap::new();
        for name in names {
            if taken.contains_key(name) || locks.get(name).is_some_and(Lock::is_held) {
                continue;
            }
            if locks.remove(name).is_some() {
                tracing::warn!(lock = name, "the lock was removed; taking it again");
            }
            taken.insert(name.clone(), self.transport.lock(&self.directory, name)?);
        }
        locks.append(&mut taken);
        Ok(())
    }

    /// A path that this daemon has not used before.
    pub(crate) fn new_path(&self, prefix: &str) -> PathBuf {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut sockets = self.sockets();
        sockets.newest = u64::try_from(now).unwrap_or_default().max(sockets.newest + 1);
        self.directory.join(socket_name(prefix, sockets.newest))
    }

    /// Binds a socket.
    ///
    /// # Errors
    /// Any error of the transport.
    pub(crate) fn bind(
        self: &Arc<Self>,
        path: PathBuf,
    ) -> io::Result<(SocketFile<T>, T::Listener)> {
        let listener = self.transport.bind(&path)?;
        self.sockets().paths.insert(path.clone());
        // On a host that cannot inspect the file, any file with this name counts as the socket.
        let identity = self.transport.identity(&path).ok().flatten();
        Ok((SocketFile { node: Arc::clone(self), path, identity }, listener))
    }

    /// The files in the directory that are not sockets of this daemon.
    pub(crate) fn other_files(&self) -> Vec<PathBuf> {
        let mut files = self.transport.list(&self.directory).unwrap_or_default();
        let sockets = self.sockets();
        files.retain(|file| !sockets.paths.contains(file));
        files
    }

    fn sockets(&self) -> MutexGuard<'_, OwnSockets> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file of a socket of this daemon. Dropping it removes the file.
pub(crate) struct SocketFile<T: Transport> {
    node: Arc<Node<T>>,
    path: PathBuf,
    identity: Option<Identity>,
}

impl<T: Transport> SocketFile<T> {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether the path of the socket still leads to this socket. A socket that cannot be inspected
    /// counts as in place: replacing it would end a stream that works.
    pub(crate) fn is_in_place(&self) -> bool {
        match self.node.transport.identity(&self.path) {
            Ok(Some(found)) => self.identity.is_none_or(|known| known.is_same_file(&found)),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Removes the file, unless it was removed already.
    pub(crate) fn remove(&self) {
        if self.is_in_place()
            && let Err(error) = self.node.transport.remove(&self.path)
        {
            tracing::debug!(socket = %self.path.display(), %error, "cannot remove plugin socket");
        }
    }
}

impl<T: Transport> Drop for SocketFile<T> {
    fn drop(&mut self) {
        self.remove();
        self.node.sockets().paths.remove(&self.path);
    }
}
