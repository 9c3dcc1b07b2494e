//! Devices, which of them containers can see, and NVIDIA's management library.

use command_line::{HostError, error_chain};
use devices::{
    Adapter, Attribute, Attributes, Device, Health, HostSnapshot, NvidiaGpu, Nvml, Platform,
    UnhealthyReason, Vendor, WarningEffect,
};

use super::NOT_IN_INVENTORY;
use crate::collect::NodeFacts;
use crate::finding::{Finding, Subject, number_of};
use crate::problem_codes;

/// What to do about a driver that is too old or whose folder is missing.
pub(super) const UPDATE_OR_MOUNT: &str = "update the driver on the Windows host, and restart the virtual machine (`wsl --shutdown`; in Hyper-V, copy \
     its folder again); check that it has /usr/lib/wsl (`[gpu]` in /etc/wsl.conf), and a node in a container too";

/// What to do if the adapters cannot be read.
const UNREAD_ON_LINUX: &str = "install the GPU vendor's driver on the Windows host, check `gpuSupport` in .wslconfig or the GPU \
     partition, and restart the virtual machine (WSL2: `wsl --shutdown`); in a container, pass /dev/dxg to it or \
     make it privileged";

pub(super) fn unread(error: &HostError, platform: Platform) -> Finding {
    let default = match platform {
        Platform::LinuxDxg => UNREAD_ON_LINUX,
        Platform::Windows => {
            "if the problem persists, restart the host; in a container, run as a HostProcess \
             container"
        }
    };
    Subject::DEVICE.failed(error_chain(error), error.hint().unwrap_or(default))
}

/// Whether the adapter is a GPU, also one in MCDM mode, which has no display, and one that is not
/// advertised. Older versions of Windows do not report [`Attribute::Gpu`].
pub(super) fn is_gpu(adapter: &Adapter) -> bool {
    let is_nvidia = Vendor::from_id(adapter.hardware_id.vendor) == Vendor::Nvidia;
    let attributes = [Attribute::Gpu, Attribute::D3d12Graphics];
    adapter.hardware && (is_nvidia || attributes.into_iter().any(|gpu| adapter.attributes.has(gpu)))
}

/// Each device with its driver, and the adapters that could be read only in part.
pub(super) fn devices(devices: &[Device], snapshot: &HostSnapshot) -> Vec<Finding> {
    let on_linux = snapshot.host.platform == Platform::LinuxDxg;
    let mut adapters = snapshot.adapters.iter();
    let is_listed =
        |adapter: &Adapter| adapter.hardware && adapter.attributes != Attributes::default();
    if devices.is_empty() && adapters.any(is_listed) {
        return vec![Subject::DEVICE.failed(
            "containers can get none of the adapters that this host lists",
            "fix what the lines `resources` report about each adapter",
        )];
    }
    if devices.is_empty() && on_linux {
        return vec![Subject::DEVICE.failed(
            "/dev/dxg lists no DirectX device that can be read",
            "install the GPU vendor's driver on the Windows host, check `gpuSupport` in .wslconfig, and restart the \
             virtual machine (WSL2: `wsl --shutdown`); for a Hyper-V virtual machine, add a GPU partition",
        )];
    }
    if devices.is_empty() {
        return vec![Subject::DEVICE.failed(
            "Windows lists no DirectX device",
            "install the GPU vendor's driver for this Windows; switch an NVIDIA GPU in TCC mode, \
             which has no DirectX, to WDDM or MCDM; in a virtual machine, check that the GPU is \
             assigned to it",
        )];
    }
    let hint = if on_linux {
        UPDATE_OR_MOUNT
    } else {
        "wait until the driver is installed, otherwise reinstall it and restart the host"
    };
    let mut checks: Vec<Finding> = devices.iter().map(|device| one_device(device, hint)).collect();
    let warnings = snapshot.warnings.iter();
    let incomplete = warnings.filter(|warning| warning.effect == WarningEffect::Incomplete);
    checks.extend(incomplete.map(|warning| {
        let check = Subject::DEVICE.warning(&warning.text, hint);
        check.of(format!("adapter with LUID {}", warning.luid))
    }));
    checks
}

/// `hint` says how to fix a driver without its files.
fn one_device(device: &Device, hint: &str) -> Finding {
    let driver = format!(
        "driver version {}, date {}",
        known(device.driver_version.as_ref()),
        known(device.driver_date.as_ref())
    );
    let check = match device.health {
        Health::Healthy => Subject::DEVICE.ok(driver),
        Health::Unhealthy(UnhealthyReason::ProblemCode(code)) => {
            let (meaning, hint) = problem_codes::explain(code);
            Subject::DEVICE.failed(format!("problem code {code}: {meaning}; {driver}"), hint)
        }
        Health::Unhealthy(reason) => Subject::DEVICE.failed(format!("{reason}; {driver}"), hint),
    };
    check.of(format!("{} ({})", device.description, device.id))
}

