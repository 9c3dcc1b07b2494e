//! Devices, their drivers' files, and what NVIDIA's library knows of them.

use devices::{
    Criteria, Device, DeviceScope, DiscoveredFrom, FIRST_BUILD_WITHOUT_MOUNTS, Filter, Health,
    HostFacts, Selection, StoreFiles, UnhealthyReason, Vendor, WarningEffect, Wow64, discover,
};

use super::{NO_ADAPTERS, RECORDED};
use crate::doctor::check::{Check, Subject, Verdict};
use crate::doctor::observed::{Complaint, Machine, NvidiaGpu, Nvml, Seen};
use crate::doctor::problems;

/// How many names of files one line lists.
const NAMES_SHOWN: usize = 5;

fn everything(seen: &Machine) -> Option<Selection> {
    let criteria = Criteria {
        filter: Filter::All,
        integrated: DeviceScope::Include,
        detachable: DeviceScope::Include,
    };
    seen.adapters.as_ref().ok().map(|snapshot| discover(snapshot, criteria))
}

/// Each device with its driver.
pub(super) fn devices(seen: &Machine) -> Vec<Check> {
    if let Err(Complaint { what, advice }) = &seen.adapters {
        let advice = advice.as_deref().unwrap_or(
            "if it stays, restart the host; a container must be a HostProcess container",
        );
        return vec![Subject::Device.problem(what, advice)];
    }
    let devices = everything(seen).map(|selection| selection.devices).unwrap_or_default();
    if devices.is_empty() {
        return vec![Subject::Device.problem(
            "Windows lists no DirectX device",
            "install the GPU vendor's driver for this Windows; an NVIDIA GPU in TCC mode has no \
             DirectX and must be switched to WDDM or MCDM; in a virtual machine, see that the GPU \
             is assigned to it",
        )];
    }
    let checks = devices.iter().map(|device| one_device(seen, device));
    checks.chain(read_in_part(seen)).collect()
}

/// What could not be read of devices that are there all the same.
fn read_in_part(seen: &Machine) -> impl Iterator<Item = Check> {
    let snapshot = seen.adapters.iter();
    let warnings = snapshot.flat_map(|snapshot| &snapshot.warnings);
    warnings.filter(|warning| warning.effect == WarningEffect::Incomplete).map(|warning| {
        Subject::Device
            .warning(&warning.text, "if it stays, reinstall its driver and restart the host")
            .of(format!("adapter with LUID {}", warning.luid))
    })
}

fn one_device(seen: &Machine, device: &Device) -> Check {
    let name = format!("{} ({})", device.description, device.id);
    let check = match device.health {
        Health::Healthy => Subject::Device.ok(driver(seen, device)),
        Health::Unhealthy(UnhealthyReason::ProblemCode(code)) => {
            let problem = problems::explain(code);
            let what = format!("problem code {code}: {}; {}", problem.what, driver(seen, device));
            Subject::Device.problem(what, problem.advice)
        }
        Health::Unhealthy(UnhealthyReason::Removed) => {
            Subject::Device.problem("it went away", "look at the host's device list")
        }
    };
    check.of(name)
}

/// The driver's version and date, as far as they are known.
fn driver(seen: &Machine, device: &Device) -> String {
    let id = device.id.as_str();
    let date = seen.driver_dates.iter().find(|(of, _)| of.as_str().eq_ignore_ascii_case(id));
    match (device.driver_version, date) {
        (Some(version), Some((_, date))) => format!("driver {version} of {date}"),
        (Some(version), None) => format!("driver {version}, date not known"),
        (None, Some((_, date))) => format!("driver of {date}, version not known"),
        (None, None) => "driver version and date not known".to_owned(),
    }
}

/// The runtime files that each driver names, against its folder.
pub(super) fn runtime_files(seen: &Machine) -> Vec<Check> {
    let Some(selection) = everything(seen) else {
        return vec![Subject::RuntimeFiles.not_checked(NO_ADAPTERS)];
    };
    let check = |device: &Device| {
        let name = format!("{} ({})", device.description, device.id);
        let checks = [Some(files_of(&seen.host, device)), rejected(device)];
        checks.into_iter().flatten().map(move |check| check.of(name.as_str()))
    };
    selection.devices.iter().flat_map(check).collect()
}

fn files_of(host: &HostFacts, device: &Device) -> Check {
    let Some(store) = &device.driver_store else {
        let what = "its folder in the driver store is not known";
        if gives_files_itself(host) {
            return Subject::RuntimeFiles.ok(format!("{what}, nor needed on this Windows"));
        }
        return Subject::RuntimeFiles.warning(
            format!("{what}: containers get no runtime files, only DirectX itself"),
            "reinstall the driver with the vendor's installer",
        );
    };
    let files = &device.runtime_files;
    if files.discovered_from == DiscoveredFrom::Container {
        return Subject::RuntimeFiles.warning(
            "doctor runs inside a container, where the driver's files cannot be enumerated",
            "run doctor and the plugin on the host or in a HostProcess container",
        );
    }
    let wow64 = if host.wow64 == Wow64::Present { files.wow64.as_slice() } else { &[] };
    let named: Vec<&str> =
        files.system32.iter().chain(wow64).map(|file| file.source.as_str()).collect();
    let lost: Vec<&str> =
        named.iter().copied().filter(|name| store.files.contains(name) == Some(false)).collect();
    match store.files {
        _ if named.is_empty() => {
            Subject::RuntimeFiles.ok("the driver names none: containers get DirectX alone")
        }
        StoreFiles::EveryNamed => Subject::RuntimeFiles
            .not_checked(format!("{} named; the recording lists no files to compare", named.len())),
        StoreFiles::OnDisk => {
            Subject::RuntimeFiles.not_checked(format!("the folder {} cannot be read", store.path))
        }
        StoreFiles::Listed(_) if lost.is_empty() => {
            Subject::RuntimeFiles.ok(format!("{} named, all there", named.len()))
        }
        StoreFiles::Listed(_) => missing(host, &store.path, &lost, named.len()),
    }
}

