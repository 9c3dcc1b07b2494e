//! Additional mounts whose folders are patterns.

use std::collections::BTreeSet;
use std::sync::Arc;

use devices::{
    AdditionalMount, ContainerPolicy, Disk, ModelPolicy, MountPlan, RuntimeMounts, plan_on_disk,
};
use host::{CopyToVmValue, HostSnapshot, StoreFiles, Vendor};
use proptest::prelude::*;

use crate::hosts::{AMD, gpu, host, resource, wddm};

const STORE: &str = r"C:\Windows\System32\DriverStore\FileRepository\drv_1002.inf";
const GPU: &str = r"PCI\VEN_1002\1&0\0";

/// Mounts only `source`, as `vulkan-1.dll`.
fn mounting(source: &str) -> ModelPolicy {
    let mount = AdditionalMount {
        source: source.parse().unwrap(),
        destination: "vulkan-1.dll".parse().unwrap(),
    };
    let container = ContainerPolicy {
        runtime_mounts: RuntimeMounts::Extra,
        additional: [(Vendor::Amd, vec![mount])].into(),
        ..ContainerPolicy::default()
    };
    ModelPolicy { container: Arc::new(container), ..wddm(1) }
}

fn with_files(files: StoreFiles) -> HostSnapshot {
    let mut adapter = gpu(1, AMD);
    adapter.driver_store.as_mut().unwrap().files = files;
    host(vec![adapter])
}

/// The paths below the driver store folder, and what was decided about each.
fn decisions(mounts: &MountPlan) -> Vec<String> {
    let decisions = mounts.files.iter().map(|decision| {
        let path = decision.file.host_path.strip_prefix(STORE).unwrap();
        format!("{}: {:?}", path.trim_start_matches('\\'), decision.outcome)
    });
    decisions.collect()
}

fn listed(source: &str, files: &[&str]) -> String {
    let files = files.iter().map(|file| (*file).to_owned()).collect();
    on_host(source, &with_files(StoreFiles::Listed(files)))
}

fn on_host(source: &str, snapshot: &HostSnapshot) -> String {
    let disk = Disk {
        exists: &|path| panic!("an inventory needs no disk: {path}"),
        folders: &|path| panic!("an inventory needs no disk: {path}"),
    };
    let resource = resource(mounting(source), snapshot);
    let plan = plan_on_disk(&resource, [GPU], &snapshot.host, disk).unwrap();
    decisions(&plan.mounts).join("; ")
}

/// The same on a live host with these files.
fn on_disk(source: &str, files: &[&str]) -> String {
    let files: Vec<String> = files.iter().map(|file| format!("{STORE}\\{file}")).collect();
    let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    let disk = Disk {
        exists: &|path| files.iter().any(|file| same(file, path)),
        folders: &|folder| {
            let start = format!("{folder}\\");
            let below = files
                .iter()
                .filter(|file| file.get(..start.len()).is_some_and(|head| same(head, &start)));
            let names = below.filter_map(|file| file[start.len()..].split_once('\\'));
            let names: BTreeSet<String> = names.map(|(name, _)| name.to_owned()).collect();
            names.into_iter().collect()
        },
    };
    let snapshot = with_files(StoreFiles::OnDisk);
    let resource = resource(mounting(source), &snapshot);
    let plan = plan_on_disk(&resource, [GPU], &snapshot.host, disk).unwrap();
    decisions(&plan.mounts).join("; ")
}

/// The folder's name has the number of the build, which the next driver changes.
#[test]
fn the_only_file_that_matches_is_mounted() {
    for files in [
        &[r"B420000\vulkan64.dll", r"B420000\amfrt64.dll", "vulkan64.dll"][..],
        &[r"B430000\vulkan64.dll", r"C1\vulkan64.dll", r"B430000\sub\vulkan64.dll"],
        // Another folder matches, and does not have the file.
        &[r"B430000\vulkan64.dll", r"Backup\other.dll"],
    ] {
        let expected = format!("{}: Mounted", files[0]);
        assert_eq!(listed(r"B*\vulkan64.dll", files), expected);
        assert_eq!(on_disk(r"B*\vulkan64.dll", files), expected);
    }
    let files = [r"b430000\VULKAN64.dll"];
    assert_eq!(listed(r"B*/vulkan64.dll", &files), r"b430000\VULKAN64.dll: Mounted");
    assert_eq!(on_disk(r"B*/vulkan64.dll", &files), r"b430000\vulkan64.dll: Mounted");
    let deep = [r"a\x12\y\z9\f.dll"];
    assert_eq!(listed(r"a\x*\Y\*9\f.dll", &deep), r"a\x12\y\z9\f.dll: Mounted");
    assert_eq!(on_disk(r"a\x*\Y\*9\f.dll", &deep), r"a\x12\y\z9\f.dll: Mounted");
}

