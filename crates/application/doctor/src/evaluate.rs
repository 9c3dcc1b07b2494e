//! The rules: a pure function from the facts of a node to checks.

mod causes;
mod containerd_releases;
mod device_plugin_dir;
mod hardware;
mod license;
mod plugin;
mod resources;
mod runtime_files;
mod software;
#[cfg(test)]
pub(crate) mod tests;
mod windows;

use devices::{Catalog, Criteria, DeviceSet, discover};
use host::HostSnapshot;

use crate::facts::NodeFacts;
use crate::finding::{Finding, FindingId, Subject, UNREAD};

/// What to do about a host of which nothing is advertised, as `doctor` says it about the causes.
#[must_use]
pub fn advice(set: &DeviceSet, snapshot: &HostSnapshot) -> Vec<String> {
    let causes: [&str; 5] = [
        FindingId::NoAdapter,
        FindingId::ProblemCode,
        FindingId::AdapterNotListed,
        FindingId::AdapterNotAdvertised,
        FindingId::TccMode,
    ]
    .map(Into::into);
    let devices = discover(snapshot, Criteria::ALL).devices;
    let mut findings = hardware::devices(&devices, snapshot);
    let adapters = set.not_advertised.iter();
    findings
        .extend(adapters.filter_map(|adapter| resources::not_advertised(adapter, true, snapshot)));
    findings.push(hardware::nvml(&devices, snapshot));
    let advice: Vec<String> = findings
        .into_iter()
        .filter(|finding| finding.id.is_some_and(|id| causes.contains(&id)))
        .filter_map(|Finding { object, hint, .. }| match object {
            Some(object) => Some(format!("{object}: {}", hint?)),
            None => hint,
        })
        .collect();
    if advice.is_empty() { vec![resources::nothing_advertised(set, snapshot)] } else { advice }
}

/// Evaluates every subject, in the order of [`Subject`].
pub(crate) fn evaluate(facts: &NodeFacts) -> Vec<Finding> {
    let host = &facts.snapshot.host;
    let node = &facts.snapshot.node;
    let configuration = facts.configuration.as_ref();
    let catalog = configuration.ok().map(|config| Catalog::new(config.policy.clone()));
    let mut checks = vec![
        windows::windows(host),
        windows::hcs(host, node.hcs_failure.as_ref(), &facts.configuration),
        windows::image(host, facts.image),
        software::containerd(node.containerd.as_ref(), node.kubelet.as_ref()),
        software::kubelet(node.kubelet.as_ref()),
    ];
    checks.extend(device_plugin_dir::device_plugin_dir(facts.directory.as_ref()));
    checks.extend(plugin::plugin(facts));
    checks.extend(resources::configuration(&facts.configuration));
    // Devices are checked even if the configuration does not advertise them.
    let devices = discover(&facts.snapshot, Criteria::ALL).devices;
    if let Some(failure) = &facts.unread {
        checks.push(hardware::unread(failure));
        let unknown = [Subject::RuntimeFiles, Subject::Resources, Subject::Visibility];
        checks.extend(unknown.map(|subject| subject.skipped(UNREAD)));
    } else {
        checks.extend(hardware::devices(&devices, &facts.snapshot));
        checks.extend(resources::advertised(facts, catalog.as_ref()));
        checks.push(hardware::visibility(&devices, facts));
    }
    checks.extend(resources::launcher(facts, catalog.as_ref()));
    checks.push(hardware::nvml(&devices, &facts.snapshot));
    checks.push(license::license(&devices, facts));
    checks
}
