//! The node's own software: containerd, the kubelet, its directory and its socket.

use devices::{Containerd, Program};
use win32::directory_access::{Writer, restriction};

use super::reasons::{NEVER_IN_INVENTORY, NOT_IN_INVENTORY};
use crate::check::{Check, Subject};
use crate::facts::{Directory, DirectoryState, SocketState};

/// The first containerd whose CRI passes devices to Windows containers
/// (`WithWindowsDevices` in `pkg/cri/opts`, in v1.7.0 and in no v1.6).
const CONTAINERD_WITH_DEVICES: (u32, u32) = (1, 7);

/// The oldest supported kubelet: `HostProcess` containers are stable from there on.
const OLDEST_KUBELET: (u32, u32) = (1, 26);

/// containerd's version, and whether its CRI plugin is enabled.
pub(super) fn containerd(fact: Option<&Containerd>) -> Check {
    const UPDATE: &str = "update containerd to 1.7 or newer";
    let Some(containerd) = fact else {
        return Subject::Containerd.not_checked(NOT_IN_INVENTORY);
    };
    let (path, version) = match &containerd.program {
        Program::NotFound(places) => {
            return Subject::Containerd.problem(
                format!("no containerd found in {}", places.join(", ")),
                "install containerd 1.7 or newer as the service `containerd`; if it is installed in \
                 another folder, add that folder to PATH and run doctor again",
            );
        }
        Program::Found { path, version: Err(why) } => {
            let what = format!("cannot determine the version of {path}: {why}");
            return Subject::Containerd.warning(what, UPDATE);
        }
        Program::Found { path, version: Ok(version) } => (path, version),
    };
    let (major, minor) = CONTAINERD_WITH_DEVICES;
    if !version.is_at_least(major, minor) {
        let what = format!("containerd {version} ({path}) passes no devices to containers");
        return Subject::Containerd.problem(what, UPDATE);
    }
    match &containerd.disabled_plugins {
        Some(plugins) if plugins.iter().any(|plugin| is_cri(plugin)) => Subject::Containerd
            .problem(
                format!("the CRI plugin of containerd {version} ({path}) is disabled"),
                "remove `cri` from `disabled_plugins` in config.toml and restart containerd",
            ),
        Some(_) => {
            Subject::Containerd.ok(format!("{version} ({path}) passes devices to containers"))
        }
        None => Subject::Containerd.ok(format!(
            "{version} ({path}) passes devices to containers; whether its configuration disables \
             the CRI plugin is unknown"
        )),
    }
}

/// Whether the name of a plugin is that of the CRI: `cri`, `io.containerd.grpc.v1.cri`,
/// `io.containerd.cri.v1.runtime` and the like.
fn is_cri(plugin: &str) -> bool {
    plugin.split('.').any(|part| part == "cri")
}

/// The kubelet's version.
pub(super) fn kubelet(fact: Option<&Program>) -> Check {
    let (major, minor) = OLDEST_KUBELET;
    match fact {
        None => Subject::Kubelet.not_checked(NOT_IN_INVENTORY),
        Some(Program::NotFound(places)) => {
            Subject::Kubelet.not_checked(format!("no kubelet found in {}", places.join(", ")))
        }
        Some(Program::Found { path, version: Err(why) }) => {
            Subject::Kubelet.not_checked(format!("cannot determine the version of {path}: {why}"))
        }
        Some(Program::Found { path, version: Ok(version) }) => {
            if version.is_at_least(major, minor) {
                return Subject::Kubelet.ok(format!("{version} ({path})"));
            }
            Subject::Kubelet.problem(
                format!("kubelet {version} ({path}) is older than {major}.{minor}"),
                format!("update the node to Kubernetes {major}.{minor} or newer"),
            )
        }
    }
}

/// The kubelet's device plugin directory.
pub(super) fn directory(fact: Option<&Directory>) -> Check {
    let Some(directory) = fact else {
        return Subject::KubeletDirectory.not_checked(NEVER_IN_INVENTORY);
    };
    let path = &directory.path;
    match &directory.state {
        DirectoryState::Present => access(path, directory.writers.as_ref()),
        DirectoryState::Missing => Subject::KubeletDirectory.problem(
            format!("{path} does not exist"),
            "start the kubelet, which creates \\var\\lib\\kubelet\\device-plugins on the system drive; if \
             this is another directory, omit --device-plugin-dir",
        ),
        DirectoryState::Unusable(why) => Subject::KubeletDirectory.problem(
            format!("{path} cannot be used: {why}"),
            "run as administrator, as SYSTEM or in a HostProcess container; if the path is not a \
             directory, remove it and restart the kubelet",
        ),
    }
}

/// Who may change the directory.
fn access(path: &str, writers: Option<&Result<Vec<Writer>, String>>) -> Check {
    match writers {
        Some(Ok(writers)) if !writers.is_empty() => {
            let who: Vec<String> = writers.iter().map(Writer::to_string).collect();
            let command = restriction(path, true, writers);
            let hint = format!("let only administrators and SYSTEM write to it: {command}");
            Subject::KubeletDirectory.warning(format!("{path}: {}", who.join("; ")), hint)
        }
        Some(Err(why)) => Subject::KubeletDirectory.warning(
            format!("{path}: its access rights cannot be read: {why}"),
            "run as administrator, as SYSTEM or in a HostProcess container",
        ),
        Some(Ok(_)) | None => Subject::KubeletDirectory.ok(path),
    }
}

/// The kubelet's socket.
pub(super) fn socket(fact: Option<&Directory>) -> Check {
    const RESTART: &str = "check that the kubelet runs (`Get-Service kubelet`) and read its log; \
         the plugin waits for it";
    let Some(directory) = fact else {
        return Subject::KubeletSocket.not_checked(NEVER_IN_INVENTORY);
    };
    match &directory.socket {
        SocketState::Accepting => Subject::KubeletSocket.ok("the kubelet accepts connections"),
        SocketState::Missing => {
            Subject::KubeletSocket.problem("the directory contains no kubelet.sock", RESTART)
        }
        SocketState::NotResponding(why) => Subject::KubeletSocket.problem(
            format!("kubelet.sock exists, but the kubelet does not respond: {why}"),
            RESTART,
        ),
        SocketState::AccessDenied(why) => Subject::KubeletSocket.problem(
            format!("this account may not connect to kubelet.sock: {why}"),
            "run as administrator, as SYSTEM or in a HostProcess container",
        ),
        SocketState::Unsupported => Subject::KubeletSocket.problem(
            "this host has no AF_UNIX sockets, which the kubelet and device plugins need",
            "use Windows 10 version 1803, Windows Server 2019 or newer, and check that the driver `afunix` runs \
             (`sc.exe query afunix`)",
        ),
    }
}
