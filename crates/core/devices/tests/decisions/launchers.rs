//! Which containers get `directx-visible`.

use std::sync::Arc;

use devices::{
    AdditionalMount, ContainerPolicy, DeviceSet, DriverModel, HostFacts, HostSnapshot,
    LAUNCHER_FILES, ModelPolicy, Moment, Plan, Vendor, Visibility, Wow64, launcher_root, plan,
};

use crate::hosts::{NVIDIA, catalog, gpu, host, model, npu, server, wddm};

const GPU: &str = r"PCI\VEN_10DE\1&0\0";

const MOUNTS: [&str; 3] = [
    r"C:\Windows\System32\directx-visible.exe",
    r"C:\Windows\System32\directx-visible-filter.dll",
    r"C:\Windows\SysWOW64\directx-visible-filter32.dll",
];

fn with_launcher(mut policy: ModelPolicy) -> ModelPolicy {
    Arc::make_mut(&mut policy.container).visibility = Visibility::Launcher;
    policy
}

fn with(change: impl FnOnce(&mut ContainerPolicy)) -> ModelPolicy {
    let mut policy = with_launcher(wddm(1));
    change(Arc::make_mut(&mut policy.container));
    policy
}

/// Plans the replica `id` of the first resource, where `exists` says which files this machine has.
fn planned(
    policy: ModelPolicy,
    on: &HostSnapshot,
    id: &str,
    exists: &dyn Fn(&str) -> bool,
) -> Plan {
    let set = DeviceSet::next(None, catalog([policy]).offer(on), Moment::default());
    plan(&set.resources[0], [id], &on.host, exists).unwrap()
}

fn never(path: &str) -> bool {
    panic!("an inventory needs no disk: {path}")
}

/// The folder with the files on this machine.
const FOLDER: &str = r"D:\ProgramData\directx-device-plugin\visible\0123456789abcdef";

fn this_machine() -> HostFacts {
    let launcher_folder = Some(FOLDER.to_owned());
    HostFacts { is_this_machine: true, launcher_folder, ..server("10.0.20348.1", "2.5") }
}

/// The launcher's mounts; all of them are from one folder.
fn launcher(plan: &Plan) -> Vec<&str> {
    let is_launcher = |path: &str| path.contains("directx-visible");
    let mounted = plan.mounts.mounted().filter(|file| is_launcher(&file.container_path));
    mounted
        .map(|file| {
            let (folder, name) = file.host_path.rsplit_once('\\').unwrap();
            assert!(folder == FOLDER || folder.ends_with(r"\visible\simulated"), "{folder}");
            assert!(LAUNCHER_FILES.contains(&name) && file.container_path.ends_with(name));
            file.container_path.as_str()
        })
        .collect()
}

