//! Devices, the files of their drivers, and NVIDIA's management library.

use devices::{
    Criteria, Device, Health, HostFacts, NoStoreFolder, NvidiaGpu, Nvml, Platform, RuntimeFiles,
    Selection, StoreFiles, StoreFolderError, UnhealthyReason, Vendor, WarningEffect, Wow64,
    discover,
};

use super::host::provides_files;
use super::{NO_ADAPTERS, NOT_IN_INVENTORY, linux};
use crate::doctor::facts::MachineFacts;
use crate::doctor::finding::{Finding, Subject};
use crate::doctor::problem_codes;

/// How many names one line lists.
const NAMES_SHOWN: usize = 5;

/// Every device of the host, whatever the configuration is.
fn all_devices(machine: &MachineFacts) -> Option<Selection> {
    machine.adapters.as_ref().ok().map(|snapshot| discover(snapshot, Criteria::ALL))
}

/// Each device with its driver.
pub(super) fn devices(machine: &MachineFacts) -> Vec<Finding> {
    if let Err(failure) = &machine.adapters {
        let hint = failure.hint_text().unwrap_or(
            "if the problem persists, restart the host; in a container, run as a HostProcess \
             container",
        );
        return vec![Subject::DEVICE.failed(failure.chain(), hint)];
    }
    let devices = all_devices(machine).map(|selection| selection.devices).unwrap_or_default();
    let on_linux = machine.host.platform == Platform::LinuxDxg;
    if devices.is_empty() && on_linux {
        return vec![linux::no_device()];
    }
    if devices.is_empty() {
        return vec![Subject::DEVICE.failed(
            "Windows lists no DirectX device",
            "install the GPU vendor's driver for this Windows; switch an NVIDIA GPU in TCC mode, \
             which has no DirectX, to WDDM or MCDM; in a virtual machine, check that the GPU is \
             assigned to it",
        )];
    }
    let checks = devices.iter().map(|device| one_device(device, on_linux));
    checks.chain(partly_read(machine)).collect()
}

/// The adapters that could be read only in part.
fn partly_read(machine: &MachineFacts) -> impl Iterator<Item = Finding> {
    let snapshot = machine.adapters.iter();
    let warnings = snapshot.flat_map(|snapshot| &snapshot.warnings);
    warnings.filter(|warning| warning.effect == WarningEffect::Incomplete).map(|warning| {
        Subject::DEVICE
            .warning(
                &warning.text,
                "if the problem persists, reinstall its driver and restart the host",
            )
            .of(format!("adapter with LUID {}", warning.luid))
    })
}

fn one_device(device: &Device, on_linux: bool) -> Finding {
    let name = format!("{} ({})", device.description, device.id);
    let check = match device.health {
        Health::Healthy => Subject::DEVICE.ok(driver(device)),
        Health::Unhealthy(UnhealthyReason::ProblemCode(code)) => {
            let problem = problem_codes::explain(code);
            let what = format!("problem code {code}: {}; {}", problem.meaning, driver(device));
            Subject::DEVICE.failed(what, problem.hint)
        }
        Health::Unhealthy(reason @ UnhealthyReason::NoDriverFiles) => {
            let hint = if on_linux {
                linux::MOUNT
            } else {
                "wait until the driver is installed, otherwise reinstall it and restart the host"
            };
            Subject::DEVICE.failed(format!("{reason}; {}", driver(device)), hint)
        }
        Health::Unhealthy(reason @ (UnhealthyReason::Unreadable | UnhealthyReason::Removed)) => {
            Subject::DEVICE.failed(reason.to_string(), "check the host's device list")
        }
    };
    check.of(name)
}

/// The driver's version and date. An inventory may hold neither.
fn driver(device: &Device) -> String {
    match (device.driver_version, device.driver_date) {
        (Some(version), Some(date)) => format!("driver {version} of {date}"),
        (Some(version), None) => format!("driver {version}, date not known"),
        (None, Some(date)) => format!("driver of {date}, version not known"),
        (None, None) => "driver version and date not known".to_owned(),
    }
}