fn known(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "not known".to_owned(), ToString::to_string)
}

/// Whether containers can see more GPUs than the allocated one.
pub(super) fn visibility(devices: &[Device], facts: &NodeFacts) -> Finding {
    let snapshot = &facts.snapshot;
    let hint = match snapshot.host.platform {
        Platform::LinuxDxg => {
            "let applications select by the variables that the plugin sets, such as \
             CUDA_VISIBLE_DEVICES; /dev/dxg has no isolation"
        }
        Platform::Windows => {
            "use one GPU per node, start applications with directx-visible, which hides the other \
             GPUs, or let them select by DIRECTX_VISIBLE_DEVICES, which the plugin sets (CUDA \
             honors CUDA_VISIBLE_DEVICES, which the plugin sets where NVML reports the GPU; \
             github.com/microsoft/Windows-Containers/issues/333)"
        }
    };
    let gpus: Vec<&Adapter> = snapshot.adapters.iter().filter(|adapter| is_gpu(adapter)).collect();
    let is_gpu = |device: &&Device| gpus.iter().any(|gpu| gpu.luid == device.luid);
    match devices.iter().filter(is_gpu).count() {
        0 if gpus.is_empty() => Subject::VISIBILITY.ok("the host lists no GPU"),
        0 => Subject::VISIBILITY.skipped("containers can get no GPU of this host; see `resources`"),
        1 => Subject::VISIBILITY.ok("the host has one GPU; containers can see no other"),
        n => {
            let gpus = if n == 2 { "both GPUs".to_owned() } else { format!("all {n} GPUs") };
            let what = format!("containers can see {gpus}, not only the allocated one");
            if omits_variables(facts) {
                let set = "set `environmentHints: true`, without which containers get no variables";
                return Subject::VISIBILITY.warning(what, format!("{set}, and {hint}"));
            }
            Subject::VISIBILITY.warning(what, hint)
        }
    }
}

/// Whether containers of a driver model get no variables that name their devices.
fn omits_variables(facts: &NodeFacts) -> bool {
    let policy = facts.configuration.as_ref().map(|configuration| &configuration.policy);
    policy.is_ok_and(|p| p.models.iter().any(|model| model.container.omit_environment_hints))
}

pub(super) fn nvml(nvml: Option<&Nvml>, devices: &[Device]) -> Finding {
    let has_nvidia = devices.iter().any(|device| device.vendor == Vendor::Nvidia);
    match nvml {
        None => Subject::NVML.skipped(NOT_IN_INVENTORY),
        Some(Nvml { library: None, gpus: Err(_) }) if !has_nvidia => {
            Subject::NVML.ok("not needed: the host lists no NVIDIA device")
        }
        Some(Nvml { library: None, .. }) => Subject::NVML.warning(
            "nvml.dll is not where NVIDIA's drivers install it: pods get no CUDA_VISIBLE_DEVICES",
            "reinstall NVIDIA's driver",
        ),
        Some(Nvml { gpus: Err(why), .. }) => Subject::NVML.warning(
            format!("NVML does not respond, so pods get no CUDA_VISIBLE_DEVICES: {why}"),
            "run nvidia-smi on the host and fix what it reports",
        ),
        Some(Nvml { library: Some(library), gpus: Ok(gpus) }) => responding_nvml(library, gpus),
    }
}

fn responding_nvml(library: &str, gpus: &[NvidiaGpu]) -> Finding {
    let in_tcc_mode: Vec<String> = gpus
        .iter()
        .filter(|gpu| gpu.driver_model.eq_ignore_ascii_case("TCC"))
        .map(|gpu| format!("GPU {} ({})", gpu.index, gpu.name))
        .collect();
    let driver = gpus.first().map_or("none", |gpu| gpu.driver_version.as_str());
    if in_tcc_mode.is_empty() {
        let number = number_of(gpus.len(), "GPU");
        return Subject::NVML.ok(format!("{library} reports {number}, NVIDIA driver {driver}"));
    }
    Subject::NVML.warning(
        format!(
            "in TCC mode, which has no DirectX, so not advertised to the kubelet: {}",
            in_tcc_mode.join(", ")
        ),
        "switch the GPU with `nvidia-smi -i <GPU> -dm 0` (WDDM; some products need a vGPU or RTX \
         license for that) and restart the host",
    )
}
