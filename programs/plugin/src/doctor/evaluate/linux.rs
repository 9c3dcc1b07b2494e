//! A Linux host with `/dev/dxg`: what differs from Windows.

use devices::HostFacts;

use crate::doctor::finding::{Finding, Subject};

/// What to do if a folder with drivers is missing.
pub(super) const MOUNT: &str = "check that the virtual machine has /usr/lib/wsl (`gpuSupport` in .wslconfig), that a \
     node in a container has it too, and restart the virtual machine after an update of the driver";

/// What to do if the adapters cannot be read.
pub(super) const RESTART: &str = "restart the virtual machine (WSL2: `wsl --shutdown`); in a container, pass \
     /dev/dxg to it or make it privileged";

/// The host and its software.
pub(super) fn host(host: &HostFacts) -> Vec<Finding> {
    let product = host.product.as_deref().unwrap_or("Linux with /dev/dxg");
    let unused = [Subject::HCS, Subject::IMAGE, Subject::CONTAINERD, Subject::KUBELET];
    let unused = unused.map(|subject| subject.skipped("not checked on Linux"));
    std::iter::once(Subject::WINDOWS.skipped(product)).chain(unused).collect()
}
