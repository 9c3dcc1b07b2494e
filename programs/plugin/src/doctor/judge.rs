//! The verdicts: a pure function from what was seen to what it means.

mod hardware;
mod host;
mod node;
mod offer;
#[cfg(test)]
mod tests;

use super::check::Check;
use super::observed::Observed;

/// Why something of a live machine was not looked at.
const RECORDED: &str = "a recording does not tell; run doctor on the node";
/// Why devices were not looked at.
const NO_ADAPTERS: &str = "the adapters could not be read";

/// Judges everything, in the order of `Subject` (see [`super::check`]).
pub(crate) fn judge(seen: &Observed) -> Vec<Check> {
    let machine = &seen.machine;
    let mut checks = vec![
        host::windows(&machine.host),
        host::hcs(machine),
        host::image(seen),
        node::containerd(&machine.containerd),
        node::kubelet(&machine.kubelet),
        node::directory(&seen.directory),
        node::socket(&seen.directory),
    ];
    checks.extend(offer::configuration(&seen.configuration));
    checks.extend(hardware::devices(machine));
    checks.extend(hardware::runtime_files(machine));
    checks.extend(offer::resources(seen));
    checks.push(hardware::visibility(machine));
    checks.push(hardware::nvml(machine));
    checks
}
