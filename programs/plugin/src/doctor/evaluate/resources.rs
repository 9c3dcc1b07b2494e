//! The configuration, and the resources under which it advertises this host's devices.

use std::num::NonZeroU32;

use devices::{
    AdditionalMounts, Catalog, DriverModel, FIRST_BUILD_WITHOUT_MOUNTS, ModelPolicy, ResourceOffer,
    ResourceOrigin, RuntimeMounts, SkipReason, Skipped, Vendor, Wow64,
};

use config::{Config, Origin};

use super::NO_ADAPTERS;
use super::host::provides_files;
use crate::doctor::facts::{MachineFacts, NodeFacts};
use crate::doctor::finding::{Finding, Subject};

/// The configuration, the values in it that have no effect, and the mounts that this host
/// does not get.
pub(super) fn configuration(facts: &NodeFacts) -> Vec<Finding> {
    let configuration = match &facts.configuration {
        Ok(configuration) => configuration,
        Err(failure) => {
            let fix = "fix the configuration; `serve` does not start with it";
            let hint = failure.hint_text().unwrap_or(fix);
            return vec![Subject::CONFIGURATION.failed(failure.chain(), hint)];
        }
    };
    let explicit = configuration.effective.iter().filter(|value| value.origin != Origin::Default);
    let explicit: Vec<String> = explicit.map(ToString::to_string).collect();
    let what = match explicit.as_slice() {
        [] => "every value is a default".to_owned(),
        values => values.join("; "),
    };
    let mut checks = vec![Subject::CONFIGURATION.ok(what)];
    checks.extend(configuration.notices.iter().map(|notice| {
        Subject::CONFIGURATION.warning(notice, "remove what has no effect, or change it")
    }));
    checks.extend(unapplied_mounts(configuration, &facts.machine));
    checks
}

/// The files of `directx-visible` that are configured and missing.
pub(super) fn launcher(facts: &NodeFacts) -> Option<Finding> {
    let missing = &facts.machine.missing_launcher_files;
    let policy = &facts.configuration.as_ref().ok()?.policy;
    if missing.is_empty() || !Catalog::new(policy.clone()).mounts_launcher() {
        return None;
    }
    let missing = missing.join(" and ");
    Some(Subject::VISIBILITY.failed(
        format!(
            "visibility is launcher, but neither the folder of this program nor \
             %ProgramFiles%\\directx-visible has {missing}"
        ),
        "set visibility.enabled of the chart, or copy the files into one of the folders, or set \
         visibility: off; until then containers do not get directx-visible",
    ))
}

/// The additional mounts that are configured for a device of this host, and that the host
/// does not get.
fn unapplied_mounts(configuration: &Config, machine: &MachineFacts) -> Vec<Finding> {
    let mut checks = Vec::new();
    for ModelPolicy { model, container, .. } in &configuration.policy.models {
        let warning = |what: String, hint: &str| {
            Subject::CONFIGURATION.warning(what, hint).of(model.to_string())
        };
        let system32 = concerns_device(&container.additional, machine);
        let mut wow64 = concerns_device(&container.additional_wow64, machine);
        if wow64 && machine.host.wow64 == Wow64::Absent {
            wow64 = false;
            checks.push(warning(
                "additionalMountsWow64 is not applied: this host has no SysWOW64 folder".to_owned(),
                "remove additionalMountsWow64, or add the SysWOW64 folder to Windows",
            ));
        }
        let keys = match (system32, wow64) {
            (true, true) => "additionalMounts and additionalMountsWow64 are",
            (true, false) => "additionalMounts is",
            (false, true) => "additionalMountsWow64 is",
            (false, false) => continue,
        };
        if container.runtime_mounts == RuntimeMounts::Auto && provides_files(&machine.host) {
            checks.push(warning(
                format!(
                    "{keys} not applied: runtimeMounts is auto, which mounts no files from Windows \
                     build {FIRST_BUILD_WITHOUT_MOUNTS} on"
                ),
                "set `runtimeMounts: extra`, which mounts only the additional files",
            ));
        }
    }
    checks
}

/// Whether `mounts` has files for the vendor of a device of the host. Where the adapters
/// are not known, every vendor counts.
fn concerns_device(mounts: &AdditionalMounts, machine: &MachineFacts) -> bool {
    let has_device = |vendor: Vendor| {
        machine.adapters.as_ref().map_or(true, |snapshot| {
            let mut adapters = snapshot.adapters.iter();
            adapters.any(|adapter| Vendor::from_id(adapter.hardware_id.vendor) == vendor)
        })
    };
    mounts.iter().any(|(vendor, files)| !files.is_empty() && has_device(*vendor))
}

