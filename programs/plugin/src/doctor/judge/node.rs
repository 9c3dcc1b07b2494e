//! The node's own software: containerd, the kubelet, its directory and its socket.

use super::RECORDED;
use crate::doctor::check::{Check, Subject};
use crate::doctor::observed::{Containerd, Directory, DirectoryState, Program, Seen, SocketState};

/// The first containerd whose CRI hands devices to Windows containers
/// (`WithWindowsDevices` in `pkg/cri/opts`, in v1.7.0 and in no v1.6).
const CONTAINERD_WITH_DEVICES: (u32, u32) = (1, 7);

/// The first kubelet that has a device manager on Windows
/// (`pkg/kubelet/cm/container_manager_windows.go`, in v1.21 and not in v1.20).
const KUBELET_WITH_DEVICES: (u32, u32) = (1, 21);

/// containerd's version, and whether it serves the kubelet at all.
pub(super) fn containerd(seen: &Seen<Containerd>) -> Check {
    const UPDATE: &str = "update containerd to 1.7 or newer";
    let Seen::Looked(containerd) = seen else { return Subject::Containerd.not_checked(RECORDED) };
    let (path, version) = match &containerd.program {
        Program::NotFound(places) => {
            return Subject::Containerd.problem(
                format!("no containerd found in {}", places.join(", ")),
                "install containerd 1.7 or newer as the service `containerd`; if there is one \
                 elsewhere, put its folder into PATH and run doctor again",
            );
        }
        Program::Found { path, version: Err(why) } => {
            let what = format!("{path} does not tell its version: {why}");
            return Subject::Containerd.warning(what, UPDATE);
        }
        Program::Found { path, version: Ok(version) } => (path, version),
    };
    let (major, minor) = CONTAINERD_WITH_DEVICES;
    if !version.is_at_least(major, minor) {
        let what = format!("containerd {version} ({path}) hands no device to a container");
        return Subject::Containerd.problem(what, UPDATE);
    }
    match &containerd.disabled {
        Some(plugins) if plugins.iter().any(|plugin| is_cri(plugin)) => Subject::Containerd
            .problem(
                format!("containerd {version} ({path}) has its CRI plugin turned off"),
                "take `cri` out of `disabled_plugins` in its config.toml and restart it",
            ),
        Some(_) => Subject::Containerd
            .ok(format!("{version} ({path}): its CRI hands devices to containers")),
        None => Subject::Containerd.ok(format!(
            "{version} ({path}): its CRI hands devices to containers; whether its configuration \
             turns the CRI off could not be read"
        )),
    }
}

/// Whether a plugin's name is that of the CRI: `cri`, `io.containerd.grpc.v1.cri`,
/// `io.containerd.cri.v1.runtime` and the like.
fn is_cri(plugin: &str) -> bool {
    plugin.split('.').any(|part| part == "cri")
}

/// The kubelet's version.
pub(super) fn kubelet(seen: &Seen<Program>) -> Check {
    let (major, minor) = KUBELET_WITH_DEVICES;
    match seen {
        Seen::Recorded => Subject::Kubelet.not_checked(RECORDED),
        Seen::Looked(Program::NotFound(places)) => {
            Subject::Kubelet.not_checked(format!("no kubelet found in {}", places.join(", ")))
        }
        Seen::Looked(Program::Found { path, version: Err(why) }) => {
            Subject::Kubelet.not_checked(format!("{path} does not tell its version: {why}"))
        }
        Seen::Looked(Program::Found { path, version: Ok(version) }) => {
            if version.is_at_least(major, minor) {
                return Subject::Kubelet.ok(format!("{version} ({path})"));
            }
            Subject::Kubelet.problem(
                format!("kubelet {version} ({path}) takes no device plugins on Windows"),
                format!("update the node to Kubernetes {major}.{minor} or newer"),
            )
        }
    }
}

/// The kubelet's device plugin directory.
pub(super) fn directory(seen: &Seen<Directory>) -> Check {
    let Seen::Looked(directory) = seen else {
        return Subject::KubeletDirectory.not_checked(RECORDED);
    };
    let path = &directory.path;
    match &directory.state {
        DirectoryState::Present => Subject::KubeletDirectory.ok(path),
        DirectoryState::Missing => Subject::KubeletDirectory.problem(
            format!("{path} does not exist"),
            "start the kubelet, which makes it; if the kubelet runs with another --root-dir, give \
             `serve` and `doctor` its device-plugins folder with --device-plugin-dir",
        ),
        DirectoryState::Unusable(why) => Subject::KubeletDirectory.problem(
            format!("{path} cannot be used: {why}"),
            "run as administrator, SYSTEM or in a HostProcess container; if something else lies \
             there, remove it and restart the kubelet",
        ),
    }
}

/// The kubelet's socket.
pub(super) fn socket(seen: &Seen<Directory>) -> Check {
    const RESTART: &str = "see whether the kubelet runs (`Get-Service kubelet`) and read its log; \
         the plugin itself waits for it";
    let Seen::Looked(directory) = seen else { return Subject::KubeletSocket.not_checked(RECORDED) };
    match &directory.socket {
        SocketState::Answers => Subject::KubeletSocket.ok("the kubelet takes connections"),
        SocketState::Missing => {
            Subject::KubeletSocket.problem("there is no kubelet.sock in the directory", RESTART)
        }
        SocketState::Dead(why) => Subject::KubeletSocket
            .problem(format!("kubelet.sock is there and nobody answers: {why}"), RESTART),
        SocketState::Denied(why) => Subject::KubeletSocket.problem(
            format!("this account may not connect to kubelet.sock: {why}"),
            "run as administrator, SYSTEM or in a HostProcess container",
        ),
        SocketState::Unsupported => Subject::KubeletSocket.problem(
            "this host has no AF_UNIX sockets, through which plugins and kubelet talk",
            "use Windows Server 2019 or newer, and see whether the driver `afunix` runs \
             (`sc.exe query afunix`)",
        ),
    }
}
