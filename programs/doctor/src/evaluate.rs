//! The rules: a pure function from the facts of a node to checks.

mod hardware;
mod host;
mod node;
mod reasons;
mod resources;
#[cfg(test)]
mod tests;

use super::check::Check;
use super::facts::NodeFacts;

/// Evaluates every subject, in the order of [`Subject`](super::check::Subject).
pub(crate) fn evaluate(facts: &NodeFacts) -> Vec<Check> {
    let machine = &facts.machine;
    let mut checks = vec![
        host::windows(&machine.host),
        host::hcs(machine),
        host::image(facts),
        node::containerd(machine.software.containerd.as_ref()),
        node::kubelet(machine.software.kubelet.as_ref()),
        node::directory(facts.directory.as_ref()),
        node::socket(facts.directory.as_ref()),
    ];
    checks.extend(resources::configuration(facts));
    checks.extend(hardware::devices(machine));
    checks.extend(hardware::runtime_files(machine));
    checks.extend(resources::resources(facts));
    checks.push(hardware::visibility(machine));
    checks.extend(resources::launcher(facts));
    checks.push(hardware::nvml(machine));
    checks
}
