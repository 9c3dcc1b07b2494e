//! The Unix implementation: tokio's own sockets.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use tokio::net::{UnixListener, UnixSocket, UnixStream};

use crate::transport::Identity;
use crate::unix_sockets::socket_file::{directory_of, owned_by_another, remove_on_failure};

pub(crate) type Listener = UnixListener;
pub(crate) type Stream = UnixStream;

/// How many connections can wait for `accept`. The kubelet opens only a few.
const BACKLOG: u32 = 128;

/// Read and write access for the owner only: to a file, and to a folder.
const OWNER_ONLY: u32 = 0o600;
const OWNERS_FOLDER: u32 = 0o700;

pub(crate) fn is_supported() -> bool {
    true
}

/// Binds, restricts the mode, then listens. Before `listen`, every connection is refused, so the
/// initial mode from the umask does not matter. The umask is not changed, because it applies to the
/// whole process.
pub(crate) fn bind(path: &Path) -> io::Result<(Listener, io::Result<()>)> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let restricted = fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY));
    let listener = restricted.and_then(|()| socket.listen(BACKLOG));
    remove_on_failure(path, listener).map(|listener| (listener, Ok(())))
}

/// Whether root or the user of this process owns a file or a folder, so that no other user can
/// have put it there.
///
/// # Errors
/// Any error of the operating system.
pub fn is_trusted(path: &Path) -> io::Result<bool> {
    let owner = fs::symlink_metadata(path)?.uid();
    // Only Linux has `/proc/self`; elsewhere, the user is expected to own the directory.
    let own = fs::metadata("/proc/self").or_else(|_| fs::metadata(directory_of(path)))?.uid();
    Ok(owner == 0 || owner == own)
}

/// Gives a file or a folder to its owner and to nobody else.
///
/// # Errors
/// Neither root nor the user of this process owns it, or any error of the operating system.
pub(crate) fn restrict_to_owner(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !is_trusted(path)? {
        return Err(owned_by_another(path));
    }
    let mode = if found.is_dir() { OWNERS_FOLDER } else { OWNER_ONLY };
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Creates a folder that only its owner may use.
///
/// # Errors
/// The folder exists, or any error of the operating system.
pub(crate) fn create_folder_for_owner(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(OWNERS_FOLDER).create(path)
}

/// Opens a file to lock it. If it does not exist, it is created for its owner.
///
/// # Errors
/// Any error of the operating system.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(OWNER_ONLY).open(path)
}

pub(crate) async fn accept(listener: &Listener) -> io::Result<Stream> {
    listener.accept().await.map(|(stream, _)| stream)
}

pub(crate) async fn connect(path: &Path) -> io::Result<Stream> {
    UnixStream::connect(path).await
}

/// Device, inode and modification time. The inode is not enough: some file systems reuse an inode
/// immediately. The status change time is not suitable: it also changes with the socket's mode.
pub(crate) fn identity(path: &Path) -> io::Result<Option<Identity>> {
    match fs::symlink_metadata(path) {
        Ok(file) => Ok(Some(Identity::opened(
            [file.dev(), file.ino()],
            [file.mtime().cast_unsigned(), file.mtime_nsec().cast_unsigned()],
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