#[test]
fn no_file_or_several_that_match_are_the_reason() {
    let none = [r"C1\vulkan64.dll", "vulkan64.dll"];
    let expected = r"B*\vulkan64.dll: NotOneMatch(None)";
    assert_eq!(listed(r"B*\vulkan64.dll", &none), expected);
    assert_eq!(on_disk(r"B*\vulkan64.dll", &none), expected);

    let several = [r"b2\vulkan64.dll", r"B1\vulkan64.dll", r"C\vulkan64.dll"];
    let expected = r#"B*\vulkan64.dll: NotOneMatch(Several([StorePath("B1\\vulkan64.dll"), StorePath("b2\\vulkan64.dll")]))"#;
    assert_eq!(listed(r"B*\vulkan64.dll", &several), expected);
    assert_eq!(on_disk(r"B*\vulkan64.dll", &several), expected);

    let snapshot = with_files(StoreFiles::Listed(several.map(str::to_owned).into()));
    let resource = resource(mounting(r"B*\vulkan64.dll"), &snapshot);
    let plan = devices::plan(&resource, [GPU], &snapshot.host, &|_| true).unwrap();
    let (_, reason) = plan.mounts.devices_without_mounts[0];
    assert_eq!(
        reason.to_string(),
        "every file is left out: 1 with a pattern that does not match one file"
    );
    let devices::MountOutcome::NotOneMatch(files) = &plan.mounts.files[0].outcome else {
        panic!("{:?}", plan.mounts)
    };
    let text = r"matches several files: B1\vulkan64.dll, b2\vulkan64.dll";
    assert_eq!(files.to_string(), text);
}

/// Windows takes both for one file.
#[test]
fn two_spellings_of_a_path_are_one_file() {
    let files = [r"B1\vulkan64.dll", "b1/VULKAN64.dll"];
    let expected = "b1\\VULKAN64.dll: Mounted";
    assert_eq!(listed(r"B*\vulkan64.dll", &files), expected);
}

/// An inventory is not trusted to list only files of the folder.
#[test]
fn a_listed_path_that_leads_out_of_the_folder_does_not_match() {
    let files =
        [r"..\vulkan64.dll", r"B1.\vulkan64.dll", r"B1:x\vulkan64.dll", r"\B1\vulkan64.dll"];
    let expected = r"*\vulkan64.dll: NotOneMatch(None)";
    assert_eq!(listed(r"*\vulkan64.dll", &files), expected);
}

/// Such an inventory says that every named file exists, and which folders exist only by the files
/// that the driver names.
#[test]
fn without_a_list_the_folders_are_those_of_the_driver() {
    let mut snapshot = with_files(StoreFiles::EveryNamed);
    let source = r"B*\vulkan64.dll";
    assert_eq!(on_host(source, &snapshot), r"B*\vulkan64.dll: NotOneMatch(None)");
    let store = snapshot.adapters[0].driver_store.as_mut().unwrap();
    for values in store.copy_to_vm.values_mut() {
        for name in ["2", "3"] {
            let file = CopyToVmValue::Single(format!(r"B420000\amf{name}.dll"));
            values.insert(name.to_owned(), file);
        }
    }
    assert_eq!(on_host(source, &snapshot), r"B420000\vulkan64.dll: Mounted");
}

#[test]
fn a_pattern_is_not_searched_if_its_file_is_not_mounted_anyway() {
    let snapshot = with_files(StoreFiles::OnDisk);
    let mut policy = mounting(r"B*\vulkan64.dll");
    Arc::make_mut(&mut policy.container).exclude_mounts = vec!["vulkan-1.dll".parse().unwrap()];
    let resource = resource(policy, &snapshot);
    let disk = Disk { exists: &|_| panic!("a file"), folders: &|_| panic!("a folder") };
    let plan = plan_on_disk(&resource, [GPU], &snapshot.host, disk).unwrap();
    assert_eq!(decisions(&plan.mounts), [r"B*\vulkan64.dll: Excluded"]);
}

proptest! {
    /// What `record` writes leads to the same mounts as the host itself.
    #[test]
    fn an_inventory_and_its_host_have_the_same_matches(
        files in prop::collection::btree_set(r"([ab]{1,2}\\){0,2}[xy]", 1..8),
        source in r"([ab*]{1,3}\\){1,2}[xy]",
    ) {
        prop_assume!(!source.contains("**"));
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        prop_assert_eq!(listed(&source, &files), on_disk(&source, &files));
    }
}
