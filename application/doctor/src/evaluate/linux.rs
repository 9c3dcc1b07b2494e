//! A Linux host with `/dev/dxg`: what differs from Windows.

use devices::HostFacts;

use crate::finding::{Finding, Subject};

/// What to do about a driver that is too old or whose folder is missing.
pub(super) const UPDATE_OR_MOUNT: &str = "update the driver on the Windows host, and restart the virtual machine (`wsl --shutdown`; in Hyper-V, copy \
     its folder again); check that it has /usr/lib/wsl (`[gpu]` in /etc/wsl.conf), and a node in a container too";

/// What to do if the adapters cannot be read.
pub(super) const UNREAD: &str = "install the GPU vendor's driver on the Windows host, check `gpuSupport` in .wslconfig or the GPU \
     partition, and restart the virtual machine (WSL2: `wsl --shutdown`); in a container, pass /dev/dxg to it or \
     make it privileged";

/// The host and its software.
pub(super) fn host(host: &HostFacts) -> Vec<Finding> {
    let product = host.product.as_deref().unwrap_or("Linux with /dev/dxg");
    let mut findings = vec![Subject::WINDOWS.skipped(format!("this host runs {product}"))];
    for subject in [Subject::HCS, Subject::IMAGE, Subject::CONTAINERD, Subject::KUBELET] {
        findings.push(subject.skipped("checked only on Windows"));
    }
    findings
}
