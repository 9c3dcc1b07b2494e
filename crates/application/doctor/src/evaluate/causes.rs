//! Causes that one finding knows and the hints of others name.

use devices::Device;
use host::{
    Adapter, AdapterWarning, DriverVersion, HostFacts, HostSnapshot, Hypervisor, NvidiaGpu, Nvml,
    PnpId, WarningEffect,
};

use crate::aging_facts::Row;
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

/// What to do on a host without a GPU that can be advertised.
pub(super) fn install_or_assign(host: &HostFacts) -> String {
    let assign = match host.hypervisor {
        Some(Hypervisor::Guest) => "assign a GPU to this virtual machine",
        Some(Hypervisor::None) => "add a GPU to this machine",
        Some(Hypervisor::Own) | None => "assign a GPU to this machine",
    };
    format!("install the GPU vendor's driver, or {assign}")
}

/// What to do about an adapter without compute, unless it is the graphics of a server's management
/// controller or of a virtual machine, about which there is nothing to do.
pub(super) fn without_compute(adapter: &Adapter, host: &HostFacts) -> Option<String> {
    let vendor = adapter.vendor();
    if !vendor.makes_gpus() {
        return None;
    }
    if has_driver_of_windows(adapter, host) {
        let name = adapter.name();
        return Some(format!("{name} runs with a driver of Windows: install that of its vendor"));
    }
    Some(format!(
        "its vendor's driver is installed, so either the GPU has no Direct3D 12, which nothing can \
         change, or a newer driver adds it ({})",
        Row::Direct3d12
    ))
}

/// Whether the adapter runs with the driver for any display adapter that is part of Windows.
fn has_driver_of_windows(adapter: &Adapter, host: &HostFacts) -> bool {
    let folder = adapter.driver_store.as_ref().map_or("", |store| store.path.as_str());
    let is_of_windows = |version: &DriverVersion| {
        let build =
            host.build.map(|build| format!("{}.{}.{}.", build.major, build.minor, build.build));
        build.is_some_and(|build| version.to_string().starts_with(&build))
    };
    folder.to_ascii_lowercase().contains(r"\basicdisplay.inf_")
        || adapter.driver_version.as_ref().is_some_and(is_of_windows)
        || adapter.name().starts_with("Microsoft Basic Display")
}

/// The adapters that only the graphics kernel lists.
pub(super) fn not_listed(snapshot: &HostSnapshot) -> impl Iterator<Item = &AdapterWarning> {
    snapshot.warnings.iter().filter(|warning| warning.effect == WarningEffect::NotListed)
}

/// That GPUs are in TCC mode, if there are any.
pub(super) fn tcc_mode(nvml: Option<&Nvml>) -> Option<String> {
    let in_tcc_mode = gpus_in_tcc_mode(nvml);
    let is = match in_tcc_mode.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let named = named(in_tcc_mode.into_iter());
    Some(format!("{named} {is} in TCC mode, which has no DirectX; the line `nvml` has the fix"))
}

/// How to give GPUs in TCC mode a driver with DirectX. `gpus` are all of the host: they have one
/// driver, and the drivers with MCDM support no GPU older than Turing.
pub(super) fn switch_from_tcc(gpus: &[NvidiaGpu], host: &HostFacts) -> String {
    let has_mcdm = host.build.is_none_or(|build| build.build >= FIRST_BUILD_WITH_MCDM);
    let too_old: Vec<&NvidiaGpu> =
        gpus.iter().filter(|gpu| is_older_than_turing(&gpu.name)).collect();
    let wddm = "`nvidia-smi -i <GPU> -dm 0` (WDDM, which needs a driver package that has it, and for \
                some products a vGPU or RTX license)";
    let row = Row::DriverMode;
    let why_not = if !has_mcdm {
        "this Windows has no MCDM".to_owned()
    } else if too_old.is_empty() {
        return format!(
            "for compute only, switch the GPU with `nvidia-smi -i <GPU> -dm 2` (MCDM, which needs a \
             new driver and no license), for graphics too with {wddm}, and restart the host ({row})"
        );
    } else {
        format!("drivers with MCDM do not support {}", named(too_old.into_iter()))
    };
    format!("switch the GPU with {wddm}, and restart the host; {why_not} ({row})")
}

/// The first build with MCDM: Windows 10 version 1903 (Microsoft, "Microsoft Compute Driver Model
/// overview").
const FIRST_BUILD_WITH_MCDM: u32 = 18_362;

/// Whether NVIDIA's name of a GPU is that of a generation before Turing. NVML names the compute
/// capability only for GPUs with DirectX, so the name decides: `Tesla P40`, `Quadro M4000`,
/// `GeForce GTX 1080`.
fn is_older_than_turing(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name.split([' ', '-']).filter(|word| !word.is_empty()).collect();
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let is_model = |word: &&str| {
        let is_old = |letter| word.strip_prefix(letter).is_some_and(is_number);
        ["K", "M", "P", "V", "GP", "GV"].into_iter().any(is_old)
    };
    let follows = |brand: &str, is_old: &dyn Fn(&str) -> bool| {
        words.windows(2).any(|pair| pair[0] == brand && is_old(pair[1]))
    };
    words.iter().any(is_model)
        || follows("GTX", &|model| is_number(model) && !model.starts_with("16"))
        || follows("GT", &is_number)
        || follows("TITAN", &|model| ["X", "XP", "V", "Z", "BLACK"].contains(&model))
}

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

/// Whether a device without an adapter is a virtual display, which containers never get.
pub(super) fn is_no_gpu(id: &PnpId) -> bool {
    id.is_software_enumerated() || id.is_hyper_v_video()
}
