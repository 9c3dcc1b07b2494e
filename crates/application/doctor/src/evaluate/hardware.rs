//! Devices, which of them containers can see, and NVIDIA's management library.

use std::collections::BTreeSet;
use std::iter;

use command_line::{HostError, error_chain};
use devices::{Device, Health, UnhealthyReason};
use host::{
    Adapter, AdapterWarning, Attributes, DeviceKind, HostFacts, HostSnapshot, NvidiaGpu, Nvml,
    PnpDevice, Vendor, WarningEffect,
};

use super::causes;
use crate::aging_facts::Row;
use crate::facts::NodeFacts;
use crate::finding::{Finding, FindingId, NOT_IN_INVENTORY, Subject, number_of};
use crate::problem_codes::{self, Affected};

pub(super) fn unread(error: &HostError) -> Finding {
    let default = "if the problem persists, restart the host; in a container, run as a HostProcess \
                   container";
    FindingId::AdaptersNotRead.failed(error_chain(error), error.hint().unwrap_or(default))
}

/// Whether the adapter is a GPU, also one that is not advertised.
fn is_gpu(adapter: &Adapter) -> bool {
    adapter.is_gpu_or_accelerator()
        && DeviceKind::of(adapter) == DeviceKind::Gpu
        && adapter.vendor().makes_gpus()
}

/// Each device with its driver, the devices without an adapter, the adapters that `DXCore` does not
/// list, and those that could be read only in part.
pub(super) fn devices(devices: &[Device], snapshot: &HostSnapshot) -> Vec<Finding> {
    let broken = snapshot.devices_without_adapter.iter();
    let broken = broken.map(|pnp| without_adapter(pnp, devices, &snapshot.host));
    let not_listed_hint = not_listed_hint(snapshot);
    let not_listed = causes::not_listed(snapshot).map(|warning| {
        let finding = FindingId::AdapterNotListed.warning(&warning.text, &*not_listed_hint);
        finding.of(format!("adapter with LUID {}", warning.luid))
    });
    let missing = broken.chain(not_listed);
    if devices.is_empty() {
        return iter::once(no_device(snapshot)).chain(missing).collect();
    }
    let default_hint =
        "wait until the driver is installed, otherwise reinstall it and restart the host";
    let hint =
        |device: &Device| causes::missing_files(device, &snapshot.host).unwrap_or(default_hint);
    let mut checks: Vec<Finding> =
        devices.iter().map(|device| one_device(device, &snapshot.host, hint(device))).collect();
    checks.extend(missing);
    let warnings = snapshot.warnings.iter();
    let is_of_gpu = |warning: &AdapterWarning| {
        let adapter = snapshot.adapters.iter().find(|adapter| adapter.luid == warning.luid);
        adapter.is_none_or(Adapter::is_gpu_or_accelerator)
    };
    let incomplete = warnings
        .filter(|warning| warning.effect == WarningEffect::Incomplete && is_of_gpu(warning));
    checks.extend(incomplete.map(|warning| {
        let device = devices.iter().find(|device| device.luid == warning.luid);
        let check =
            FindingId::AdapterReadInPart.warning(&warning.text, device.map_or(default_hint, hint));
        check.of(format!("adapter with LUID {}", warning.luid))
    }));
    checks
}

/// What to do about an adapter that only the graphics kernel lists.
fn not_listed_hint(snapshot: &HostSnapshot) -> String {
    let update = "containers cannot get it: install the newest driver of its vendor for this Windows, \
                  and restart the host";
    let gpus = causes::gpus(snapshot.node.nvml.as_ref());
    let in_mcdm_mode: Vec<&NvidiaGpu> =
        gpus.iter().filter(|gpu| gpu.driver_model.eq_ignore_ascii_case("MCDM")).collect();
    if in_mcdm_mode.is_empty() {
        return update.to_owned();
    }
    let named = causes::named(in_mcdm_mode.into_iter());
    format!(
        "{update}; {named} in MCDM mode can be switched with `nvidia-smi -i <GPU> -dm 0` (WDDM; {})",
        Row::DriverMode
    )
}

