//! Why a container gets no runtime files of a device, or not all of them.

use std::sync::Arc;

use devices::{
    AdditionalMount, ContainerPolicy, DriverModel, LeftOut, ModelPolicy, MountPlan, NoMountsReason,
    RuntimeMounts, plan,
};
use host::{HostSnapshot, StoreFiles, Vendor, Wow64};
use proptest::prelude::*;

use crate::hosts::{AMD, gpu, host, model, resource, server, wddm};

/// The devices of vendors that have no defaults.
const FIRST: &str = r"PCI\VEN_1002\1&0\0";
const SECOND: &str = r"PCI\VEN_1002\2&0\0";

fn with(change: impl FnOnce(&mut ContainerPolicy)) -> ModelPolicy {
    let mut container = ContainerPolicy::default();
    change(&mut container);
    ModelPolicy { container: Arc::new(container), ..wddm(1) }
}

fn excluding(names: &[&str]) -> ModelPolicy {
    with(|c| c.exclude_mounts = names.iter().map(|name| name.parse().unwrap()).collect())
}

fn extra(source: &str) -> AdditionalMount {
    AdditionalMount { source: source.parse().unwrap(), destination: source.parse().unwrap() }
}

fn mounts(policy: ModelPolicy, snapshot: &HostSnapshot, ids: &[&str]) -> MountPlan {
    let never = |path: &str| panic!("an inventory needs no disk: {path}");
    plan(&resource(policy, snapshot), ids.iter().copied(), &snapshot.host, &never).unwrap().mounts
}

/// The reason for the only device of a host with Windows Server 2022, after `change`.
fn reason(
    policy: ModelPolicy,
    change: impl FnOnce(&mut HostSnapshot),
) -> (Option<NoMountsReason>, usize) {
    let mut snapshot = host(vec![gpu(1, AMD)]);
    change(&mut snapshot);
    let plan = mounts(policy, &snapshot, &[FIRST]);
    let reasons: Vec<_> = plan.devices_without_mounts.iter().map(|(_, reason)| *reason).collect();
    assert!(reasons.len() <= 1, "{reasons:?}");
    (reasons.first().copied(), plan.mounted().count())
}

fn unchanged(_: &mut HostSnapshot) {}

fn on_server_2025(snapshot: &mut HostSnapshot) {
    snapshot.host = server("10.0.26100.1", "2.5");
}

fn without_32_bit(snapshot: &mut HostSnapshot) {
    snapshot.host.wow64 = Wow64::Absent;
}

/// The folder has only `files` of `runtime64.dll` and `runtime32.dll`, which the driver names for
/// System32 and `SysWOW64` with the same destination.
fn with_files(files: &'static [&'static str]) -> impl FnOnce(&mut HostSnapshot) {
    move |snapshot| {
        let store = snapshot.adapters[0].driver_store.as_mut().unwrap();
        store.files = StoreFiles::Listed(files.iter().map(|file| (*file).to_owned()).collect());
    }
}

fn names_nothing(snapshot: &mut HostSnapshot) {
    snapshot.adapters[0].driver_store.as_mut().unwrap().copy_to_vm.clear();
}

fn names_only_32_bit(snapshot: &mut HostSnapshot) {
    let copy_to_vm = &mut snapshot.adapters[0].driver_store.as_mut().unwrap().copy_to_vm;
    copy_to_vm.retain(|key, _| key.to_string().ends_with("Wow64"));
}

const NONE: LeftOut = LeftOut {
    excluded: 0,
    missing: 0,
    not_one_match: 0,
    wow64_omitted: 0,
    no_wow64: 0,
    destination_taken: 0,
};

