//! Properties of a device, for people.

use devices::{Device, Health, MountOrigin, MountPlan};

/// The interfaces of a device, for people.
#[must_use]
pub fn supports(device: &Device) -> String {
    let functions = [(device.display, "display"), (device.compute, "compute")];
    let supported = functions.iter().filter(|(yes, _)| *yes).map(|(_, name)| *name);
    supported.collect::<Vec<_>>().join(", ")
}

/// The health of a device, for people.
#[must_use]
pub fn health(device: &Device) -> String {
    match device.health {
        Health::Healthy => "healthy".to_owned(),
        Health::Unhealthy(reason) => format!("unhealthy: {reason}"),
    }
}

/// How many files of `plan` a container gets, and who names them: `14 from the driver, 3 from the
/// plugin's defaults`. Empty if it gets none.
#[must_use]
pub fn mounted_files(plan: &MountPlan) -> String {
    let sources = [
        (MountOrigin::Registry, "from the driver"),
        (MountOrigin::Default, "from the plugin's defaults"),
        (MountOrigin::Configuration, "from the configuration"),
        (MountOrigin::Launcher, "of directx-visible"),
    ];
    let count = |origin| plan.mounted().filter(|file| file.origin == origin).count();
    let counts = sources.map(|(origin, source)| (count(origin), source));
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, source)| format!("{count} {source}")).collect::<Vec<_>>().join(", ")
}