/// The host lists no device that could be advertised.
fn no_device(snapshot: &HostSnapshot) -> Finding {
    let mut adapters = snapshot.adapters.iter();
    let is_listed = |adapter: &Adapter| {
        adapter.is_gpu_or_accelerator() && adapter.attributes != Attributes::default()
    };
    if adapters.any(is_listed) {
        return FindingId::NoUsableDevice.failed(
            "containers can get none of the adapters that this host lists",
            "fix what the lines `resources` report about each adapter",
        );
    }
    let unknown = || {
        let mut hint = causes::install_or_assign(&snapshot.host);
        // Where NVML answers, it has reported no GPU in this mode.
        if snapshot.node.nvml.as_ref().is_none_or(|nvml| nvml.gpus.is_err()) {
            hint += "; an NVIDIA GPU in TCC mode has no DirectX";
        }
        hint
    };
    let hint = causes::no_device(snapshot).unwrap_or_else(unknown);
    FindingId::NoDevice.failed("Windows lists no DirectX device", hint)
}

/// `hint` says how to fix a driver without its files.
fn one_device(device: &Device, host: &HostFacts, hint: &str) -> Finding {
    let kind = if device.is_display_controller() {
        "display controller, not a GPU".to_owned()
    } else {
        device.kind.to_string()
    };
    let driver = format!(
        "{kind}, driver version {}, date {}",
        known(device.driver_version.as_ref()),
        known(device.driver_date.as_ref())
    );
    let check = match device.health {
        Health::Healthy => Subject::Device.ok(driver),
        Health::Unhealthy(UnhealthyReason::ProblemCode(code)) => {
            let affected = Affected {
                id: device.id.as_str(),
                name: &device.description,
                vendor: Some(device.vendor),
                is_paravirtualized: causes::is_paravirtualized(device, host),
                host,
                other_of_vendor: None,
            };
            let (meaning, hint) = problem_codes::explain(code, &affected);
            FindingId::ProblemCode.failed(format!("problem code {code}: {meaning}; {driver}"), hint)
        }
        Health::Unhealthy(reason) => {
            FindingId::DeviceUnhealthy.failed(format!("{reason}; {driver}"), hint)
        }
    };
    check.of(format!("{} ({})", device.description, device.id))
}

/// A device for which Windows lists no adapter. Beside other devices, an administrator may have
/// disabled this one, or left it without a driver.
fn without_adapter(pnp: &PnpDevice, devices: &[Device], host: &HostFacts) -> Finding {
    let code = pnp.problem_code;
    if causes::is_no_gpu(&pnp.id) {
        let what = format!("problem code {code}; this is a virtual display, not a GPU");
        return Subject::Device.ok(what).of(format!("{} ({})", pnp.description, pnp.id));
    }
    let vendor = Vendor::of_instance(&pnp.id);
    let other = devices.iter().find(|other| {
        let has_driver = other.driver_version.is_some() || other.driver_store.is_ok();
        Some(other.vendor) == vendor && has_driver && other.id != pnp.id
    });
    let affected = Affected {
        id: pnp.id.as_str(),
        name: &pnp.description,
        vendor,
        is_paravirtualized: pnp.id.is_paravirtualized(),
        host,
        other_of_vendor: other.map(|other| match other.driver_version {
            Some(version) => format!("{} (driver {version})", other.description),
            None => other.description.clone(),
        }),
    };
    let (meaning, hint) = problem_codes::explain(code, &affected);
    let what = format!("problem code {code}: {meaning}; Windows lists no adapter for it");
    let check = match code {
        22 if !devices.is_empty() => Subject::Device.ok(what).hint(hint),
        1 | 18 | 28 if !devices.is_empty() => FindingId::NoAdapter.warning(what, hint),
        _ => FindingId::NoAdapter.failed(what, hint),
    };
    check.of(format!("{} ({})", pnp.description, pnp.id))
}

fn known(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "not known".to_owned(), ToString::to_string)
}