#[test]
fn a_device_without_mounts_has_the_reason_of_the_configuration() {
    let mode = |mode| with(|c| c.runtime_mounts = mode);
    let none_for_amd = NoMountsReason::NoAdditionalMounts(Vendor::Amd);
    let of_another_vendor = with(|c| {
        c.runtime_mounts = RuntimeMounts::Extra;
        c.additional.insert(Vendor::Nvidia, vec![extra("extra.dll")]);
    });
    let for_32_bit = with(|c| {
        c.runtime_mounts = RuntimeMounts::Extra;
        c.additional_wow64.insert(Vendor::Amd, vec![extra("extra.dll")]);
    });
    let left_out = NoMountsReason::LeftOut;
    for (name, found, expected) in [
        ("legacy", reason(model(DriverModel::Legacy), unchanged), NoMountsReason::Legacy),
        ("never", reason(mode(RuntimeMounts::Never), unchanged), NoMountsReason::Never),
        ("extra", reason(mode(RuntimeMounts::Extra), unchanged), none_for_amd),
        ("extra of another vendor", reason(of_another_vendor, unchanged), none_for_amd),
        (
            "extra for SysWOW64, which the host lacks",
            reason(for_32_bit, without_32_bit),
            left_out(LeftOut { no_wow64: 1, ..NONE }),
        ),
        (
            "excluded in both folders",
            reason(excluding(&["RUNTIME.dll"]), unchanged),
            left_out(LeftOut { excluded: 2, ..NONE }),
        ),
        (
            "only for SysWOW64, which is omitted",
            reason(with(|c| c.omit_wow64 = true), names_only_32_bit),
            left_out(LeftOut { wow64_omitted: 1, ..NONE }),
        ),
        (
            "each file for its own reason",
            reason(with(|c| c.omit_wow64 = true), with_files(&["runtime32.dll"])),
            left_out(LeftOut { missing: 1, wow64_omitted: 1, ..NONE }),
        ),
    ] {
        assert_eq!(found, (Some(expected), 0), "{name}");
    }
}

#[test]
fn a_device_without_mounts_has_the_reason_of_the_host() {
    let without_store = |snapshot: &mut HostSnapshot| snapshot.adapters[0].driver_store = None;
    let in_container = |snapshot: &mut HostSnapshot| snapshot.host.inside_container = true;
    let missing = NoMountsReason::LeftOut(LeftOut { missing: 2, ..NONE });
    for (name, found, expected) in [
        ("no file exists", reason(wddm(1), with_files(&["other.dll"])), missing),
        ("nothing is named", reason(wddm(1), names_nothing), NoMountsReason::NoneNamed),
        (
            "nothing is named, whatever is excluded",
            reason(excluding(&["runtime.dll"]), names_nothing),
            NoMountsReason::NoneNamed,
        ),
        ("provided by Windows", reason(wddm(1), on_server_2025), NoMountsReason::MountedByWindows),
        ("no driver store", reason(wddm(1), without_store), NoMountsReason::NoDriverStore),
        ("inside a container", reason(wddm(1), in_container), NoMountsReason::InsideContainer),
    ] {
        assert_eq!(found, (Some(expected), 0), "{name}");
    }
}

#[test]
fn a_device_with_a_mounted_file_has_no_reason() {
    let always = with(|c| c.runtime_mounts = RuntimeMounts::Always);
    for (name, found, mounted) in [
        ("auto", reason(wddm(1), unchanged), 2),
        ("always", reason(always, on_server_2025), 2),
        ("one folder", reason(wddm(1), without_32_bit), 1),
        ("one file exists", reason(wddm(1), with_files(&["runtime32.dll"])), 1),
    ] {
        assert_eq!(found, (None, mounted), "{name}");
    }
}

#[test]
fn a_reason_names_the_counts_that_are_not_zero() {
    let left_out = LeftOut {
        excluded: 14,
        missing: 1,
        not_one_match: 5,
        wow64_omitted: 2,
        no_wow64: 3,
        destination_taken: 4,
    };
    assert_eq!(
        NoMountsReason::LeftOut(left_out).to_string(),
        "every file is left out: 14 in excludeMounts, 1 missing, 5 with a pattern that \
         does not match one file, 2 for 32-bit programs (runtimeFilesWow64 is false), 3 for 32-bit programs, which the host does not run, 4 at \
         the destination of another file"
    );
    let excluded = LeftOut { excluded: 14, ..LeftOut::default() };
    let text = NoMountsReason::LeftOut(excluded).to_string();
    assert_eq!(text, "every file is left out: 14 in excludeMounts");
}

