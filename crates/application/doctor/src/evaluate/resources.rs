//! The configuration, and the resources under which it advertises this host's devices.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use command_line::error_chain;
use config::{Config, ConfigError};
use daemon::cordon_file;
use devices::{
    Catalog, Cordons, DeviceSet, Filter, Luid, Moment, ResourceDevices, ResourceOrigin, SkipReason,
    Skipped,
};

use super::hardware::is_gpu;
use super::runtime_files::runtime_files;
use crate::collect::NodeFacts;
use crate::finding::{Finding, Subject, number_of};

/// The configuration with its files and variables, and the values in it that have no effect.
pub(super) fn configuration(configuration: &Result<Config, ConfigError>) -> Vec<Finding> {
    let configuration = match configuration {
        Ok(configuration) => configuration,
        Err(error) => {
            let fix = "fix the configuration; `serve` does not start with it";
            let hint = error.hint().unwrap_or(fix);
            return vec![Subject::CONFIGURATION.failed(error_chain(error), hint)];
        }
    };
    let models = configuration.models.iter();
    let configured = models.filter(|model| !model.sources().is_empty());
    let what = match configured.map(ToString::to_string).collect::<Vec<_>>().as_slice() {
        [] => "every value is a default".to_owned(),
        models => models.join("; "),
    };
    let mut checks = vec![Subject::CONFIGURATION.ok(what)];
    checks.extend(configuration.notices.iter().map(|notice| {
        Subject::CONFIGURATION.warning(notice, "remove what has no effect, or change it")
    }));
    checks
}