fn warnings(plan: &Plan) -> Vec<String> {
    plan.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn every_device_entry_gets_the_launcher_if_the_resource_has_it() {
    let one = host(vec![gpu(1, NVIDIA)]);
    let old = HostSnapshot { host: server("10.0.17763.1", "2.1"), ..one.clone() };
    let new = HostSnapshot { host: server("10.0.26100.1", "2.7"), ..one.clone() };
    for on in [&one, &old, &new] {
        let plan = planned(with_launcher(wddm(1)), on, GPU, &never);
        assert_eq!(launcher(&plan), MOUNTS);
        assert!(launcher(&planned(wddm(1), on, GPU, &never)).is_empty());
    }
    let plan = planned(with(|c| c.omit_wow64 = true), &one, GPU, &never);
    assert_eq!(launcher(&plan), MOUNTS[..2], "not the filter for 32-bit programs");
    let mut legacy = model(DriverModel::Legacy);
    legacy.match_name = None;
    assert_eq!(launcher(&planned(with_launcher(legacy), &one, GPU, &never)), MOUNTS);
    let npus = host(vec![npu(2)]);
    let plan =
        planned(with_launcher(model(DriverModel::Mcdm)), &npus, r"PCI\VEN_8086\2&0\0", &never);
    assert_eq!(launcher(&plan), MOUNTS);
}

/// The kubelet keeps one of several mounts of a container path, and which one is not defined.
#[test]
fn the_resources_of_one_container_agree_about_the_mounts() {
    let both = host(vec![gpu(1, NVIDIA), npu(2)]);
    let models = [wddm(1), model(DriverModel::Mcdm)].map(with_launcher);
    let set = DeviceSet::next(None, catalog(models).offer(&both), Moment::default());
    let mounts = |n: usize, id: &str| {
        let plan = plan(&set.resources[n], [id], &both.host, &never).unwrap();
        let paths = plan.mounts.mounted().map(|f| (f.container_path.clone(), f.host_path.clone()));
        paths.filter(|(path, _)| MOUNTS.contains(&path.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(mounts(0, GPU), mounts(1, r"PCI\VEN_8086\2&0\0"));
    assert_eq!(mounts(0, GPU).len(), MOUNTS.len());
}

#[test]
fn the_filter_of_32_bit_programs_may_be_missing() {
    let mut on = host(vec![gpu(1, NVIDIA)]);
    on.host.wow64 = Wow64::Absent;
    assert_eq!(launcher(&planned(with_launcher(wddm(1)), &on, GPU, &never)), MOUNTS[..2]);
    on.host = this_machine();
    let exists = |path: &str| path.contains("ProgramData") && !path.contains("filter32");
    let plan = planned(with_launcher(wddm(1)), &on, GPU, &exists);
    assert_eq!((launcher(&plan), warnings(&plan)), (MOUNTS[..2].to_vec(), vec![]));
}

#[test]
fn on_this_machine_only_files_that_exist_are_mounted_and_none_over_files_of_the_host() {
    let mut on = host(vec![gpu(1, NVIDIA)]);
    on.host = HostFacts { system_root: r"D:\Windows".parse().unwrap(), ..this_machine() };
    assert!(FOLDER.starts_with(&launcher_root(&on.host.system_root)));
    let of = |exists: &dyn Fn(&str) -> bool| {
        let plan = planned(with_launcher(wddm(1)), &on, GPU, exists);
        let mounted: Vec<String> = launcher(&plan).into_iter().map(str::to_owned).collect();
        (mounted, warnings(&plan).join("; "))
    };
    let provided = |path: &str| path.starts_with(FOLDER);
    assert_eq!(of(&provided), (MOUNTS.map(str::to_owned).to_vec(), String::new()));
    // The program and its filter are mounted together or not at all.
    for missing in &LAUNCHER_FILES[..2] {
        let path = format!("{FOLDER}\\{missing}");
        let expected = format!("directx-visible is not mounted: {path} does not exist");
        assert_eq!(of(&|p| provided(p) && p != path), (vec![], expected));
        let path = format!(r"D:\Windows\System32\{missing}");
        let expected = format!("directx-visible is not mounted: {path} exists on the host");
        assert_eq!(of(&|p| provided(p) || p == path), (vec![], expected));
    }
    let (mounted, warnings) = of(&|p| provided(p) || p.starts_with(r"D:\Windows\SysWOW64"));
    assert_eq!((mounted.len(), warnings.as_str()), (2, ""));
}

/// The files may exist, but come from another source than the plugin.
#[test]
fn on_this_machine_nothing_is_mounted_while_the_folder_has_a_problem() {
    let mut on = host(vec![gpu(1, NVIDIA)]);
    on.host = HostFacts { launcher_folder: None, ..this_machine() };
    let exists = |path: &str| path.contains("ProgramData");
    let plan = planned(with_launcher(wddm(1)), &on, GPU, &exists);
    assert!(launcher(&plan).is_empty());
    let expected = "directx-visible is not mounted: directx-visible.exe is not provided on this \
                    node; `status` reports the reason";
    assert_eq!(warnings(&plan), [expected]);
}

#[test]
fn configured_mounts_and_exclusions_come_first() {
    let on = host(vec![gpu(1, NVIDIA)]);
    let taken = with(|container| {
        let destination = "DirectX-Visible.exe".parse().unwrap();
        let mount = AdditionalMount { source: "a.exe".parse().unwrap(), destination };
        container.additional.insert(Vendor::Nvidia, vec![mount]);
    });
    let plan = planned(taken, &on, GPU, &never);
    let paths: Vec<&str> = plan.mounts.mounted().map(|f| f.host_path.as_str()).collect();
    assert!(paths.iter().any(|path| path.ends_with(r"\a.exe")), "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains("ProgramData")), "{paths:?}");
    assert_eq!(
        warnings(&plan),
        [
            r"directx-visible is not mounted: C:\Windows\System32\directx-visible.exe is the destination of another file"
        ]
    );
    let excluding = |name: &str| {
        let name = name.parse().unwrap();
        planned(with(|container| container.exclude_mounts = vec![name]), &on, GPU, &never)
    };
    let plan = excluding("directx-visible-FILTER.dll");
    assert!(launcher(&plan).is_empty());
    assert_eq!(
        warnings(&plan),
        ["directx-visible is not mounted: directx-visible-filter.dll is in excludeMounts"]
    );
    assert_eq!(launcher(&excluding("directx-visible-filter32.dll")), MOUNTS[..2]);
}
