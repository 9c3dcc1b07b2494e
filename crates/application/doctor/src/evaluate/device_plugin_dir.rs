//! The kubelet's device plugin directory and the socket in it.

use std::io;
use std::path::Path;

use command_line::error_chain;
use win32::directory_access::{Writer, restriction};

use crate::facts::{DirectoryAccess, DirectoryFacts, KubeletSocket};
use crate::finding::{Finding, FindingId, NOT_IN_INVENTORY, Subject};

const RUN_AS: &str =
    "run as administrator, as SYSTEM or in a HostProcess container; on Linux as root";

const RESTART: &str = "check that the kubelet runs (on Windows `Get-Service kubelet`) and read its log; the plugin waits for \
     it";

/// The directory and the socket.
pub(super) fn device_plugin_dir(facts: Option<&DirectoryFacts>) -> [Finding; 2] {
    match facts {
        Some(facts) => [directory(&facts.path, &facts.access), socket(&facts.socket)],
        None => [Subject::KubeletDirectory, Subject::KubeletSocket]
            .map(|subject| subject.skipped(NOT_IN_INVENTORY)),
    }
}

fn directory(path: &Path, access: &DirectoryAccess) -> Finding {
    let shown = path.display().to_string();
    match access {
        DirectoryAccess::Writers(writers) if writers.is_empty() => {
            Subject::KubeletDirectory.ok(shown)
        }
        DirectoryAccess::Writers(writers) => {
            let who: Vec<String> = writers.iter().map(Writer::to_string).collect();
            let command = restriction(&shown, true, writers);
            let hint = format!("let only administrators and SYSTEM write to it: {command}");
            FindingId::DirectoryNotProtected.warning(format!("{shown}: {}", who.join("; ")), hint)
        }
        DirectoryAccess::RightsUnknown(error) => FindingId::DirectoryRightsUnknown.warning(
            format!("{shown}: its access rights cannot be read: {}", error_chain(error)),
            RUN_AS,
        ),
        DirectoryAccess::NotOpened(error) if error.kind() == io::ErrorKind::NotFound => {
            // The kubelet's device manager ignores `--root-dir`.
            let default = device_plugin::default_device_plugin_dir();
            FindingId::DirectoryMissing.failed(
                format!("{shown} does not exist"),
                format!(
                    "start the kubelet, which creates {}; if this is another directory, omit \
                     --device-plugin-dir",
                    default.display()
                ),
            )
        }
        DirectoryAccess::NotOpened(error) => FindingId::DirectoryNotUsable.failed(
            format!("{shown} cannot be used: {}", error_chain(error)),
            format!("{RUN_AS}; if the path is not a directory, remove it and restart the kubelet"),
        ),
    }
}

fn socket(socket: &KubeletSocket) -> Finding {
    let why = match socket {
        KubeletSocket::NotSupported => {
            return FindingId::NoUnixSockets.failed(
                "this host has no AF_UNIX sockets, which the kubelet and device plugins need",
                "use Windows 10 version 1803, Windows Server 2019 or newer, and check that the driver `afunix` runs \
                 (`sc.exe query afunix`)",
            );
        }
        KubeletSocket::Missing => {
            let what = "the directory contains no kubelet.sock";
            return FindingId::SocketMissing.failed(what, RESTART);
        }
        KubeletSocket::Accepts => {
            return Subject::KubeletSocket.ok("the kubelet accepts connections");
        }
        KubeletSocket::Refused(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let why = error_chain(error);
            let what = format!("this account may not connect to kubelet.sock: {why}");
            return FindingId::SocketNotAllowed.failed(what, RUN_AS);
        }
        KubeletSocket::Refused(error) => error_chain(error),
        KubeletSocket::NoAnswer(limit) => format!("no answer within {} s", limit.as_secs()),
    };
    let what = format!("kubelet.sock exists, but the kubelet does not respond: {why}");
    FindingId::KubeletNotResponding.failed(what, RESTART)
}
