//! The additional mounts of the configuration and the plugin's defaults under every value of
//! `runtimeMounts`.

use std::collections::BTreeSet;
use std::sync::Arc;

use devices::{
    AdditionalMount, ContainerPolicy, Destination, DriverModel, ModelPolicy, MountOrigin,
    MountOutcome, MountPlan, NoMountsReason, RuntimeMounts, plan,
};
use host::{FileName, HostSnapshot, StoreFiles, StorePattern, Vendor, Wow64};
use proptest::prelude::*;

use crate::hosts::{AMD, NVIDIA, gpu, host, model, resource, server, wddm};

const SERVER_2022: &str = "10.0.20348.1547";
const SERVER_2025: &str = "10.0.26100.1";
const FIRST: &str = r"PCI\VEN_10DE\1&0\0";
const SECOND: &str = r"PCI\VEN_10DE\2&0\0";

fn mount(name: &str) -> AdditionalMount {
    AdditionalMount {
        source: name.parse::<StorePattern>().unwrap(),
        destination: name.parse::<Destination>().unwrap(),
    }
}

/// One additional mount for System32, one for `SysWOW64`, and one of another vendor.
fn policy(runtime_mounts: RuntimeMounts) -> ModelPolicy {
    let mut container = ContainerPolicy { runtime_mounts, ..ContainerPolicy::default() };
    container.additional.insert(Vendor::Nvidia, vec![mount("extra64.dll")]);
    container.additional_wow64.insert(Vendor::Nvidia, vec![mount("extra32.dll")]);
    container.additional.insert(Vendor::Amd, vec![mount("amd.dll")]);
    ModelPolicy { container: Arc::new(container), ..wddm(2) }
}

fn on_build(build: &str) -> HostSnapshot {
    HostSnapshot { host: server(build, "2.5"), ..host(vec![gpu(1, NVIDIA), gpu(2, NVIDIA)]) }
}

fn mounts(policy: ModelPolicy, snapshot: &HostSnapshot, ids: &[&str]) -> MountPlan {
    let never = |path: &str| panic!("an inventory needs no disk: {path}");
    plan(&resource(policy, snapshot), ids.iter().copied(), &snapshot.host, &never).unwrap().mounts
}

/// The names of the files with this outcome.
fn with_outcome(mounts: &MountPlan, outcome: &MountOutcome) -> Vec<String> {
    let files = mounts.files.iter().filter(|file| file.outcome == *outcome);
    files.map(|file| file.file.host_path.rsplit('\\').next().unwrap().to_owned()).collect()
}

const NOT_APPLIED: MountOutcome = MountOutcome::NotApplied;
/// The additional mounts and the plugin's defaults.
const EXTRAS: [&str; 5] =
    ["extra64.dll", "nvidia-smi.exe", "vulkaninfo-x64.exe", "extra32.dll", "vulkaninfo-x86.exe"];

#[test]
fn runtime_mounts_decide_about_additional_mounts() {
    let none: &[&str] = &[];
    let all: &[&str] = &[
        "runtime64.dll",
        "extra64.dll",
        "nvidia-smi.exe",
        "vulkaninfo-x64.exe",
        "runtime32.dll",
        "extra32.dll",
        "vulkaninfo-x86.exe",
    ];
    let extras = &EXTRAS[..];
    for (runtime_mounts, build, mounted, not_applied) in [
        (RuntimeMounts::Auto, SERVER_2022, all, none),
        (RuntimeMounts::Auto, SERVER_2025, none, extras),
        (RuntimeMounts::Always, SERVER_2022, all, none),
        (RuntimeMounts::Always, SERVER_2025, all, none),
        (RuntimeMounts::Never, SERVER_2022, none, none),
        (RuntimeMounts::Never, SERVER_2025, none, none),
        (RuntimeMounts::Extra, SERVER_2022, extras, none),
        (RuntimeMounts::Extra, SERVER_2025, extras, none),
    ] {
        let mounts = mounts(policy(runtime_mounts), &on_build(build), &[FIRST]);
        let case = format!("{runtime_mounts:?} on {build}");
        assert_eq!(with_outcome(&mounts, &MountOutcome::Mounted), mounted, "{case}");
        assert_eq!(with_outcome(&mounts, &NOT_APPLIED), not_applied, "{case}");
        let device_without_mounts = mounted.is_empty();
        assert_eq!(
            mounts.devices_without_mounts.len(),
            usize::from(device_without_mounts),
            "{case}"
        );
    }
}

