//! The rules: a pure function from the facts of a node to checks.

mod hardware;
mod host;
mod node;
mod reasons;
mod resources;
#[cfg(test)]
pub(crate) mod tests;

use super::facts::NodeFacts;
use super::finding::Finding;

/// Evaluates every subject, in the order of [`Subject`](super::finding::Subject).
pub(crate) fn evaluate(facts: &NodeFacts) -> Vec<Finding> {
    let machine = &facts.machine;
    let mut checks = vec![
        host::windows(&machine.host),
        host::hcs(machine),
        host::image(facts),
        node::containerd(machine.software.containerd.as_ref()),
        node::kubelet(machine.software.kubelet.as_ref()),
    ];
    checks.extend(node::directory(facts));
    checks.extend(resources::configuration(facts));
    checks.extend(hardware::devices(machine));
    checks.extend(hardware::runtime_files(machine));
    checks.extend(resources::resources(facts));
    checks.push(hardware::visibility(machine));
    checks.extend(resources::launcher(facts));
    checks.push(hardware::nvml(machine));
    checks
}