fn missing(host: &HostFacts, folder: &str, lost: &[&str], named: usize) -> Check {
    let what = format!("{} of {named} missing from {folder}: {}", lost.len(), some_of(lost));
    if gives_files_itself(host) {
        return Subject::RuntimeFiles
            .ok(what + "; this Windows gives containers the files without the plugin");
    }
    Subject::RuntimeFiles.warning(
        what,
        "containers get the other files; what needs these (CUDA, OpenCL, Vulkan, video) fails \
         there: reinstall the driver",
    )
}

/// Whether Windows itself gives containers the runtime files.
fn gives_files_itself(host: &HostFacts) -> bool {
    host.build.is_some_and(|build| build.build >= FIRST_BUILD_WITHOUT_MOUNTS)
}

/// Registry values that name no usable file.
fn rejected(device: &Device) -> Option<Check> {
    let rejected = &device.runtime_files.rejected;
    let words: Vec<String> = rejected
        .iter()
        .map(|value| format!("{} `{}` ({})", value.key, value.value, value.why))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let count = match words.len() {
        0 => return None,
        1 => "1 registry value is left out".to_owned(),
        n => format!("{n} registry values are left out"),
    };
    Some(Subject::RuntimeFiles.warning(
        format!("{count}: {}", some_of(&words)),
        "the driver package is at fault; tell its vendor, and mount what is missing with \
         additionalMounts",
    ))
}

fn some_of(names: &[&str]) -> String {
    match names.len().checked_sub(NAMES_SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMES_SHOWN].join(", ")),
    }
}

/// Whether a container sees more GPUs than its own.
pub(super) fn visibility(seen: &Machine) -> Check {
    let Some(selection) = everything(seen) else {
        return Subject::Visibility.not_checked(NO_ADAPTERS);
    };
    let is_gpu = |device: &&Device| device.display.is_yes() && device.compute.is_yes();
    match selection.devices.iter().filter(is_gpu).count() {
        0 => Subject::Visibility.ok("no GPU to tell apart"),
        1 => Subject::Visibility.ok("one GPU: a container sees no other"),
        n => Subject::Visibility.warning(
            format!("up to now Windows shows a container all {n} GPUs, whichever it was given"),
            "give each node one GPU, or let applications choose by DIRECTX_VISIBLE_DEVICES, which \
             the plugin sets (CUDA obeys CUDA_VISIBLE_DEVICES, set where NVML knows the GPU; \
             github.com/microsoft/Windows-Containers/issues/333)",
        ),
    }
}

/// NVIDIA's management library.
pub(super) fn nvml(seen: &Machine) -> Check {
    let Seen::Looked(nvml) = &seen.nvml else { return Subject::Nvml.not_checked(RECORDED) };
    let nvidia = everything(seen)
        .map(|selection| selection.devices.iter().any(|device| device.vendor == Vendor::Nvidia));
    match (nvml, nvidia) {
        (Nvml { library: None, .. }, None) => Subject::Nvml.not_checked(NO_ADAPTERS),
        (Nvml { library: None, gpus: Err(_) }, Some(false)) => {
            Subject::Nvml.ok("not needed: no NVIDIA device")
        }
        (Nvml { library: None, .. }, _) => Subject::Nvml.warning(
            "nvml.dll is not where NVIDIA's drivers put it: pods get no CUDA_VISIBLE_DEVICES",
            "reinstall NVIDIA's driver",
        ),
        (Nvml { gpus: Err(why), .. }, _) => Subject::Nvml.warning(
            format!("NVML does not answer, so pods get no CUDA_VISIBLE_DEVICES: {why}"),
            "run nvidia-smi on the host and follow what it says",
        ),
        (Nvml { library: Some(library), gpus: Ok(gpus) }, _) => answers(library, gpus),
    }
}

fn answers(library: &str, gpus: &[NvidiaGpu]) -> Check {
    let without: Vec<String> = gpus
        .iter()
        .filter(|gpu| gpu.model.eq_ignore_ascii_case("TCC"))
        .map(|gpu| format!("GPU {} ({})", gpu.index, gpu.name))
        .collect();
    let driver = gpus.first().map_or("none", |gpu| gpu.driver.as_str());
    if without.is_empty() {
        let what = format!("{library} answers: {} GPUs, NVIDIA driver {driver}", gpus.len());
        return Subject::Nvml.is(Verdict::Ok, what);
    }
    Subject::Nvml.warning(
        format!(
            "in TCC mode, which has no DirectX, so that no pod gets it: {}",
            without.join(", ")
        ),
        "switch it with `nvidia-smi -i <GPU> -dm 0` (WDDM; some products need a vGPU or RTX \
         licence for it) and restart the host",
    )
}