/// The files of `directx-visible` that are configured and missing.
pub(super) fn launcher(facts: &NodeFacts) -> Option<Finding> {
    let missing = &facts.missing_launcher_files;
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

/// What containers get with each advertised device, the resources that the kubelet gets, and the
/// adapters that are under none.
pub(super) fn advertised(facts: &NodeFacts) -> Vec<Finding> {
    let Ok(configuration) = &facts.configuration else {
        let unknown = [Subject::RUNTIME_FILES, Subject::RESOURCES];
        return unknown.map(|subject| subject.skipped("the configuration is invalid")).into();
    };
    let offer = Catalog::new(configuration.policy.clone()).offer(&facts.snapshot);
    let set = DeviceSet::next(None, offer, Moment::default());
    let mut checks = Vec::new();
    for resource in &set.resources {
        let entries = resource.entries().iter();
        checks.extend(entries.flat_map(|entry| runtime_files(resource, entry, facts)));
    }
    let is_empty = set.resources.iter().all(|resource| resource.entries().is_empty());
    if is_empty {
        let hint = if set.skipped.iter().all(|skipped| skipped.reason == SkipReason::Software) {
            "install the GPU vendor's driver, or assign a GPU to this machine"
        } else {
            "fix what the next lines report about each adapter"
        };
        let what = "no device of this host is advertised to the kubelet";
        checks.push(Subject::RESOURCES.failed(what, hint));
    } else {
        checks.extend(set.resources.iter().map(|resource| one_resource(resource)));
    }
    if let Cordons::Unknown(reason) = &facts.snapshot.cordoned {
        let what = format!("the cordoned devices are not known: {reason}");
        checks.push(Subject::RESOURCES.failed(what, cordon_file::UNKNOWN_HINT));
    }
    checks.extend(set.cordoned().map(|(id, reason)| {
        let hint = "remove the device's name there to return it to service";
        Subject::RESOURCES.warning(reason.to_string(), hint).of(id.to_string())
    }));
    let gpus = facts.snapshot.adapters.iter().filter(|adapter| is_gpu(adapter));
    let gpus: BTreeSet<Luid> = gpus.map(|adapter| adapter.luid).collect();
    let is_no_gpu_advertised = set.luids().is_disjoint(&gpus);
    checks.extend(set.skipped.iter().filter_map(|skipped| {
        let is_wanted = is_empty || is_no_gpu_advertised && gpus.contains(&skipped.luid);
        skipped_adapter(skipped, is_wanted, facts.snapshot.host.is_this_machine)
    }));
    checks.extend(set.unmatched_rules.iter().map(|rule| {
        let what = "a rule of this resource matches no device of this host";
        Subject::RESOURCES
            .warning(what, "compare the rule's match with the output of `devices`")
            .of(rule.name.to_string())
    }));
    checks.extend(set.unmatched_cordons.iter().map(|cordon| {
        Subject::RESOURCES
            .warning(cordon.to_string(), "compare it with the output of `devices`, or remove it")
    }));
    checks
}

/// One resource. An empty one is normal: few hosts have devices of both driver models.
fn one_resource(resource: &ResourceDevices) -> Finding {
    let name = resource.spec.name.to_string();
    let devices = resource.entries().len();
    let healthy = resource.entries().iter().filter(|entry| entry.health.is_healthy()).count();
    if devices == 0 {
        let kind = match resource.spec.origin {
            ResourceOrigin::Model(model) => Filter::of(model).to_string(),
            ResourceOrigin::Rule(_) => "matching".to_owned(),
        };
        let what = format!("capacity 0: no {kind} device of this host is advertised");
        return Subject::RESOURCES.ok(what).of(name);
    }
    let shared = match resource.spec.sharing.replicas {
        NonZeroU32::MIN => String::new(),
        replicas => format!(", each shared by up to {replicas} containers"),
    };
    let what = format!("{healthy} of {} healthy{shared}", number_of(devices, "device"));
    if healthy == 0 {
        let hint =
            "fix what the lines `device` report; pods stay Pending until a device is healthy";
        return Subject::RESOURCES.failed(what, hint).of(name);
    }
    Subject::RESOURCES.ok(what).of(name)
}

/// An adapter that is under no resource. Software adapters never are and have no line. An adapter
/// that the configuration excludes needs a fix only if it `is_wanted`: if no other one is
/// advertised, or if it is a GPU and no other GPU is advertised.
fn skipped_adapter(skipped: &Skipped, is_wanted: bool, is_this_machine: bool) -> Option<Finding> {
    let name = match skipped.description.as_str() {
        "" => format!("adapter with LUID {}", skipped.luid),
        description => format!("{description} (LUID {})", skipped.luid),
    };
    let what = format!("not advertised: {}", skipped.reason);
    let hint = match &skipped.reason {
        SkipReason::Software => return None,
        SkipReason::NoPnpDevice if !is_this_machine => {
            "record the node again; in an inventory written by hand, give the adapter the key `pnp` \
             with `id` and `locationPaths` (docs/reference/inventory.md)"
        }
        SkipReason::NoPnpDevice | SkipReason::Unreadable(_) => {
            "run doctor again in a minute: its driver may be being replaced, or it belongs to a \
             remote session; if the problem persists, reinstall the driver and restart the host"
        }
        SkipReason::NoLocationPath => {
            "Device Manager shows no location path for it either: update the firmware, or pass \
             the device to this virtual machine as a PCI device; in an inventory, add locationPaths"
        }
        SkipReason::SameLocationPath(..) => {
            "an allocation by this path could give a container either device: restart the host; if \
             the problem persists, update the firmware; in an inventory, correct locationPaths"
        }
        // Pods get other devices, and the configuration excludes this one.
        _ if !is_wanted => return Some(Subject::RESOURCES.ok(what).of(name)),
        SkipReason::Integrated => "if pods should get it, set `includeIntegrated: true`",
        SkipReason::Detachable => "if pods should get it, set `includeDetachable: true`",
        SkipReason::NoModel(..) => {
            "devices for display and compute need `--driver-model wddm`, devices for compute only \
             `--driver-model mcdm`; for an adapter that does not support compute, install the GPU \
             vendor's driver, or assign a GPU to this machine"
        }
        SkipReason::Name(_) => {
            "set DIRECTX_GPU_MATCH_NAME to a part of the adapter's name, or use the driver models \
             wddm and mcdm instead of legacy"
        }
        SkipReason::ComputeOnlyOnLinux => {
            "if an application can use it, advertise it with a rule of `resources`"
        }
        SkipReason::SamePnpDevice(_) | SkipReason::Filtered(..) => {
            return Some(Subject::RESOURCES.ok(what).of(name));
        }
    };
    Some(Subject::RESOURCES.warning(what, hint).of(name))
}
