//! The node's own software: containerd and the kubelet.

use host::{Containerd, Program};

use super::containerd_releases::{self, RECOMMENDED};
use crate::finding::{Finding, FindingId, NOT_IN_INVENTORY, Subject};

/// The first containerd whose CRI passes devices to Windows containers
/// (`WithWindowsDevices` in `pkg/cri/opts`, in v1.7.0 and in no v1.6).
const CONTAINERD_WITH_DEVICES: (u32, u32) = (1, 7);

/// The oldest supported kubelet: `HostProcess` containers are stable from there on.
const OLDEST_KUBELET: (u32, u32) = (1, 26);

/// containerd's version, whether it fits the kubelet, and whether its CRI plugin is enabled.
pub(super) fn containerd(fact: Option<&Containerd>, kubelet: Option<&Program>) -> Finding {
    let update = format!("update containerd to {RECOMMENDED} or newer");
    let Some(containerd) = fact else {
        return Subject::Containerd.skipped(NOT_IN_INVENTORY);
    };
    let (path, version) = match &containerd.program {
        Program::NotFound(places) => {
            return FindingId::ContainerdNotFound.failed(
                format!("no containerd found in {}", places.join(", ")),
                format!(
                    "install containerd {RECOMMENDED} or newer as the service `containerd`; if it is \
                     installed in another folder, add that folder to PATH and run doctor again"
                ),
            );
        }
        Program::Found { path, version: Err(why) } => {
            let what = format!("cannot determine the version of {path}: {why}");
            return FindingId::ContainerdVersionUnknown.warning(what, update);
        }
        Program::Found { path, version: Ok(version) } => (path, version),
    };
    let (major, minor) = CONTAINERD_WITH_DEVICES;
    if !version.is_at_least(major, minor) {
        let what = format!("containerd {version} ({path}) passes no devices to containers");
        return FindingId::ContainerdTooOld.failed(what, update);
    }
    let kubelet = match kubelet {
        Some(Program::Found { version: Ok(version), .. }) => Some(version),
        _ => None,
    };
    let faults = containerd_releases::faults(version, kubelet);
    match &containerd.disabled_plugins {
        Some(plugins) if plugins.iter().any(|plugin| is_cri(plugin)) => FindingId::CriDisabled
            .failed(
                format!("the CRI plugin of containerd {version} ({path}) is disabled"),
                "remove `cri` from `disabled_plugins` in config.toml and restart containerd",
            ),
        _ if !faults.is_empty() => FindingId::ContainerdRelease.warning(
            format!("containerd {version} ({path}) {}", faults.join(" and ")),
            format!("{update}; on a managed node, use a newer node image"),
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

pub(super) fn kubelet(fact: Option<&Program>) -> Finding {
    let (major, minor) = OLDEST_KUBELET;
    match fact {
        None => Subject::Kubelet.skipped(NOT_IN_INVENTORY),
        Some(Program::NotFound(places)) => {
            Subject::Kubelet.skipped(format!("no kubelet found in {}", places.join(", ")))
        }
        Some(Program::Found { path, version: Err(why) }) => {
            Subject::Kubelet.skipped(format!("cannot determine the version of {path}: {why}"))
        }
        Some(Program::Found { path, version: Ok(version) }) => {
            if version.is_at_least(major, minor) {
                return Subject::Kubelet.ok(format!("{version} ({path})"));
            }
            FindingId::KubeletTooOld.failed(
                format!("kubelet {version} ({path}) is older than {major}.{minor}"),
                format!("update the node to Kubernetes {major}.{minor} or newer"),
            )
        }
    }
}
