use devices::{RuntimeMounts, Visibility};
use host::{CopyToVmValue, Wow64};

use super::*;

#[test]
fn files_of_the_driver() {
    let mut table = Table::of(&[Subject::RuntimeFiles]);
    table.row("the driver has every file", |_| ());
    table.row("files of CUDA, NVAPI and OpenCL are missing", |facts| {
        let missing = ["nvcu", "nvapi", "OpenCL"];
        if let StoreFiles::Listed(files) = &mut facts.store().files {
            files.retain(|file| !missing.iter().any(|missing| file.contains(missing)));
        }
    });
    table.row("the driver names no file and has none", |facts| {
        facts.store().copy_to_vm.clear();
        facts.store().files = StoreFiles::Listed([].into());
    });
    table.row("the driver names no file", |facts| facts.store().copy_to_vm.clear());
    table.row("Server 2025 and no driver store", |facts| {
        facts.set_build("10.0.26100.1");
        facts.adapter().driver_store = None;
    });
    table.row("doctor runs inside a container", |facts| {
        facts.snapshot.host.inside_container = true;
    });
    table.row("no driver store", |facts| facts.adapter().driver_store = None);
    table.row("the driver store is on another computer", |facts| {
        facts.store().path = r"\\server\share\nv".to_owned();
    });
    table.row("the device cannot be allocated: code 43", |facts| facts.pnp().problem_code = 43);
    for runtime_mounts in [RuntimeMounts::Auto, RuntimeMounts::Never, RuntimeMounts::Extra] {
        table.row(format!("an invalid registry value, runtimeMounts {runtime_mounts}"), |facts| {
            let values = facts.store().copy_to_vm.values_mut().next().unwrap();
            values.insert("99".to_owned(), CopyToVmValue::Single(r"..\evil.dll".to_owned()));
            facts.container().runtime_mounts = runtime_mounts;
        });
    }
    insta::assert_snapshot!(table.text());
}

#[test]
fn files_that_are_left_out() {
    let mut table = Table::of(&[Subject::RuntimeFiles]);
    let exclude = |facts: &mut NodeFacts, names: &[&str]| {
        let names = names.iter().map(|name| name.parse().unwrap());
        facts.container().exclude_mounts = names.collect();
    };
    let only_wow64 = |facts: &mut NodeFacts| {
        let is_wow64 = |key: &str| key.ends_with("Wow64");
        facts.store().copy_to_vm.retain(|key, _| is_wow64(&key.to_string()));
        if let StoreFiles::Listed(files) = &mut facts.store().files {
            files.retain(|file| !file.contains("nvidia-smi") && !file.contains("vulkaninfo"));
        }
    };
    table.row("excludeMounts names two", |facts| exclude(facts, &["NVCUDA.dll", "vulkaninfo.exe"]));
    table.row("runtimeFilesWow64 is false", |facts| facts.container().omit_wow64 = true);
    table.row("the host has no WOW64", |facts| facts.snapshot.host.wow64 = Wow64::Absent);
    table.row("the driver has only 32-bit files, runtimeFilesWow64 is false", |facts| {
        only_wow64(facts);
        facts.container().omit_wow64 = true;
    });
    table.row("the driver has only 32-bit files, the host has no WOW64", |facts| {
        only_wow64(facts);
        facts.snapshot.host.wow64 = Wow64::Absent;
    });
    table.row("an additional mount at the destination of a driver's file", |facts| {
        facts.mount(Vendor::Nvidia, additional("nvapi64.dll", "nvcuda.dll"));
    });
    table.row("the same, runtimeMounts extra", |facts| {
        facts.mount(Vendor::Nvidia, additional("nvapi64.dll", "nvcuda.dll"));
        facts.container().runtime_mounts = RuntimeMounts::Extra;
    });
    table.row("runtimeMounts never, with excludeMounts and directx-visible", |facts| {
        exclude(facts, &["nvcuda.dll"]);
        facts.container().visibility = Visibility::Launcher;
        facts.container().runtime_mounts = RuntimeMounts::Never;
    });
    insta::assert_snapshot!(table.text());
}

#[test]
fn additional_mounts() {
    let mut table = Table::of(&[Subject::RuntimeFiles]);
    let (nvidia, amd, auto) = (Vendor::Nvidia, Vendor::Amd, RuntimeMounts::Auto);
    for (server, build, runtime_mounts, vendor) in [
        (2025, "10.0.26100.1742", auto, nvidia),
        (2022, "10.0.20348.1547", auto, nvidia),
        (2025, "10.0.26100.1742", RuntimeMounts::Never, nvidia),
        (2025, "10.0.26100.1742", auto, amd),
        (2022, "10.0.20348.1547", auto, amd),
    ] {
        let words =
            format!("Server {server}, runtimeMounts {runtime_mounts}, a missing file for {vendor}");
        table.row(words, |facts| {
            facts.set_build(build);
            facts.models()[0].container =
                Arc::new(ContainerPolicy { runtime_mounts, ..Default::default() });
            facts.mount(vendor, additional("extra.dll", "extra.dll"));
        });
    }
    // Another version of the driver has another folder, so reinstalling the driver does not help.
    for (source, files) in [
        (r"B*\vulkan64.dll", &[r"B1\vulkan64.dll"][..]),
        (r"B1\vulkan64.dll", &[r"B2\vulkan64.dll"]),
        (r"B*\vulkan64.dll", &[]),
        (r"B*\vulkan64.dll", &[r"B2\vulkan64.dll", r"B1\vulkan64.dll"]),
    ] {
        let files_text = files.join(", ");
        table.row(format!("additional mount of {source}, folder with [{files_text}]"), |facts| {
            facts.mount(nvidia, additional(source, "vulkan-1.dll"));
            facts.container().exclude_mounts = Vec::new();
            facts.store().copy_to_vm.clear();
            if let StoreFiles::Listed(listed) = &mut facts.store().files {
                listed.extend(files.iter().map(|file| (*file).to_owned()));
            }
        });
    }
    insta::assert_snapshot!(table.text());
}