/// Whether containers can see more GPUs than the allocated one.
pub(super) fn visibility(devices: &[Device], facts: &NodeFacts) -> Finding {
    let snapshot = &facts.snapshot;
    let hint = "use one GPU per node, start applications with directx-visible, which hides the \
                other GPUs, or let them select by DIRECTX_VISIBLE_DEVICES, which the plugin sets \
                (CUDA honors CUDA_VISIBLE_DEVICES, which the plugin sets where NVML reports the \
                GPU; github.com/microsoft/Windows-Containers/issues/333)";
    let is_gpu_device =
        |device: &&Device| device.kind == DeviceKind::Gpu && !device.is_display_controller();
    match devices.iter().filter(is_gpu_device).count() {
        0 if !snapshot.adapters.iter().any(is_gpu) => {
            Subject::Visibility.ok("the host lists no GPU")
        }
        0 => Subject::Visibility.skipped("containers can get no GPU of this host; see `resources`"),
        1 => Subject::Visibility.ok("the host has one GPU; containers can see no other"),
        n => {
            let gpus = if n == 2 { "both GPUs".to_owned() } else { format!("all {n} GPUs") };
            let what = format!("containers can see {gpus}, not only the allocated one");
            if omits_variables(facts) {
                let set = "set `environmentHints: true`, without which containers get no variables";
                return FindingId::OtherGpusVisible.warning(what, format!("{set}, and {hint}"));
            }
            FindingId::OtherGpusVisible.warning(what, hint)
        }
    }
}

/// Whether containers of a driver model get no variables that name their devices.
fn omits_variables(facts: &NodeFacts) -> bool {
    let policy = facts.configuration.as_ref().map(|configuration| &configuration.policy);
    policy.is_ok_and(|p| p.models.iter().any(|model| model.container.omit_environment_hints))
}

pub(super) fn nvml(devices: &[Device], snapshot: &HostSnapshot) -> Finding {
    let nvml = snapshot.node.nvml.as_ref();
    let mut of_nvidia = devices.iter().filter(|device| device.vendor == Vendor::Nvidia).peekable();
    let has_nvidia = of_nvidia.peek().is_some();
    match nvml {
        None => Subject::Nvml.skipped(NOT_IN_INVENTORY),
        Some(Nvml { library: None, gpus: Err(_) }) if !has_nvidia => {
            Subject::Nvml.ok("not needed: the host lists no NVIDIA device")
        }
        Some(Nvml { library: None, .. }) => {
            let is_guest =
                of_nvidia.all(|device| causes::is_paravirtualized(device, &snapshot.host));
            FindingId::NvmlMissing.warning(
                "nvml.dll is not where NVIDIA's drivers install it: pods get no CUDA_VISIBLE_DEVICES",
                if has_nvidia && is_guest {
                    "the GPU is paravirtualized (GPU-PV): copy nvml.dll and nvidia-smi.exe from \
                     C:\\Windows\\System32 of its host to the same folder of this virtual machine"
                } else {
                    "reinstall NVIDIA's driver"
                },
            )
        }
        Some(Nvml { gpus: Err(why), .. }) => {
            let mut without_adapter = snapshot.devices_without_adapter.iter();
            let is_broken = without_adapter
                .any(|pnp| Vendor::of_instance(&pnp.id) == Some(Vendor::Nvidia))
                || of_nvidia.any(|device| !device.health.is_healthy());
            FindingId::NvmlNotResponding.warning(
                format!("NVML does not respond, so pods get no CUDA_VISIBLE_DEVICES: {why}"),
                if is_broken {
                    "fix what the lines `device` report about NVIDIA's devices"
                } else {
                    "run nvidia-smi on the host and fix what it reports"
                },
            )
        }
        Some(Nvml { library: Some(library), gpus: Ok(gpus) }) => {
            responding_nvml(library, gpus, &causes::gpus_in_tcc_mode(nvml), &snapshot.host)
        }
    }
}

fn responding_nvml(
    library: &str,
    gpus: &[NvidiaGpu],
    in_tcc_mode: &[&NvidiaGpu],
    host: &HostFacts,
) -> Finding {
    let driver = gpus.first().map_or("none", |gpu| gpu.driver_version.as_str());
    if in_tcc_mode.is_empty() {
        let number = number_of(gpus.len(), "GPU");
        let modes: BTreeSet<&str> = gpus.iter().map(|gpu| gpu.driver_model.as_str()).collect();
        let modes = Vec::from_iter(modes).join(" and ");
        let mode = if gpus.is_empty() { String::new() } else { format!(" ({modes})") };
        return Subject::Nvml
            .ok(format!("{library} reports {number}{mode}, NVIDIA driver {driver}"));
    }
    let named = causes::named(in_tcc_mode.iter().copied());
    FindingId::TccMode.warning(
        format!("in TCC mode, which has no DirectX, so not advertised to the kubelet: {named}"),
        causes::switch_from_tcc(gpus, host),
    )
}
