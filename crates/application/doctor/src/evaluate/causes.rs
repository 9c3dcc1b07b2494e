//! Causes that one finding knows and the hints of others name.

use devices::{AdapterWarning, Device, HostFacts, HostSnapshot, NvidiaGpu, Nvml, WarningEffect};

use super::hardware::is_no_gpu;
use crate::problem_codes::UPDATE_GUEST;

/// Why Windows lists no DirectX device, or none that can be advertised, and what to do about it.
/// `None` if nothing that is known of the node explains it.
pub(super) fn no_device(snapshot: &HostSnapshot) -> Option<String> {
    if snapshot.host.inside_container {
        return Some(
            "run doctor and the plugin on the host or in a HostProcess container".to_owned(),
        );
    }
    let nvml = snapshot.node.nvml.as_ref();
    if let Some(fix) = tcc_mode(nvml) {
        return Some(fix);
    }
    let is_missing = snapshot.devices_without_adapter.iter().any(|pnp| !is_no_gpu(&pnp.id));
    if is_missing || not_listed(snapshot).next().is_some() {
        return Some("fix what the lines `device` report about each device".to_owned());
    }
    let gpus = gpus(nvml);
    let driver = &gpus.first()?.driver_version;
    let named = named(gpus.iter());
    Some(format!(
        "NVIDIA driver {driver} runs and reports {named}: restart the host; if the problem \
         persists, reinstall the driver"
    ))
}

/// The adapters that only the graphics kernel lists.
pub(super) fn not_listed(snapshot: &HostSnapshot) -> impl Iterator<Item = &AdapterWarning> {
    snapshot.warnings.iter().filter(|warning| warning.effect == WarningEffect::NotListed)
}

/// The GPUs in TCC mode and how to switch them, if there are any.
pub(super) fn tcc_mode(nvml: Option<&Nvml>) -> Option<String> {
    let in_tcc_mode = gpus_in_tcc_mode(nvml);
    let is = match in_tcc_mode.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let named = named(in_tcc_mode.into_iter());
    Some(format!("{named} {is} in TCC mode, which has no DirectX: {SWITCH_FROM_TCC}"))
}

/// How to give a GPU in TCC mode a driver with DirectX.
pub(super) const SWITCH_FROM_TCC: &str = "for compute only, switch the GPU with `nvidia-smi -i <GPU> -dm 2` (MCDM; no license, documented \
     from driver R590 on), for graphics too with `-dm 0` (WDDM; some products lack it, others need a vGPU or RTX license), and \
     restart the host";

/// NVIDIA's GPUs without DirectX.
pub(super) fn gpus_in_tcc_mode(nvml: Option<&Nvml>) -> Vec<&NvidiaGpu> {
    gpus(nvml).iter().filter(|gpu| gpu.driver_model.eq_ignore_ascii_case("TCC")).collect()
}

/// The GPUs that NVML reports.
pub(super) fn gpus(nvml: Option<&Nvml>) -> &[NvidiaGpu] {
    nvml.and_then(|nvml| nvml.gpus.as_deref().ok()).unwrap_or_default()
}

/// GPUs with the numbers that nvidia-smi takes.
pub(super) fn named<'a>(gpus: impl Iterator<Item = &'a NvidiaGpu>) -> String {
    let named = gpus.map(|gpu| format!("GPU {} ({})", gpu.index, gpu.name));
    named.collect::<Vec<_>>().join(", ")
}

/// What to do about missing files of the driver in a virtual machine that has them from its host.
pub(super) fn missing_files(device: &Device, host: &HostFacts) -> Option<&'static str> {
    is_paravirtualized(device, host).then_some(UPDATE_GUEST)
}

/// Whether a virtual machine has the device from its host (GPU-PV). Containers have such a folder,
/// too.
pub(super) fn is_paravirtualized(device: &Device, host: &HostFacts) -> bool {
    let store = device.driver_store.as_ref().map_or("", |store| store.path.as_str());
    let is_store_of_host = store.to_ascii_lowercase().contains(r"\hostdriverstore\");
    device.id.is_paravirtualized() || is_store_of_host && !host.inside_container
}