/// The runtime files that each driver names, compared with its driver store folder.
pub(super) fn runtime_files(machine: &MachineFacts) -> Vec<Finding> {
    let Some(selection) = all_devices(machine) else {
        return vec![Subject::RUNTIME_FILES.skipped(NO_ADAPTERS)];
    };
    if machine.host.platform == Platform::LinuxDxg {
        let check = |device: &Device| {
            linux::runtime_files(device).of(format!("{} ({})", device.description, device.id))
        };
        return selection.devices.iter().map(check).collect();
    }
    let check = |device: &Device| {
        let name = format!("{} ({})", device.description, device.id);
        let checks = [Some(files_of(&machine.host, device)), rejected(device)];
        checks.into_iter().flatten().map(move |check| check.of(name.as_str()))
    };
    selection.devices.iter().flat_map(check).collect()
}

fn files_of(host: &HostFacts, device: &Device) -> Finding {
    let store = match &device.driver_store {
        Ok(store) => store,
        Err(NoStoreFolder::Unknown) => return no_folder(host),
        Err(NoStoreFolder::Rejected(error)) => return rejected_folder(host, error),
    };
    let files = &device.runtime_files;
    if host.inside_container {
        return Subject::RUNTIME_FILES.warning(
            "doctor runs inside a container, where Windows hides the list of the driver's files",
            "run doctor and the plugin on the host or in a HostProcess container",
        );
    }
    let wow64 = if host.wow64 == Wow64::Present { files.wow64.as_slice() } else { &[] };
    let named: Vec<&str> =
        files.system32.iter().chain(wow64).map(|file| file.source.as_str()).collect();
    let missing: Vec<&str> =
        named.iter().copied().filter(|name| store.files.contains(name) == Some(false)).collect();
    match store.files {
        _ if named.is_empty() => {
            Subject::RUNTIME_FILES.ok("the driver names none; containers get only DirectX")
        }
        StoreFiles::EveryNamed => Subject::RUNTIME_FILES
            .skipped(format!("{} named; the inventory does not list the folder", named.len())),
        StoreFiles::OnDisk => {
            Subject::RUNTIME_FILES.skipped(format!("cannot read the folder {}", store.path))
        }
        StoreFiles::Listed(_) if missing.is_empty() => {
            let what = format!("{} named, all present{}", named.len(), without_wow64(host, files));
            Subject::RUNTIME_FILES.ok(what)
        }
        StoreFiles::Listed(_) => missing_files(host, &store.path, &missing, named.len()),
    }
}

fn no_folder(host: &HostFacts) -> Finding {
    let what = "the driver store folder is not known";
    if provides_files(host) {
        return Subject::RUNTIME_FILES.ok(format!("{what}, and not needed on this Windows"));
    }
    Subject::RUNTIME_FILES.warning(
        format!("{what}: containers get only DirectX, no runtime files"),
        "reinstall the driver with the vendor's installer",
    )
}

/// A folder elsewhere is unusual, so it is a warning on every Windows.
fn rejected_folder(host: &HostFacts, error: &StoreFolderError) -> Finding {
    let what = if provides_files(host) {
        format!("{error}, so the plugin mounts no files of it")
    } else {
        format!("{error}, so containers get only DirectX, no runtime files")
    };
    Subject::RUNTIME_FILES.warning(what, "reinstall the driver with the vendor's installer")
}

/// The end of a line about files that a host without `SysWOW64` does not mount.
fn without_wow64(host: &HostFacts, files: &RuntimeFiles) -> String {
    match (host.wow64, files.wow64.len()) {
        (Wow64::Present, _) | (Wow64::Absent, 0) => String::new(),
        (Wow64::Absent, count) => {
            format!("; this host has no SysWOW64 folder, so {count} 32-bit files are not mounted")
        }
    }
}