/// A virtual machine with a paravirtualized GPU has the driver of its host in
/// `HostDriverStore`, where containers have it too. Only a container gets no mounts.
#[test]
fn additional_mounts_apply_to_a_host_driver_store_except_inside_a_container() {
    let mut snapshot = on_build(SERVER_2022);
    let store = snapshot.adapters[0].driver_store.as_mut().unwrap();
    store.path = r"C:\Windows\System32\HostDriverStore\FileRepository\nv.inf_amd64_1".to_owned();
    store.copy_to_vm.clear();
    let guest = mounts(policy(RuntimeMounts::Auto), &snapshot, &[FIRST]);
    let extra = guest.mounted().find(|file| file.host_path.ends_with("extra64.dll")).unwrap();
    assert!(extra.host_path.contains("HostDriverStore"), "{}", extra.host_path);

    snapshot.host.inside_container = true;
    let inside = mounts(policy(RuntimeMounts::Always), &snapshot, &[FIRST]);
    assert_eq!(inside.mounted().count(), 0);
    let (_, reason) = inside.devices_without_mounts[0];
    assert_eq!(reason, NoMountsReason::InsideContainer);
}

#[test]
fn extra_mounts_nothing_for_a_vendor_without_additional_mounts() {
    let snapshot = HostSnapshot { host: server(SERVER_2025, "2.5"), ..host(vec![gpu(1, 0x8086)]) };
    let mounts = mounts(policy(RuntimeMounts::Extra), &snapshot, &[r"PCI\VEN_8086\1&0\0"]);
    assert_eq!(mounts.files, []);
    let (_, reason) = mounts.devices_without_mounts[0];
    assert_eq!(reason, NoMountsReason::NoAdditionalMounts(Vendor::Intel));
}

#[test]
fn only_mounts_that_would_apply_are_reported_as_dropped() {
    // Two devices with one driver drop the same files, which are reported once.
    let two = mounts(policy(RuntimeMounts::Auto), &on_build(SERVER_2025), &[FIRST, SECOND]);
    assert_eq!(with_outcome(&two, &NOT_APPLIED), EXTRAS);

    let mut without_wow64 = on_build(SERVER_2025);
    without_wow64.host.wow64 = Wow64::Absent;
    let system32 = mounts(policy(RuntimeMounts::Auto), &without_wow64, &[FIRST]);
    assert_eq!(
        with_outcome(&system32, &NOT_APPLIED),
        ["extra64.dll", "nvidia-smi.exe", "vulkaninfo-x64.exe"]
    );

    let mut excluding = policy(RuntimeMounts::Auto);
    Arc::make_mut(&mut excluding.container).exclude_mounts =
        ["EXTRA64.dll", "VulkanInfo.exe"].map(|name| name.parse::<FileName>().unwrap()).into();
    let excluded = mounts(excluding, &on_build(SERVER_2025), &[FIRST]);
    assert_eq!(with_outcome(&excluded, &NOT_APPLIED), ["nvidia-smi.exe", "extra32.dll"]);

    let mut without_defaults = on_build(SERVER_2025);
    without_defaults.adapters[0].driver_store.as_mut().unwrap().files =
        StoreFiles::Listed(["nvidia-smi.exe".to_owned()].into());
    let existing = mounts(policy(RuntimeMounts::Auto), &without_defaults, &[FIRST]);
    assert_eq!(
        with_outcome(&existing, &NOT_APPLIED),
        ["extra64.dll", "nvidia-smi.exe", "extra32.dll"],
        "a default is optional"
    );

    let amd = HostSnapshot { host: server(SERVER_2025, "2.5"), ..host(vec![gpu(1, AMD)]) };
    let other_vendor = mounts(policy(RuntimeMounts::Auto), &amd, &[r"PCI\VEN_1002\1&0\0"]);
    assert_eq!(with_outcome(&other_vendor, &NOT_APPLIED), ["amd.dll"]);

    // The legacy model mounts nothing on any build.
    let legacy = ModelPolicy {
        container: policy(RuntimeMounts::Auto).container,
        ..model(DriverModel::Legacy)
    };
    assert!(mounts(legacy, &on_build(SERVER_2025), &[FIRST]).files.is_empty());
}

