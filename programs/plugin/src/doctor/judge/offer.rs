//! The configuration, and what it makes of this host's devices.

use std::num::NonZeroU32;

use devices::{Catalog, DriverModel, ResourceOffer, ResourceOrigin, SkipReason, Skipped};

use super::NO_ADAPTERS;
use crate::doctor::check::{Check, Subject};
use crate::doctor::observed::{Complaint, Configuration, Observed};

/// The configuration.
pub(super) fn configuration(seen: &Result<Configuration, Complaint>) -> Vec<Check> {
    let configuration = match seen {
        Ok(configuration) => configuration,
        Err(Complaint { what, advice }) => {
            let advice = advice.as_deref().unwrap_or("mend it: `serve` refuses to start with it");
            return vec![Subject::Configuration.problem(what, advice)];
        }
    };
    let what = match configuration.set.as_slice() {
        [] => "nothing is set: defaults".to_owned(),
        set => set.join("; "),
    };
    let mut checks = vec![Subject::Configuration.ok(what)];
    checks.extend(configuration.notices.iter().map(|notice| {
        Subject::Configuration.warning(notice, "remove what has no effect, or change it")
    }));
    checks
}

/// What is offered to the kubelet, and what is not.
pub(super) fn resources(seen: &Observed) -> Vec<Check> {
    let Ok(configuration) = &seen.configuration else {
        return vec![Subject::Resources.not_checked("the configuration cannot be used")];
    };
    let Ok(snapshot) = &seen.machine.adapters else {
        return vec![Subject::Resources.not_checked(NO_ADAPTERS)];
    };
    let offer = Catalog::new(configuration.policy.clone()).offer(snapshot);
    let mut checks: Vec<Check> = offer.resources.iter().map(resource).collect();
    if offer.resources.iter().all(|resource| resource.devices.is_empty()) {
        checks = vec![Subject::Resources.problem(
            "no device of this host is offered to the kubelet",
            "the lines above and below say why for each adapter; without any adapter there, \
             install the vendor's driver",
        )];
    }
    checks.extend(offer.skipped.iter().filter_map(left_out));
    checks.extend(offer.unmatched_rules.iter().map(|rule| {
        let what = "one of its rules matches no device of this host";
        Subject::Resources
            .warning(what, "compare the rule's match with what `devices` prints")
            .of(rule.name.to_string())
    }));
    checks
}

/// One resource. An empty one is normal: few hosts have devices of both models.
fn resource(offer: &ResourceOffer) -> Check {
    let name = offer.spec.name.to_string();
    let devices = offer.devices.len();
    let healthy = offer.devices.iter().filter(|(device, _)| device.health.is_healthy()).count();
    let per_device = offer.spec.sharing.replicas;
    if devices == 0 {
        let what = match offer.spec.origin {
            ResourceOrigin::Model(model) => {
                format!("capacity 0: this host has no {} device for it", model_words(model))
            }
            ResourceOrigin::Rule(_) => "capacity 0: no device matches its rules".to_owned(),
        };
        return Subject::Resources.ok(what).of(name);
    }
    let shared = if per_device == NonZeroU32::MIN {
        String::new()
    } else {
        format!(", each shared by {per_device} containers")
    };
    let of = if devices == 1 { "device" } else { "devices" };
    let what = format!("{healthy} of {devices} {of} healthy{shared}");
    if healthy == 0 {
        let advice = "pods stay Pending until a device recovers; the lines about devices say how";
        return Subject::Resources.problem(what, advice).of(name);
    }
    Subject::Resources.ok(what).of(name)
}

fn model_words(model: DriverModel) -> &'static str {
    match model {
        DriverModel::Wddm => "display-and-compute (WDDM)",
        DriverModel::Mcdm => "compute-only (MCDM)",
        DriverModel::Legacy => "display",
    }
}

/// An adapter that is under no resource. That a software adapter is not is no news.
fn left_out(skipped: &Skipped) -> Option<Check> {
    let name = match skipped.description.as_str() {
        "" => format!("adapter with LUID {}", skipped.luid),
        description => format!("{description} (LUID {})", skipped.luid),
    };
    let what = format!("not offered: {}", skipped.reason);
    let check = match &skipped.reason {
        SkipReason::Software => return None,
        SkipReason::Integrated => {
            Subject::Resources.ok(what).advise("to offer it, configure `includeIntegrated: true`")
        }
        SkipReason::Detachable => {
            Subject::Resources.ok(what).advise("to offer it, configure `includeDetachable: true`")
        }
        SkipReason::NoModel(..) | SkipReason::Filtered(..) | SkipReason::Name(_) => {
            Subject::Resources.ok(what)
        }
        SkipReason::NoPnpDevice => Subject::Resources.warning(
            what,
            "an adapter without a device of this host is a remote session's or a driver that is \
             being replaced; look again in a minute",
        ),
        SkipReason::SamePnpDevice(_) => Subject::Resources
            .warning(what, "linked adapters of one board are given together, as one device"),
        SkipReason::NoLocationPath => Subject::Resources.warning(
            what,
            "Device Manager shows no location path for it either: update the firmware, or pass \
             the device to this virtual machine as a PCI device",
        ),
        SkipReason::Unreadable(_) => Subject::Resources
            .warning(what, "look again in a minute; if it stays, reinstall its driver and restart"),
    };
    Some(check.of(name))
}