fn missing_files(host: &HostFacts, folder: &str, missing: &[&str], named: usize) -> Finding {
    let what =
        format!("{} of {named} missing from {folder}: {}", missing.len(), first_names(missing));
    if provides_files(host) {
        return Subject::RUNTIME_FILES
            .ok(what + "; not needed, since Windows itself provides the files to containers");
    }
    Subject::RUNTIME_FILES.warning(
        what,
        "reinstall the driver; until then containers get only the other files, and what needs \
         the missing ones (CUDA, OpenCL, Vulkan, video) fails there",
    )
}

/// Registry values that name no usable file.
fn rejected(device: &Device) -> Option<Finding> {
    let rejected = &device.runtime_files.rejected;
    let values: Vec<String> = rejected
        .iter()
        .map(|value| format!("{} `{}` ({})", value.key, value.value, value.why))
        .collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let count = match values.len() {
        0 => return None,
        1 => "1 registry value is ignored".to_owned(),
        n => format!("{n} registry values are ignored"),
    };
    Some(Subject::RUNTIME_FILES.warning(
        format!("{count}: {}", first_names(&values)),
        "report the fault to the vendor of the driver package, and mount what is missing with \
         additionalMounts",
    ))
}

/// The first few names, and how many more there are.
fn first_names(names: &[&str]) -> String {
    match names.len().checked_sub(NAMES_SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMES_SHOWN].join(", ")),
    }
}

/// Whether containers can see more GPUs than the allocated one.
pub(super) fn visibility(machine: &MachineFacts) -> Finding {
    let Some(selection) = all_devices(machine) else {
        return Subject::VISIBILITY.skipped(NO_ADAPTERS);
    };
    let is_gpu = |device: &&Device| device.display && device.compute;
    let count = selection.devices.iter().filter(is_gpu).count();
    if machine.host.platform == Platform::LinuxDxg {
        return linux::visibility(count);
    }
    match count {
        0 => Subject::VISIBILITY.ok("the host has no GPU"),
        1 => Subject::VISIBILITY.ok("the host has one GPU; containers can see no other"),
        n => Subject::VISIBILITY.warning(
            format!("containers can see all {n} GPUs, not only the allocated one"),
            "use one GPU per node, start applications with directx-visible, which hides the other \
             GPUs, or let them select by DIRECTX_VISIBLE_DEVICES, which the plugin sets (CUDA \
             honors CUDA_VISIBLE_DEVICES, which the plugin sets where NVML reports the GPU; \
             github.com/microsoft/Windows-Containers/issues/333)",
        ),
    }
}

/// NVIDIA's management library.
pub(super) fn nvml(machine: &MachineFacts) -> Finding {
    let Some(nvml) = &machine.software.nvml else {
        return Subject::NVML.skipped(NOT_IN_INVENTORY);
    };
    let nvidia = all_devices(machine)
        .map(|selection| selection.devices.iter().any(|device| device.vendor == Vendor::Nvidia));
    match (nvml, nvidia) {
        (Nvml { library: None, .. }, None) => Subject::NVML.skipped(NO_ADAPTERS),
        (Nvml { library: None, gpus: Err(_) }, Some(false)) => {
            Subject::NVML.ok("not needed: the host has no NVIDIA device")
        }
        (Nvml { library: None, .. }, _) => Subject::NVML.warning(
            "nvml.dll is not where NVIDIA's drivers install it: pods get no CUDA_VISIBLE_DEVICES",
            "reinstall NVIDIA's driver",
        ),
        (Nvml { gpus: Err(why), .. }, _) => Subject::NVML.warning(
            format!("NVML does not respond, so pods get no CUDA_VISIBLE_DEVICES: {why}"),
            "run nvidia-smi on the host and fix what it reports",
        ),
        (Nvml { library: Some(library), gpus: Ok(gpus) }, _) => responding_nvml(library, gpus),
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
        let what = format!("{library} reports {} GPUs, NVIDIA driver {driver}", gpus.len());
        return Subject::NVML.ok(what);
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