#[test]
fn extra_mounts_only_files_that_exist() {
    let mut snapshot = on_build(SERVER_2025);
    snapshot.adapters[0].driver_store.as_mut().unwrap().files =
        StoreFiles::Listed(["extra64.dll".to_owned()].into());
    let mounts = mounts(policy(RuntimeMounts::Extra), &snapshot, &[FIRST]);
    assert_eq!(with_outcome(&mounts, &MountOutcome::Mounted), ["extra64.dll"]);
    assert_eq!(
        with_outcome(&mounts, &MountOutcome::Missing),
        ["nvidia-smi.exe", "vulkaninfo-x64.exe", "extra32.dll", "vulkaninfo-x86.exe"]
    );
}

proptest! {
    /// Whatever the configuration names, `extra` mounts no other file but the three defaults, and
    /// `auto` reports every one of these files either as considered or as not applied.
    #[test]
    fn additional_mounts_are_never_dropped_silently(
        names in prop::collection::btree_set("gpu_[a-z]{1,6}\\.dll", 0..5),
        old in any::<bool>(),
        extra in any::<bool>(),
    ) {
        let runtime_mounts = if extra { RuntimeMounts::Extra } else { RuntimeMounts::Auto };
        let mut policy = policy(runtime_mounts);
        let container = Arc::make_mut(&mut policy.container);
        container.additional_wow64.clear();
        container.additional.insert(Vendor::Nvidia, names.iter().map(|n| mount(n)).collect());
        let snapshot = on_build(if old { SERVER_2022 } else { SERVER_2025 });
        let mounts = mounts(policy, &snapshot, &[FIRST]);
        for name in &names {
            let end = format!("\\{name}");
            prop_assert!(mounts.files.iter().any(|f| f.file.host_path.ends_with(&end)), "{name}");
        }
        if extra {
            prop_assert_eq!(mounts.mounted().count(), names.len() + 3);
        } else if !old {
            prop_assert_eq!(mounts.mounted().count(), 0);
            prop_assert_eq!(with_outcome(&mounts, &NOT_APPLIED).len(), names.len() + 3);
        }
    }
}

/// The destinations of the defaults for a vendor.
fn defaults(vendor: u32) -> Vec<String> {
    let snapshot = host(vec![gpu(1, vendor)]);
    let mounts = mounts(wddm(1), &snapshot, &[&format!(r"PCI\VEN_{vendor:04X}\1&0\0")]);
    let files = mounts.files.iter().map(|decision| &decision.file);
    let defaults = files.filter(|file| file.origin == MountOrigin::Default);
    let names = defaults.map(|file| file.container_path.rsplit('\\').next().unwrap().to_owned());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn the_page_names_every_default() {
    let page = include_str!("../../../../../docs/configuration.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let names: Vec<_> = defaults(NVIDIA).iter().map(|name| format!("`{name}`")).collect();
    let (last, others) = names.split_last().unwrap();
    let others = others.join(", ");
    let sentence = format!("The plugin's defaults are {others} and {last} of NVIDIA's driver");
    assert!(page.contains(&sentence), "{sentence}");
    for vendor in [AMD, 0x8086, 0x5143, 0x1A03] {
        assert_eq!(defaults(vendor), [""; 0], "the page names only defaults of NVIDIA");
    }
}