/// The resources that the kubelet gets, and the adapters that are under none.
pub(super) fn resources(facts: &NodeFacts) -> Vec<Finding> {
    let Ok(configuration) = &facts.configuration else {
        return vec![Subject::RESOURCES.skipped("the configuration is invalid")];
    };
    let Ok(snapshot) = &facts.machine.adapters else {
        return vec![Subject::RESOURCES.skipped(NO_ADAPTERS)];
    };
    let offer = Catalog::new(configuration.policy.clone()).offer(snapshot);
    let mut checks: Vec<Finding> = offer.resources.iter().map(resource).collect();
    if offer.resources.iter().all(|resource| resource.devices.is_empty()) {
        checks = vec![Subject::RESOURCES.failed(
            "no device of this host is advertised to the kubelet",
            "the lines above and below give the reason for each adapter; if no adapter is listed, \
             install the vendor's driver",
        )];
    }
    checks.extend(offer.skipped.iter().filter_map(skipped_adapter));
    checks.extend(offer.unmatched_rules.iter().map(|rule| {
        let what = "a rule of this resource matches no device of this host";
        Subject::RESOURCES
            .warning(what, "compare the rule's match with the output of `devices`")
            .of(rule.name.to_string())
    }));
    checks
}

/// One resource. An empty one is normal: few hosts have devices of both driver models.
fn resource(offer: &ResourceOffer) -> Finding {
    let name = offer.spec.name.to_string();
    let devices = offer.devices.len();
    let healthy = offer.devices.iter().filter(|(device, _)| device.health.is_healthy()).count();
    let replicas = offer.spec.sharing.replicas;
    if devices == 0 {
        let what = match offer.spec.origin {
            ResourceOrigin::Model(model) => {
                format!("capacity 0: this host has no {} device", model_name(model))
            }
            ResourceOrigin::Rule(_) => "capacity 0: no device matches its rules".to_owned(),
        };
        return Subject::RESOURCES.ok(what).of(name);
    }
    let shared = if replicas == NonZeroU32::MIN {
        String::new()
    } else {
        format!(", each shared by up to {replicas} containers")
    };
    let noun = if devices == 1 { "device" } else { "devices" };
    let what = format!("{healthy} of {devices} {noun} healthy{shared}");
    if healthy == 0 {
        let hint = "pods stay Pending until a device is healthy; see the lines about devices";
        return Subject::RESOURCES.failed(what, hint).of(name);
    }
    Subject::RESOURCES.ok(what).of(name)
}

fn model_name(model: DriverModel) -> &'static str {
    match model {
        DriverModel::Wddm => "display-and-compute (WDDM)",
        DriverModel::Mcdm => "compute-only (MCDM)",
        DriverModel::Legacy => "display",
    }
}

/// An adapter that is under no resource. Software adapters never are and have no line.
fn skipped_adapter(skipped: &Skipped) -> Option<Finding> {
    let name = match skipped.description.as_str() {
        "" => format!("adapter with LUID {}", skipped.luid),
        description => format!("{description} (LUID {})", skipped.luid),
    };
    let what = format!("not advertised: {}", skipped.reason);
    let check = match &skipped.reason {
        SkipReason::Software => return None,
        SkipReason::Integrated => {
            Subject::RESOURCES.ok(what).hint("to advertise it, set `includeIntegrated: true`")
        }
        SkipReason::Detachable => {
            Subject::RESOURCES.ok(what).hint("to advertise it, set `includeDetachable: true`")
        }
        SkipReason::NoModel(..)
        | SkipReason::Filtered(..)
        | SkipReason::Name(_)
        | SkipReason::ComputeOnlyOnLinux => Subject::RESOURCES.ok(what),
        SkipReason::NoPnpDevice => Subject::RESOURCES.warning(
            what,
            "the adapter belongs to a remote session, or its driver is being replaced; run doctor \
             again in a minute",
        ),
        SkipReason::SamePnpDevice(_) => Subject::RESOURCES
            .warning(what, "containers get the linked adapters of a board together, as one device"),
        SkipReason::NoLocationPath => Subject::RESOURCES.warning(
            what,
            "Device Manager shows no location path for it either: update the firmware, or pass \
             the device to this virtual machine as a PCI device",
        ),
        SkipReason::Unreadable(_) => Subject::RESOURCES.warning(
            what,
            "run doctor again in a minute; if the problem persists, reinstall the driver and \
             restart the host",
        ),
    };
    Some(check.of(name))
}
