//! Allocations and preferences on hosts with arbitrary registry values, device names and
//! paths.
//!
//! A container always gets one device, only files from inside the driver's folder, each
//! under a unique file name, and the same for any order of its replicas.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};

use arbitrary::{Result, Unstructured};
use devices::{
    Catalog, Device, DeviceSet, DriverModel, LAUNCHER_FILES, Moment, MountOrigin, Plan,
    ResourceDevices, launcher_root, plan, preferred_allocation,
};
use host::{
    Adapter, Attribute, Attributes, CopyToVmKey, CopyToVmKind, CopyToVmValue, DriverStore,
    HardwareId, HostBuild, HostFacts, HostSnapshot, LocationPath, Luid, NvidiaFacts, PnpDevice,
    PnpId, StoreFiles, Wow64,
};

/// Texts that are likely to conflict with each other. Other texts are used as well.
const TEXTS: &[&str] = &[
    "a.dll",
    "A.DLL",
    "b.dll",
    r"sub\a.dll",
    "sub/a.dll",
    r"..\a.dll",
    r"C:\a.dll",
    r"\a.dll",
    "nul",
    "a.dll:s",
    "a.dll.",
    "",
    "nvidia-smi.exe",
    "é.dll",
    "É.dll",
    "ß.dll",
    "SS.dll",
];
const STORES: &[&str] = &[
    r"C:\Windows\System32\DriverStore\FileRepository\nv",
    r"C:\Windows\System32\DriverStore\FileRepository\amd\",
    r"C:\Windows\System32\HostDriverStore\FileRepository\x",
    r"C:\store\nv",
];
const CONFIGURATIONS: &[(&[DriverModel], &str)] = &[
    (&[], ""),
    (
        &[],
        "multitenancy: 3\nmultiDevice: first\nruntimeMounts: always\nincludeIntegrated: true\npublishNuma: true",
    ),
    (
        &[],
        "multitenancy: 2\nallocationPolicy: packed\nmultiDevice: reject\nexcludeMounts: [A.dll]\nvisibility: launcher",
    ),
    (
        &[],
        "additionalMounts:\n  nvidia: [{source: sub\\a.dll, destination: b.dll}]\nadditionalMountsWow64:\n  nvidia: [{source: a.dll}]",
    ),
    (&[], "resources: [{name: a.b/c, match: {minMemoryMiB: 1}, multitenancy: 2}]"),
    (&[], "deviceClass: {mcdm: 1024E4C9-47C9-48D3-B4A8-F9DF78523B53}\nresources: [{name: a.b/c}]"),
    (&[DriverModel::Legacy], "multitenancy: 2"),
];

static CATALOGS: LazyLock<Vec<Catalog>> = LazyLock::new(|| {
    CONFIGURATIONS.iter().map(|(models, file)| crate::catalog(models, file)).collect()
});

/// Checks one input.
pub fn check(data: &[u8]) {
    // An input that ends early describes no host, which is not an error.
    let _ = allocate(&mut Unstructured::new(data));
}

fn allocate(u: &mut Unstructured<'_>) -> Result<()> {
    let catalog = u.choose(&CATALOGS)?;
    let before = DeviceSet::next(None, catalog.offer(&host(u)?), Moment::default());
    let now = Moment(std::time::Duration::from_secs(u.int_in_range(0..=120)?));
    let set = DeviceSet::next(Some(&before), catalog.offer(&host(u)?), now);
    for resource in &set.resources {
        let advertised: Vec<String> =
            resource.replicas().map(|replica| replica.id.to_string()).collect();
        let unique: HashSet<&String> = advertised.iter().collect();
        assert_eq!(unique.len(), advertised.len(), "a replica is advertised twice");
        let mut ids: Vec<String> = Vec::new();
        for _ in 0..u.int_in_range(0..=4)? {
            ids.push(if advertised.is_empty() { text(u)? } else { u.choose(&advertised)?.clone() });
        }
        check_plan(resource, &set.host, &ids);
        check_preference(resource, &advertised, &ids, u.int_in_range(0..=6)?);
    }
    Ok(())
}

fn check_plan(resource: &Arc<ResourceDevices>, host: &HostFacts, ids: &[String]) {
    let forward = plan(resource, ids.iter().map(String::as_str), host, &|_| true);
    let backward = plan(resource, ids.iter().rev().map(String::as_str), host, &|_| true);
    assert_eq!(forward.is_ok(), backward.is_ok());
    let (Ok(plan), Ok(backward)) = (forward, backward) else { return };
    assert_eq!(plan, backward, "the order of replicas changes the plan");
    let mut destinations = HashSet::new();
    for file in plan.mounts.mounted() {
        let provided = file.origin == MountOrigin::Launcher && is_launcher(&file.host_path, host);
        assert!(provided || is_inside_a_store(&file.host_path, &plan.devices), "{file:?}");
        assert!(is_plain_file_name(&file.container_path), "{file:?}");
        assert!(destinations.insert(file.container_path.to_uppercase()), "{file:?} twice");
    }
    check_hints(&plan);
}

/// Whether the file is one of `directx-visible`, in the folder of an inventory.
fn is_launcher(file: &str, host: &HostFacts) -> bool {
    let root = launcher_root(&host.system_root);
    LAUNCHER_FILES.iter().any(|name| format!(r"{root}\simulated\{name}") == file)
}