/// Defaults are optional, so a driver without them lacks nothing.
#[test]
fn defaults_count_only_if_they_are_excluded() {
    let mut snapshot = host(vec![gpu(1, crate::hosts::NVIDIA)]);
    let store = snapshot.adapters[0].driver_store.as_mut().unwrap();
    store.files = StoreFiles::Listed(["runtime64.dll".to_owned()].into());
    store.copy_to_vm.retain(|key, _| !key.to_string().ends_with("Wow64"));
    let device = [r"PCI\VEN_10DE\1&0\0"];
    let plan = mounts(wddm(1), &snapshot, &device);
    assert_eq!(LeftOut::of(&plan.files), LeftOut::default());
    let plan = mounts(excluding(&["vulkaninfo.exe"]), &snapshot, &device);
    assert_eq!(LeftOut::of(&plan.files), LeftOut { excluded: 2, ..LeftOut::default() });
    assert_eq!(plan.devices_without_mounts, []);
}

/// The second device has no mounts of its own, and its files are in the container.
#[test]
fn devices_with_the_same_driver_share_their_files() {
    let snapshot = host(vec![gpu(1, AMD), gpu(2, AMD)]);
    let plan = mounts(wddm(1), &snapshot, &[FIRST, SECOND]);
    assert_eq!((plan.mounted().count(), plan.devices_without_mounts.len()), (2, 0));
    let plan = mounts(excluding(&["runtime.dll"]), &snapshot, &[FIRST, SECOND]);
    assert_eq!((plan.mounted().count(), plan.devices_without_mounts.len()), (0, 2));
}

proptest! {
    /// A device has files in the container or a reason why not, never both and never neither.
    #[test]
    fn a_device_has_files_or_a_reason(
        runtime_mounts in prop::sample::select(vec![
            RuntimeMounts::Auto, RuntimeMounts::Always, RuntimeMounts::Never, RuntimeMounts::Extra,
        ]),
        is_legacy in any::<bool>(),
        has_additional in any::<bool>(),
        is_excluded in any::<bool>(),
        omit_wow64 in any::<bool>(),
        has_wow64 in any::<bool>(),
        is_server_2025 in any::<bool>(),
        files in prop::collection::btree_set(
            prop::sample::select(vec!["runtime64.dll", "runtime32.dll", "extra.dll"]), 1..4,
        ),
        vendors in prop::collection::vec(prop::sample::select(vec![0x1002_u32, 0x10DE]), 1..4),
    ) {
        let mut policy = with(|c| {
            c.runtime_mounts = runtime_mounts;
            c.omit_wow64 = omit_wow64;
            if is_excluded {
                c.exclude_mounts = vec!["runtime.dll".parse().unwrap()];
            }
            if has_additional {
                c.additional.insert(Vendor::Amd, vec![extra("extra.dll")]);
            }
        });
        if is_legacy {
            policy = ModelPolicy { container: policy.container, ..model(DriverModel::Legacy) };
        }
        let numbered = (1..).zip(&vendors);
        let mut snapshot = host(numbered.map(|(n, vendor)| gpu(n, *vendor)).collect());
        let build = if is_server_2025 { "10.0.26100.1" } else { "10.0.20348.1" };
        snapshot.host = server(build, "2.5");
        snapshot.host.wow64 = Wow64::from(has_wow64);
        for adapter in &mut snapshot.adapters {
            let listed = files.iter().map(|file| (*file).to_owned()).collect();
            adapter.driver_store.as_mut().unwrap().files = StoreFiles::Listed(listed);
        }
        let numbered = (1..).zip(&vendors);
        let ids: Vec<String> =
            numbered.map(|(n, vendor)| format!(r"PCI\VEN_{vendor:04X}\{n}&0\0")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let plan = mounts(policy, &snapshot, &ids);
        for adapter in &snapshot.adapters {
            let store = &adapter.driver_store.as_ref().unwrap().path;
            let has_files = plan.mounted().any(|file| file.host_path.starts_with(store.as_str()));
            let reasons =
                plan.devices_without_mounts.iter().filter(|(luid, _)| *luid == adapter.luid);
            prop_assert_eq!(reasons.count(), usize::from(!has_files), "{:?}", plan);
        }
    }
}
