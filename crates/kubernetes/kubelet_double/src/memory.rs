//! Sockets in memory, for hosts without `AF_UNIX` and for tests with a paused clock.
//!
//! As in a file system, the name of a socket stays after its listener is closed. Connections to it
//! are refused then.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use device_plugin::{Identity, Listener, Lock, Transport, UnixSockets};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

/// The size of the buffer in each direction of a connection, in bytes.
const BUFFER: usize = 64 * 1024;

/// How many connections can wait to be accepted (`SOMAXCONN` of older Linux kernels).
const BACKLOG: usize = 128;

/// A host on which a kubelet can run.
pub trait KubeletHost: Transport {
    /// Creates a directory and its parents.
    ///
    /// # Errors
    /// Any error of the operating system, except that the directory exists.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
}

impl KubeletHost for UnixSockets {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }
}

/// A host in memory, with directories and sockets. Clones refer to the same host.
#[derive(Clone, Debug, Default)]
pub struct InMemory(Arc<Mutex<MemoryFiles>>);

#[derive(Debug, Default)]
struct MemoryFiles {
    directories: BTreeSet<PathBuf>,
    sockets: BTreeMap<PathBuf, MemorySocket>,
    locks: BTreeMap<PathBuf, Arc<()>>,
    created: u64,
    bind_error: Option<io::ErrorKind>,
    inspection: Inspection,
}

/// What the identity of a file is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inspection {
    /// Files can be opened, and have a number.
    #[default]
    Opens,
    /// Files cannot be opened. Only their entries in the directory are known.
    Lists,
    /// Files can be neither opened nor inspected.
    Fails(io::ErrorKind),
}

#[derive(Debug)]
struct MemorySocket {
    created: u64,
    backlog: mpsc::Sender<DuplexStream>,
}

impl InMemory {
    /// Creates a host without directories.
    #[must_use]
    pub fn new() -> Self {
        InMemory::default()
    }

    /// Removes a directory and its contents, as `rm -r` does. Listeners stay open.
    pub fn remove_directory(&self, path: &Path) {
        let mut files = self.files();
        files.directories.retain(|directory| !directory.starts_with(path));
        files.sockets.retain(|socket, _| !socket.starts_with(path));
        files.locks.retain(|lock, _| !lock.starts_with(path));
    }

    /// From now on, every bind fails with this error (for example for a full disk or a read-only
    /// directory), or no longer fails.
    pub fn fail_binds(&self, error: Option<io::ErrorKind>) {
        self.files().bind_error = error;
    }

    /// Sets how files can be inspected from now on.
    pub fn set_inspection(&self, inspection: Inspection) {
        self.files().inspection = inspection;
    }

    fn files(&self) -> MutexGuard<'_, MemoryFiles> {
        // Every change under this lock is complete, so a poisoned lock still holds a valid state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for InMemory {
    type Stream = DuplexStream;
    type Listener = MemoryListener;
    type Lock = MemoryLock;

    fn bind(&self, path: &Path) -> io::Result<MemoryListener> {
        let mut files = self.files();
        if let Some(error) = files.bind_error {
            return Err(error.into());
        }
        if !path.parent().is_some_and(|directory| files.directories.contains(directory)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if files.sockets.contains_key(path) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (backlog, connections) = mpsc::channel(BACKLOG);
        files.created += 1;
        let created = files.created;
        files.sockets.insert(path.to_owned(), MemorySocket { created, backlog });
        Ok(MemoryListener(connections))
    }

    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<DuplexStream>> + Send {
        let backlog = self.files().sockets.get(path).map(|socket| socket.backlog.clone());
        async move {
            let (client, server) = tokio::io::duplex(BUFFER);
            match backlog.ok_or(io::ErrorKind::NotFound)?.send(server).await {
                Ok(()) => Ok(client),
                Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        }
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        let files = self.files();
        let Some(created) = files.sockets.get(path).map(|socket| socket.created) else {
            return Ok(None);
        };
        match files.inspection {
            Inspection::Opens => Ok(Some(Identity::opened([0, created], [created, 0]))),
            Inspection::Lists => Ok(Some(Identity::listed([created, 0]))),
            Inspection::Fails(error) => Err(error.into()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut files = self.files();
        let removed = files.sockets.remove(path);
        removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<MemoryLock> {
        let mut files = self.files();
        let path = directory.join("locks").join(name);
        if !files.directories.contains(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if files.locks.contains_key(&path) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "another plugin has the lock"));
        }
        let lock = MemoryLock(self.clone(), path, Arc::default());
        files.locks.insert(lock.1.clone(), lock.2.clone());
        Ok(lock)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.files();
        if !files.directories.contains(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let sockets = files.sockets.keys().filter(|path| path.parent() == Some(directory));
        Ok(sockets.cloned().collect())
    }
}

/// A lock that another plugin on the host cannot take.
#[derive(Debug)]
pub struct MemoryLock(InMemory, PathBuf, Arc<()>);

impl Lock for MemoryLock {
    fn is_held(&self) -> bool {
        self.0.files().locks.get(&self.1).is_some_and(|lock| Arc::ptr_eq(lock, &self.2))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        if self.is_held() {
            self.0.files().locks.remove(&self.1);
        }
    }
}

impl KubeletHost for InMemory {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.files().directories.insert(path.to_owned());
        Ok(())
    }
}

/// The listener of a socket in memory.
#[derive(Debug)]
pub struct MemoryListener(mpsc::Receiver<DuplexStream>);

impl Listener for MemoryListener {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        match self.0.recv().await {
            Some(stream) => Ok(stream),
            // The name was removed. As on a real host, no connection arrives and `accept` waits.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn host() -> (InMemory, PathBuf) {
        let host = InMemory::new();
        host.create_directory(Path::new("/plugins")).unwrap();
        (host, PathBuf::from("/plugins/a.sock"))
    }

    #[tokio::test]
    async fn transfers_bytes_in_both_directions() {
        let (host, path) = host();
        let mut listener = host.bind(&path).unwrap();
        let mut client = host.connect(&path).await.unwrap();
        let mut server = listener.accept().await.unwrap();
        client.write_all(b"ping").await.unwrap();
        server.write_all(b"pong").await.unwrap();
        let mut received = [0; 4];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"ping");
        client.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"pong");
    }

    #[tokio::test]
    async fn name_and_listener_can_outlive_each_other() {
        let (host, path) = host();
        let kind = |error: io::Error| error.kind();
        assert_eq!(host.connect(&path).await.map_err(kind).err(), Some(io::ErrorKind::NotFound));
        drop(host.bind(&path).unwrap());
        let first = host.identity(&path).unwrap();
        let refused = host.connect(&path).await.map_err(kind).err();
        assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
        assert_eq!(host.bind(&path).map_err(kind).err(), Some(io::ErrorKind::AddrInUse));
        host.remove(&path).unwrap();
        let _listener = host.bind(&path).unwrap();
        assert_ne!(host.identity(&path).unwrap(), first);
        host.remove_directory(Path::new("/plugins"));
        assert_eq!(host.identity(&path).unwrap(), None);
        assert_eq!(host.bind(&path).map_err(kind).err(), Some(io::ErrorKind::NotFound));
    }
}
