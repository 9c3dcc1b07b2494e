//! A Linux host with `/dev/dxg`: what differs from Windows.

use devices::{Device, HostFacts, StoreFiles, dxg_driver_folder};

use crate::doctor::finding::{Finding, Subject};

/// What to do if a folder with drivers is missing.
pub(super) const MOUNT: &str = "check that the virtual machine has /usr/lib/wsl (`gpuSupport` in .wslconfig), that a \
     node in a container has it too, and restart the virtual machine after an update of the driver";

/// The host and its software.
pub(super) fn host(host: &HostFacts) -> Vec<Finding> {
    let product = host.product.as_deref().unwrap_or("Linux");
    let unused = [Subject::HCS, Subject::IMAGE, Subject::CONTAINERD, Subject::KUBELET];
    let unused = unused.map(|subject| subject.skipped("not checked on Linux"));
    let ok = Subject::WINDOWS.ok(format!("{product}; Windows lends its devices through /dev/dxg"));
    std::iter::once(ok).chain(unused).collect()
}

/// No adapter is listed.
pub(super) fn no_device() -> Finding {
    Subject::DEVICE.failed(
        "/dev/dxg lists no DirectX device",
        "install the GPU vendor's driver on the Windows host, and restart the virtual machine (WSL2: \
         `wsl --shutdown`); for a Hyper-V virtual machine, add a GPU partition",
    )
}

/// The folder of a driver.
pub(super) fn runtime_files(device: &Device) -> Finding {
    let Ok(store) = &device.driver_store else {
        return Subject::RUNTIME_FILES.warning("the driver store folder is not known", MOUNT);
    };
    let folder = dxg_driver_folder(&store.path).unwrap_or_default();
    match &store.files {
        StoreFiles::Listed(files) if files.is_empty() => {
            Subject::RUNTIME_FILES.failed(format!("{folder} is missing or empty"), MOUNT)
        }
        StoreFiles::Listed(files) => {
            Subject::RUNTIME_FILES.ok(format!("files in {folder}: {}", files.len()))
        }
        StoreFiles::EveryNamed | StoreFiles::OnDisk => {
            Subject::RUNTIME_FILES.skipped(format!("the files of {folder} are not listed"))
        }
    }
}

/// Which of `count` GPUs containers can use.
pub(super) fn visibility(count: usize) -> Finding {
    match count {
        0 => Subject::VISIBILITY.ok("the host has no GPU"),
        1 => Subject::VISIBILITY.ok("the host has one GPU"),
        n => Subject::VISIBILITY.warning(
            format!("containers can use all {n} GPUs, not only the allocated one"),
            "let applications select by the variables that the plugin sets, such as \
             CUDA_VISIBLE_DEVICES; /dev/dxg has no isolation",
        ),
    }
}
