//! The kubelet's device plugin directory and the socket in it.

use std::io;
use std::path::Path;
use std::time::Duration;

use command_line::error_chain;
use daemon::{DaemonError, event_loop};
use device_plugin::{Transport as _, UnixSockets};
use tokio::time::timeout;
use win32::directory_access::{Writer, directory_writers, restriction};

use crate::finding::{Finding, FindingId, Subject};

/// How long the kubelet may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

const RUN_AS: &str =
    "run as administrator, as SYSTEM or in a HostProcess container; on Linux as root";

const RESTART: &str = "check that the kubelet runs (on Windows `Get-Service kubelet`) and read its log; the plugin waits for \
     it";

/// Inspects the directory, and connects to the kubelet without sending anything.
pub(super) fn inspect(path: &Path) -> Result<[Finding; 2], DaemonError> {
    let socket = event_loop::build()?.block_on(socket(&path.join(device_plugin::KUBELET_SOCKET)));
    Ok([directory(path), socket])
}

fn directory(path: &Path) -> Finding {
    let shown = path.display().to_string();
    match std::fs::read_dir(path) {
        // The directory may be a link to another drive; the access rights there count.
        Ok(_) => access(&shown, path.canonicalize().and_then(|path| directory_writers(&path))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => FindingId::DirectoryMissing
            .failed(
                format!("{shown} does not exist"),
                format!(
                    "start the kubelet, which creates {}; if this is another directory, omit \
                 --device-plugin-dir",
                    device_plugin::default_device_plugin_dir().display()
                ),
            ),
        Err(error) => FindingId::DirectoryNotUsable.failed(
            format!("{shown} cannot be used: {}", error_chain(&error)),
            format!("{RUN_AS}; if the path is not a directory, remove it and restart the kubelet"),
        ),
    }
}

/// Who may change the directory, besides Windows and the administrators.
fn access(path: &str, writers: io::Result<Vec<Writer>>) -> Finding {
    match writers {
        Ok(writers) if writers.is_empty() => Subject::KubeletDirectory.ok(path),
        Ok(writers) => {
            let who: Vec<String> = writers.iter().map(Writer::to_string).collect();
            let command = restriction(path, true, &writers);
            let hint = format!("let only administrators and SYSTEM write to it: {command}");
            FindingId::DirectoryNotProtected.warning(format!("{path}: {}", who.join("; ")), hint)
        }
        Err(error) => FindingId::DirectoryRightsUnknown.warning(
            format!("{path}: its access rights cannot be read: {}", error_chain(&error)),
            RUN_AS,
        ),
    }
}

async fn socket(path: &Path) -> Finding {
    if !device_plugin::unix_sockets::is_supported() {
        return FindingId::NoUnixSockets.failed(
            "this host has no AF_UNIX sockets, which the kubelet and device plugins need",
            "use Windows 10 version 1803, Windows Server 2019 or newer, and check that the driver `afunix` runs \
             (`sc.exe query afunix`)",
        );
    }
    // On Windows a missing file refuses connections just as one without a listener does.
    if let Err(error) = std::fs::symlink_metadata(path)
        && error.kind() == io::ErrorKind::NotFound
    {
        return FindingId::SocketMissing.failed("the directory contains no kubelet.sock", RESTART);
    }
    let connected = timeout(CONNECT_LIMIT, UnixSockets.connect(path)).await;
    answer_of_kubelet(connected.map(|connected| connected.map(drop)).ok())
}

/// `None`: the kubelet did not answer in time.
fn answer_of_kubelet(connected: Option<io::Result<()>>) -> Finding {
    let why = match connected {
        Some(Ok(())) => return Subject::KubeletSocket.ok("the kubelet accepts connections"),
        Some(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            let why = error_chain(&error);
            let what = format!("this account may not connect to kubelet.sock: {why}");
            return FindingId::SocketNotAllowed.failed(what, RUN_AS);
        }
        Some(Err(error)) => error_chain(&error),
        None => format!("no answer within {} s", CONNECT_LIMIT.as_secs()),
    };
    let what = format!("kubelet.sock exists, but the kubelet does not respond: {why}");
    FindingId::KubeletNotResponding.failed(what, RESTART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Status;
    use win32::directory_access::writers;

    /// The status of each finding, and the start of what was found about the socket.
    fn inspected(path: &Path) -> (Status, Status, String) {
        let [directory, socket] = inspect(path).unwrap();
        assert!(directory.what.starts_with(&path.display().to_string()), "{directory:?}");
        (directory.status, socket.status, socket.what)
    }

    #[test]
    fn a_missing_directory_or_socket_is_missing() {
        if device_plugin::unix_sockets::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let none = "the directory contains no kubelet.sock".to_owned();
        let [directory, socket] = inspect(&folder.path().join("missing")).unwrap();
        assert_eq!(directory.id, Some("directory-missing"));
        assert_eq!((socket.id, socket.hint.as_deref()), (Some("socket-missing"), Some(RESTART)));
        let missing = inspected(&folder.path().join("missing"));
        assert_eq!(missing, (Status::Failed, Status::Failed, none.clone()));
        assert_eq!(inspected(folder.path()), (Status::Ok, Status::Failed, none));
    }

    #[cfg(windows)]
    #[test]
    fn the_access_rights_of_a_directory_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(directory_writers(folder.path()).is_ok());
        assert!(directory_writers(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn a_plain_file_is_neither_a_directory_nor_a_kubelet() {
        if device_plugin::unix_sockets::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubelet.sock");
        std::fs::write(&file, "").unwrap();
        let [directory, socket] = inspect(&file).unwrap();
        assert_eq!(directory.id, Some("directory-not-usable"), "{directory:?}");
        assert!(directory.what.contains(" cannot be used: "), "{directory:?}");
        // On Windows, the path of the socket looks like that of a missing file.
        let id = if cfg!(windows) { "socket-missing" } else { "kubelet-not-responding" };
        assert_eq!(socket.id, Some(id));
        let (_, socket, what) = inspected(folder.path());
        assert!(socket == Status::Failed && what.contains("does not respond"), "{what}");
    }

    #[test]
    fn a_refused_account_is_told_from_a_kubelet_that_does_not_respond() {
        let refused = |kind: io::ErrorKind| Some(Err(kind.into()));
        let silent = "kubelet.sock exists, but the kubelet does not respond: ";
        for (connected, id, what, hint) in [
            (
                refused(io::ErrorKind::PermissionDenied),
                "socket-not-allowed",
                "this account may not connect to kubelet.sock: permission denied".to_owned(),
                RUN_AS,
            ),
            (
                refused(io::ErrorKind::ConnectionRefused),
                "kubelet-not-responding",
                format!("{silent}connection refused"),
                RESTART,
            ),
            (None, "kubelet-not-responding", format!("{silent}no answer within 2 s"), RESTART),
        ] {
            let found = answer_of_kubelet(connected);
            assert_eq!((found.id, found.what), (Some(id), what));
            assert_eq!(found.hint.as_deref(), Some(hint));
        }
        assert_eq!(answer_of_kubelet(Some(Ok(()))).id, None);
    }

    #[test]
    fn a_socket_accepts_until_its_listener_closes() {
        if device_plugin::unix_sockets::skips_test() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubelet.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(async { UnixSockets.bind(&path) }).unwrap();
        let (directory, socket, _) = inspected(folder.path());
        assert_eq!((directory, socket), (Status::Ok, Status::Ok));
        drop(listener);
        // Another test may be starting a process, which holds the listener until its exec.
        let closed = || inspected(folder.path()).1 == Status::Failed;
        let pause = std::time::Duration::from_millis(20);
        assert!((0..5000).any(|_| closed() || (std::thread::sleep(pause), false).1));
    }

    #[test]
    fn only_windows_and_administrators_may_write_to_the_directory() {
        let with = |writers| access(r"C:\var\lib\kubelet\device-plugins", writers);
        assert_eq!(with(Ok(vec![])).status, Status::Ok);
        let unreadable = with(Err(io::Error::other("access is denied")));
        assert_eq!(unreadable.status, Status::Warning);
        assert!(unreadable.what.ends_with("cannot be read: access is denied"), "{unreadable:?}");
        assert_eq!(unreadable.hint.as_deref(), Some(RUN_AS));

        // A user of the host owns the directory, which has no access control list.
        let user = [1, 2, 0, 0, 0, 0, 0, 5, 21, 0, 0, 0, 7, 0, 0, 0];
        let open = with(Ok(writers(&user, None, false).unwrap()));
        assert_eq!(open.status, Status::Warning);
        assert_eq!(
            open.what,
            r"C:\var\lib\kubelet\device-plugins: S-1-5-21-7 may change the access rights; Everyone (S-1-1-0) may create files, delete files of others, delete it and change the access rights"
        );
        let hint = open.hint.unwrap();
        for command in [
            r#"`icacls "C:\var\lib\kubelet\device-plugins" /inheritance:r /grant:r "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F" /remove:g *S-1-5-21-7 *S-1-1-0`"#,
            r#"`icacls "C:\var\lib\kubelet\device-plugins" /setowner *S-1-5-32-544`"#,
        ] {
            assert!(hint.contains(command), "{hint}");
        }
    }

    /// The kubelet's device manager ignores `--root-dir`.
    #[test]
    fn the_kubelets_directory_is_fixed() {
        let hint = directory(Path::new("/missing/directory")).hint.unwrap();
        let path = device_plugin::default_device_plugin_dir().display().to_string();
        assert!(hint.contains(&path) && !hint.contains("root-dir"), "{hint}");
    }
}
