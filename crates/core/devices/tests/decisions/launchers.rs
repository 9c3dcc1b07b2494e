//! Which containers get `directx-visible`.

use std::sync::Arc;

use devices::{
    AdditionalMount, ContainerPolicy, DeviceSet, DriverModel, Health, LAUNCHER_FILES, ModelPolicy,
    Moment, Plan, PlanError, ReplicaError, UnhealthyReason, Visibility, launcher_root, plan,
};
use host::{HostFacts, HostSnapshot, LauncherFiles, Vendor, Wow64};
use report::{NodeReport, UnhealthyKind, devices_healthy, devices_ready};

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
    let launcher = LauncherFiles::Folder(FOLDER.to_owned());
    HostFacts { is_this_machine: true, launcher, ..server("10.0.20348.1", "2.5") }
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
    on.host = HostFacts { launcher: LauncherFiles::NotProvided, ..this_machine() };
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

fn required() -> ModelPolicy {
    with(|container| container.visibility = Visibility::Required)
}

fn set_of(policy: ModelPolicy, on: &HostSnapshot) -> DeviceSet {
    DeviceSet::next(None, catalog([policy]).offer(on), Moment::default())
}

/// The API server has put `directx-visible` in front of the container's command already.
#[test]
fn devices_that_need_the_launcher_are_unhealthy_while_it_is_not_provided() {
    let mut on = host(vec![gpu(1, NVIDIA)]);
    let mut refusal = |launcher: LauncherFiles, policy: ModelPolicy| {
        on.host = HostFacts { launcher, ..this_machine() };
        let set = set_of(policy, &on);
        let health = set.resources[0].entries()[0].health;
        let planned = plan(&set.resources[0], [GPU], &on.host, &|path| path.starts_with(FOLDER));
        (health, planned.err())
    };
    let folder = || LauncherFiles::Folder(FOLDER.to_owned());
    let reason = UnhealthyReason::NoLauncher;
    let unhealthy = PlanError::Replica(ReplicaError::Unhealthy(GPU.to_owned(), reason));
    let waits = (Health::Unhealthy(reason), Some(unhealthy));
    assert_eq!(refusal(LauncherFiles::NotProvided, required()), waits);
    assert!(reason.to_string().starts_with("waits for directx-visible"), "{reason}");
    assert_eq!(refusal(folder(), required()), (Health::Healthy, None));
    assert_eq!(refusal(LauncherFiles::NotProvided, with(|_| {})), (Health::Healthy, None));
    // What is wrong with the device itself is reported first.
    let cordoned =
        ModelPolicy { cordoned: host::DeviceName::list("PCIROOT(0)#PCI(0100)"), ..required() };
    let (health, _) = refusal(LauncherFiles::NotProvided, cordoned);
    assert!(matches!(health, Health::Unhealthy(UnhealthyReason::Cordoned(_))), "{health:?}");
}

/// Programs that read the report see it, too: labels, conditions, Events and metrics.
#[test]
fn a_device_that_waits_for_the_launcher_is_reported_with_its_own_kind() {
    let mut on = host(vec![gpu(1, NVIDIA)]);
    on.host = HostFacts { launcher: LauncherFiles::NotProvided, ..this_machine() };
    let report = NodeReport::of(&set_of(required(), &on));
    let unhealthy = report.resources[0].devices[0].unhealthy.as_ref().unwrap();
    assert_eq!(unhealthy.kind, UnhealthyKind::NoLauncher);
    let healthy = devices_healthy(&report);
    assert!(healthy.message.own().contains("waits for directx-visible"), "{healthy:?}");
    let ready = devices_ready(&report, |_| unreachable!("it has no healthy device"));
    assert_eq!(ready.reason, "NoHealthyDevices");
}

/// The set is older than the disk.
#[test]
fn an_allocation_that_needs_the_launcher_is_refused_when_a_file_cannot_be_mounted() {
    let mut on = host(vec![gpu(1, NVIDIA)]);
    on.host = this_machine();
    let refusal = |policy: ModelPolicy, exists: &dyn Fn(&str) -> bool| {
        let set = set_of(policy, &on);
        plan(&set.resources[0], [GPU], &on.host, exists).unwrap_err().to_string()
    };
    let name = "and the visibility of directx.microsoft.com/display is required";
    let missing = format!(r"{FOLDER}\directx-visible-filter.dll");
    assert_eq!(
        refusal(required(), &|path| path.starts_with(FOLDER) && path != missing),
        format!("directx-visible is not mounted: {missing} does not exist, {name}")
    );
    let excluding = with(|container| {
        container.visibility = Visibility::Required;
        container.exclude_mounts = vec!["directx-visible.exe".parse().unwrap()];
    });
    assert_eq!(
        refusal(excluding, &|path| path.starts_with(FOLDER)),
        format!("directx-visible is not mounted: directx-visible.exe is in excludeMounts, {name}")
    );
}

#[test]
fn a_prediction_counts_the_launcher_as_provided() {
    let on = host(vec![gpu(1, NVIDIA)]);
    assert_eq!(launcher(&planned(required(), &on, GPU, &never)), MOUNTS);
}

/// The daemon follows an inventory on a machine that cannot provide the files.
#[test]
fn a_made_up_host_has_no_launcher_where_it_is_not_provided() {
    let mut on = host(vec![gpu(1, NVIDIA)]);
    on.host.launcher = LauncherFiles::NotProvided;
    let plan = planned(with_launcher(wddm(1)), &on, GPU, &never);
    assert!(!plan.mounts.mounted().any(|file| file.host_path.contains("directx-visible")));
    assert_eq!(warnings(&plan).len(), 1);
    assert!(!set_of(required(), &on).resources[0].entries()[0].health.is_healthy());
}
