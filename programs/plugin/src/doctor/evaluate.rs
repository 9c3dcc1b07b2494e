//! The rules: a pure function from the facts of a node to checks.

mod hardware;
mod host;
mod linux;
mod resources;
mod software;
#[cfg(test)]
pub(crate) mod tests;

use devices::Platform;

use super::facts::NodeFacts;
use super::finding::Finding;

/// Why the kubelet's directory, which no inventory contains, is not checked.
const NEVER_IN_INVENTORY: &str = "not available from an inventory; run doctor on the node";
/// Why the software of a node is not checked.
const NOT_IN_INVENTORY: &str =
    "the inventory does not contain it; run doctor on the node, or record the node again";
/// Why devices are not checked.
const NO_ADAPTERS: &str = "the adapters could not be read";

/// Evaluates every subject, in the order of [`Subject`](super::finding::Subject).
pub(crate) fn evaluate(facts: &NodeFacts) -> Vec<Finding> {
    let machine = &facts.machine;
    let mut checks = match machine.host.platform {
        Platform::LinuxDxg => linux::host(&machine.host),
        Platform::Windows => vec![
            host::windows(&machine.host),
            host::hcs(machine),
            host::image(facts),
            software::containerd(machine.software.containerd.as_ref()),
            software::kubelet(machine.software.kubelet.as_ref()),
        ],
    };
    checks.extend(software::directory(facts));
    checks.extend(resources::configuration(facts));
    checks.extend(hardware::devices(machine));
    checks.extend(hardware::runtime_files(machine));
    checks.extend(resources::resources(facts));
    checks.push(hardware::visibility(machine));
    if machine.host.platform == Platform::Windows {
        checks.extend(resources::launcher(facts));
        checks.push(hardware::nvml(machine));
    }
    checks
}