/// Whether the file is one that Windows opens below the folder of one of the devices.
fn is_inside_a_store(file: &str, devices: &[Arc<Device>]) -> bool {
    devices.iter().filter_map(|device| device.driver_store.as_ref().ok()).any(|store| {
        let folder = store.path.trim_end_matches('\\');
        let relative = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('\\'));
        relative.is_some_and(|relative| {
            crate::resolve(folder, relative).as_deref() == Some(file)
                && store.files.contains(relative) != Some(false)
        })
    })
}

fn is_plain_file_name(destination: &str) -> bool {
    [r"C:\Windows\System32", r"C:\Windows\SysWOW64"].iter().any(|folder| {
        let name = destination.strip_prefix(folder).and_then(|rest| rest.strip_prefix('\\'));
        name.is_some_and(|name| {
            !name.contains('\\') && crate::resolve(folder, name).as_deref() == Some(destination)
        })
    })
}

fn check_hints(plan: &Plan) {
    if let Some(luids) = plan.envs.get("DIRECTX_VISIBLE_DEVICES") {
        let expected: Vec<String> = plan.devices.iter().map(|d| d.luid.to_string()).collect();
        assert_eq!(*luids, expected.join(","));
    }
}

fn check_preference(
    resource: &ResourceDevices,
    advertised: &[String],
    must: &[String],
    size: usize,
) {
    let must = &*must.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let Ok(chosen) = preferred_allocation(resource, advertised, must, size) else { return };
    let unique: HashSet<&String> = chosen.iter().collect();
    assert!(unique.len() <= size.max(must.len()));
    assert_eq!(unique.len(), chosen.len(), "a replica is preferred twice");
    assert!(must.iter().all(|id| unique.contains(id)));
    assert!(chosen.iter().all(|id| advertised.contains(id) || must.contains(id)));
    assert_eq!(
        preferred_allocation(resource, advertised, must, size),
        Ok(chosen),
        "the preference is not deterministic"
    );
}

fn host(u: &mut Unstructured<'_>) -> Result<HostSnapshot> {
    let build = u.choose(&[17_763, 20_348, 26_100])?;
    let host = HostFacts {
        build: Some(HostBuild { major: 10, minor: 0, build: *build, revision: 1 }),
        wow64: *u.choose(&[Wow64::Present, Wow64::Absent])?,
        inside_container: u.arbitrary()?,
        ..HostFacts::default()
    };
    let adapters = (0..u.int_in_range(0..=4)?).map(|_| adapter(u)).collect::<Result<_>>()?;
    Ok(HostSnapshot { host, adapters, ..HostSnapshot::default() })
}

fn adapter(u: &mut Unstructured<'_>) -> Result<Adapter> {
    let mask: u16 = u.arbitrary()?;
    let attributes: Attributes =
        Attribute::ALL.iter().copied().filter(|attribute| mask & *attribute as u16 != 0).collect();
    Ok(Adapter {
        luid: Luid(u.int_in_range(-2..=5)?),
        attributes,
        hardware: u.ratio(2, 3)?,
        integrated: u.arbitrary()?,
        detachable: false,
        indirect_display: u.ratio(1, 16)?,
        hardware_id: HardwareId {
            vendor: *u.choose(&[0x10DE, 0x1002, 0x8086])?,
            ..HardwareId::default()
        },
        driver_description: text(u)?,
        driver_version: None,
        dedicated_memory_mib: u.arbitrary()?,
        load: None,
        nvidia: NvidiaFacts::default(),
        pnp: if u.ratio(9, 10)? { Some(pnp(u)?) } else { None },
        driver_store: if u.ratio(9, 10)? { Some(store(u)?) } else { None },
    })
}

fn pnp(u: &mut Unstructured<'_>) -> Result<PnpDevice> {
    let id = if u.ratio(3, 4)? {
        (*u.choose(&[r"PCI\A\1", r"PCI\A\2", r"pci\a\1", r"PCI\A"])?).to_owned()
    } else {
        text(u)?
    };
    Ok(PnpDevice {
        id: PnpId::new(id),
        description: text(u)?,
        manufacturer: String::new(),
        driver_key: None,
        location_paths: if u.ratio(7, 8)? { vec![LocationPath::new(text(u)?)] } else { vec![] },
        driver_date: None,
        numa_node: u.arbitrary()?,
        problem_code: *u.choose(&[0, 0, 0, 43])?,
    })
}

fn store(u: &mut Unstructured<'_>) -> Result<DriverStore> {
    let mut copy_to_vm: BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>> = BTreeMap::new();
    for _ in 0..u.int_in_range(0..=6)? {
        let key = CopyToVmKey { kind: *u.choose(CopyToVmKind::ALL)?, subkey: None };
        let value = if u.arbitrary()? {
            CopyToVmValue::Single(text(u)?)
        } else {
            CopyToVmValue::Multi(
                (0..u.int_in_range(0..=3)?).map(|_| text(u)).collect::<Result<_>>()?,
            )
        };
        copy_to_vm.entry(key).or_default().insert(text(u)?, value);
    }
    let advertised = |u: &mut Unstructured<'_>| -> Result<BTreeSet<String>> {
        (0..u.int_in_range(0..=4)?).map(|_| text(u)).collect()
    };
    let files = match u.int_in_range(0..=2)? {
        0 => StoreFiles::EveryNamed,
        1 => StoreFiles::OnDisk,
        _ => StoreFiles::Listed(advertised(u)?),
    };
    Ok(DriverStore { path: (*u.choose(STORES)?).to_owned(), files, copy_to_vm })
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(2, 3)? { Ok((*u.choose(TEXTS)?).to_owned()) } else { u.arbitrary() }
}
