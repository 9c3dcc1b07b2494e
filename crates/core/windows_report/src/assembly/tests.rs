//! Tests the assembly with a host in which each call can fail.

use std::cell::RefCell;
use std::io;

use host::{Attribute, DriverVersion, HardwareId, LocationPath, NvidiaFacts, PnpId};

use super::*;
use crate::order;

const FOLDER: &str = r"C:\Windows\System32\DriverStore\FileRepository\nv.inf_amd64_1";
const HOST_DRIVER_STORE: &str =
    r"C:\Windows\System32\HostDriverStore\FileRepository\nv.inf_amd64_1";
const REG_SZ: u32 = 1;
const REG_DWORD: u32 = 4;

/// The device of a test adapter.
#[derive(Clone)]
enum TestDevice {
    Absent,
    Unreadable,
    Present(PnpDevice),
}

/// The name of a `CopyToVm*` key, and the type and text of its values.
type Values = (&'static str, Vec<(u32, &'static str)>);

/// The data that the host returns for an adapter. `None` is a call that fails.
#[derive(Clone)]
struct TestAdapter {
    luid: Luid,
    attributes: Vec<Attribute>,
    facts: Option<Adapter>,
    device: TestDevice,
    by_kernel: Option<&'static str>,
    drivers: Option<Vec<&'static str>>,
    copy_to_vm: Option<Vec<Values>>,
    /// What cannot be read and is not required.
    notes: Vec<&'static str>,
}

#[derive(Clone, Default)]
struct TestHost {
    adapters: Vec<TestAdapter>,
    linked: Vec<(Luid, u32, PnpDevice)>,
    without_adapter: Vec<(Option<Luid>, PnpDevice)>,
    /// The devices to which only the graphics kernel leads.
    by_key: Vec<(Luid, PnpDevice)>,
    system_root: String,
    missing_folder: Option<&'static str>,
    steps: RefCell<Vec<ReadStep>>,
}

fn device(n: u32) -> PnpDevice {
    PnpDevice {
        id: PnpId::new(format!(r"PCI\VEN_10DE\{n}")),
        description: "NVIDIA Tesla T4".to_owned(),
        manufacturer: "NVIDIA".to_owned(),
        driver_key: Some(DriverKey::new(format!(r"{{4d36e968}}\{n:04}"))),
        location_paths: vec![LocationPath::new(format!("PCIROOT(0)#PCI({n}00)"))],
        driver_date: None,
        numa_node: None,
        problem_code: 0,
    }
}

fn test_adapter(n: u32) -> TestAdapter {
    TestAdapter {
        luid: Luid(n.into()),
        attributes: vec![Attribute::D3d11Graphics, Attribute::D3d12CoreCompute],
        facts: Some(Adapter {
            luid: Luid(n.into()),
            attributes: Attributes::default(),
            hardware: true,
            integrated: false,
            detachable: false,
            indirect_display: false,
            hardware_id: HardwareId { vendor: 0x10DE, ..HardwareId::default() },
            driver_description: "NVIDIA Tesla T4".to_owned(),
            driver_version: Some(DriverVersion(1)),
            dedicated_memory_mib: Some(15360),
            load: None,
            nvidia: NvidiaFacts::default(),
            pnp: None,
            driver_store: None,
        }),
        device: TestDevice::Present(device(n)),
        by_kernel: Some(r"\SystemRoot\System32\DriverStore\FileRepository\nv.inf_amd64_1"),
        drivers: None,
        copy_to_vm: Some(vec![("CopyToVmOverwrite", vec![(REG_SZ, "nvcuda.dll")])]),
        notes: Vec::new(),
    }
}

fn host(adapters: impl IntoIterator<Item = TestAdapter>) -> TestHost {
    TestHost {
        adapters: adapters.into_iter().collect(),
        linked: Vec::new(),
        without_adapter: Vec::new(),
        by_key: Vec::new(),
        system_root: r"C:\Windows".to_owned(),
        missing_folder: None,
        steps: RefCell::default(),
    }
}

/// It has the driver of the GPU that renders for it, or none. Neither is worth a report.
#[test]
fn the_driver_of_an_indirect_display_is_not_read() {
    let mut of_session = test_adapter(2);
    of_session.facts.as_mut().unwrap().indirect_display = true;
    let mut of_program = test_adapter(3);
    let id = PnpId::new(r"ROOT\DISPLAY\0000");
    of_program.device = TestDevice::Present(PnpDevice { id, ..device(3) });
    for mut display in [of_session, of_program] {
        display.by_kernel = None;
        display.copy_to_vm = None;
        let snapshot = host([test_adapter(1), display]).read();
        assert_eq!(snapshot.warnings, []);
        let stores: Vec<bool> =
            snapshot.adapters.iter().map(|adapter| adapter.driver_store.is_some()).collect();
        assert_eq!(stores, [true, false]);
        assert!(!snapshot.is_unsettled());
    }
}

fn candidate_of(luid: Option<Luid>, physical_index: u32, device: PnpDevice) -> Candidate {
    Candidate { luid, physical_index, device: Ok(device), notes: Vec::new() }
}

fn failed(operation: &str) -> io::Error {
    io::Error::other(format!("{operation}: access is denied"))
}

impl TestHost {
    fn adapter_by_luid(&self, luid: Luid) -> &TestAdapter {
        self.adapters.iter().find(|adapter| adapter.luid == luid).unwrap()
    }

    fn adapter_by_key(&self, key: &DriverKey) -> &TestAdapter {
        let has = |adapter: &&TestAdapter| matches!(&adapter.device, TestDevice::Present(device) if device.driver_key.as_ref() == Some(key));
        self.adapters.iter().find(has).unwrap()
    }

    fn read(&self) -> HostSnapshot {
        read(self, HostFacts::default()).unwrap()
    }
}

impl Host for TestHost {
    fn adapters(&self) -> Vec<(Luid, Attributes)> {
        let list = |attribute: &Attribute| {
            let has = |adapter: &&TestAdapter| adapter.attributes.contains(attribute);
            (*attribute, self.adapters.iter().filter(has).map(|adapter| adapter.luid).collect())
        };
        order::by_adapter(&Attribute::ALL.iter().map(list).collect::<Vec<_>>())
    }

    fn adapter(&self, luid: Luid, notes: &mut Vec<String>) -> io::Result<Adapter> {
        notes.extend(self.adapter_by_luid(luid).notes.iter().map(ToString::to_string));
        self.adapter_by_luid(luid).facts.clone().ok_or_else(|| failed("cannot read the adapter"))
    }

    fn devices(&self) -> io::Result<Vec<Candidate>> {
        let candidate = |adapter: &TestAdapter| {
            let device = match &adapter.device {
                TestDevice::Absent => return None,
                TestDevice::Unreadable => Err(failed("cannot read the device")),
                TestDevice::Present(device) => Ok(device.clone()),
            };
            let notes = vec!["cannot read Numa_Node: access is denied".to_owned()];
            let notes = if adapter.notes.is_empty() { Vec::new() } else { notes };
            Some(Candidate { luid: Some(adapter.luid), physical_index: 0, device, notes })
        };
        let linked = self.linked.iter().cloned();
        let linked = linked.map(|(luid, index, device)| candidate_of(Some(luid), index, device));
        let others = self.without_adapter.iter().cloned();
        let others = others.map(|(luid, device)| candidate_of(luid, 0, device));
        Ok(linked.chain(self.adapters.iter().filter_map(candidate)).chain(others).collect())
    }

    fn devices_by_key(&self, luids: &[Luid]) -> io::Result<Vec<Candidate>> {
        let wanted = self.by_key.iter().filter(|(luid, _)| luids.contains(luid)).cloned();
        Ok(wanted.map(|(luid, device)| candidate_of(Some(luid), 0, device)).collect())
    }

    fn store_of_adapter(&self, luid: Luid) -> io::Result<String> {
        let path = self.adapter_by_luid(luid).by_kernel.map(str::to_owned);
        path.ok_or_else(|| failed("cannot query the graphics kernel"))
    }

    fn user_mode_drivers(&self, key: &DriverKey) -> io::Result<Vec<String>> {
        let names = self.adapter_by_key(key).drivers.as_ref();
        let names = names.map(|names| names.iter().map(ToString::to_string).collect());
        names.ok_or_else(|| failed("cannot read the driver key"))
    }

    fn copy_to_vm(&self, key: &DriverKey) -> io::Result<CopyToVmKeys> {
        let keys = self
            .adapter_by_key(key)
            .copy_to_vm
            .as_ref()
            .ok_or_else(|| failed("cannot read the CopyToVm keys"))?;
        let raw = |(n, (kind, text)): (usize, &(u32, &str))| RawValue {
            name: format!("{n:02}"),
            kind: *kind,
            data: text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        };
        let key = |(name, values): &Values| {
            (name.parse().unwrap(), values.iter().enumerate().map(raw).collect())
        };
        Ok(CopyToVmKeys { read: keys.iter().map(key).collect(), unreadable: Vec::new() })
    }

    fn has_folder(&self, path: &str) -> bool {
        self.missing_folder != Some(path)
    }

    fn system_root(&self) -> &str {
        &self.system_root
    }

    fn begin(&self, step: ReadStep) {
        self.steps.borrow_mut().push(step);
    }
}

fn warnings(snapshot: &HostSnapshot) -> Vec<(i64, WarningEffect, &str)> {
    snapshot.warnings.iter().map(|w| (w.luid.0, w.effect, w.text.as_str())).collect()
}

#[test]
fn an_adapter_is_joined_with_its_device_and_driver() {
    let snapshot = host([test_adapter(1), test_adapter(2)]).read();
    assert_eq!(warnings(&snapshot), []);
    let adapter = &snapshot.adapters[1];
    assert_eq!(adapter.luid, Luid(2));
    assert_eq!(adapter.attributes.iter().collect::<Vec<_>>(), test_adapter(2).attributes);
    assert_eq!(adapter.dedicated_memory_mib, Some(15360));
    assert_eq!(adapter.pnp.as_ref(), Some(&device(2)));
    let store = adapter.driver_store.as_ref().unwrap();
    assert_eq!((store.path.as_str(), &store.files), (FOLDER, &StoreFiles::OnDisk));
    let value = &store.copy_to_vm[&"CopyToVmOverwrite".parse().unwrap()]["00"];
    assert_eq!(value, &CopyToVmValue::Single("nvcuda.dll".to_owned()));
}

/// The path can change before the folder is complete.
#[test]
fn a_driver_store_folder_that_does_not_exist_has_no_files() {
    let replaced = TestHost { missing_folder: Some(FOLDER), ..host([test_adapter(1)]) };
    let snapshot = replaced.read();
    let text = format!("driver store folder `{FOLDER}` does not exist");
    assert_eq!(warnings(&snapshot), [(1, WarningEffect::Incomplete, text.as_str())]);
    let store = snapshot.adapters[0].driver_store.as_ref().unwrap();
    assert_eq!((store.path.as_str(), &store.files), (FOLDER, &StoreFiles::Listed(BTreeSet::new())));
}

#[test]
fn adapters_keep_the_order_of_the_host() {
    let npu = TestAdapter { attributes: vec![Attribute::D3d12CoreCompute], ..test_adapter(7) };
    let graphics = TestAdapter { attributes: vec![Attribute::D3d11Graphics], ..test_adapter(9) };
    let snapshot = host([npu, test_adapter(8), graphics]).read();
    let luids: Vec<i64> = snapshot.adapters.iter().map(|adapter| adapter.luid.0).collect();
    assert_eq!(luids, [7, 8, 9]);
}

#[test]
fn an_adapter_that_cannot_be_read_is_skipped_with_the_reason() {
    let broken = [
        (
            TestAdapter { facts: None, ..test_adapter(1) },
            "cannot read the adapter: access is denied",
        ),
        (
            TestAdapter { device: TestDevice::Unreadable, ..test_adapter(1) },
            "cannot read the device: access is denied",
        ),
        (
            TestAdapter { copy_to_vm: None, ..test_adapter(1) },
            "cannot read the CopyToVm keys: access is denied",
        ),
    ];
    for (bad, reason) in broken {
        let snapshot = host([bad, test_adapter(2)]).read();
        assert_eq!(warnings(&snapshot), [(1, WarningEffect::Unreadable, reason)]);
        assert_eq!(snapshot.adapters, host([test_adapter(2)]).read().adapters);
    }
}

#[test]
fn what_is_not_required_is_a_note_and_the_adapter_is_kept() {
    let notes = vec!["cannot read DriverVersion: access is denied"];
    let snapshot = host([TestAdapter { notes, ..test_adapter(1) }, test_adapter(2)]).read();
    let of_both =
        ["cannot read DriverVersion: access is denied", "cannot read Numa_Node: access is denied"];
    let expected = of_both.map(|note| (1, WarningEffect::Incomplete, note));
    assert_eq!(warnings(&snapshot), expected);
    assert_eq!(snapshot.adapters.len(), 2);
    assert!(!snapshot.is_unsettled());
}

#[test]
fn an_adapter_whose_device_has_no_luid_is_found_by_the_key_of_the_graphics_kernel() {
    let without = TestAdapter { device: TestDevice::Absent, ..test_adapter(2) };
    let mut host =
        host([test_adapter(1), without.clone(), TestAdapter { luid: Luid(3), ..without }]);
    let by_key = PnpDevice { driver_key: None, ..device(2) };
    host.by_key = vec![(Luid(1), device(9)), (Luid(2), by_key.clone())];
    // A device with a problem and no LUID.
    let broken = PnpDevice { problem_code: 43, ..device(2) };
    host.without_adapter =
        vec![(None, broken), (None, PnpDevice { problem_code: 28, ..device(5) })];
    let snapshot = host.read();
    let found: Vec<_> = snapshot.adapters.iter().map(|adapter| adapter.pnp.clone()).collect();
    assert_eq!(found, [Some(device(1)), Some(by_key), None]);
    let left: Vec<_> = snapshot.devices_without_adapter.iter().map(|pnp| pnp.id.clone()).collect();
    assert_eq!(left, [device(5).id]);
}

#[test]
fn an_invalid_value_is_a_warning_and_the_adapter_is_kept() {
    let values = vec![(REG_SZ, "a.dll"), (REG_DWORD, "xx"), (REG_SZ, "c.dll")];
    let adapter =
        TestAdapter { copy_to_vm: Some(vec![("CopyToVmWhenNewer", values)]), ..test_adapter(1) };
    let snapshot = host([adapter]).read();
    let reason = "skipped value `01` of CopyToVmWhenNewer: expected REG_SZ or REG_MULTI_SZ, found registry type 4";
    assert_eq!(warnings(&snapshot), [(1, WarningEffect::Incomplete, reason)]);
    let store = snapshot.adapters[0].driver_store.as_ref().unwrap();
    let values = store.copy_to_vm.values().next().unwrap();
    assert_eq!(values.keys().collect::<Vec<_>>(), ["00", "02"]);
}

#[test]
fn the_folder_comes_from_the_first_available_source() {
    let drivers = Some(vec!["nvldumd.dll", r"C:\drivers\nvldumdx.dll"]);
    let all = TestAdapter { drivers, ..test_adapter(1) };
    let folder = |adapter: TestAdapter| {
        let store = host([adapter]).read().adapters.remove(0).driver_store;
        store.map(|store| store.path)
    };
    assert_eq!(folder(all.clone()).as_deref(), Some(FOLDER));
    let no_kernel = TestAdapter { by_kernel: None, ..all.clone() };
    assert_eq!(folder(no_kernel).as_deref(), Some(r"C:\drivers"));
    let empty_kernel = TestAdapter { by_kernel: Some(""), ..all };
    assert_eq!(folder(empty_kernel).as_deref(), Some(r"C:\drivers"));
}

#[test]
fn the_warning_about_a_missing_folder_contains_every_reason() {
    let snapshot =
        host([TestAdapter { by_kernel: None, drivers: Some(vec!["x.dll"]), ..test_adapter(1) }])
            .read();
    assert_eq!(snapshot.adapters[0].driver_store, None);
    let reason = r"cannot find the driver store folder: cannot query the graphics kernel: access is denied; UserModeDriverName of driver key {4d36e968}\0001 contains no absolute path";
    assert_eq!(warnings(&snapshot), [(1, WarningEffect::Incomplete, reason)]);
}

#[test]
fn an_adapter_without_a_device_is_kept_without_a_folder() {
    let snapshot =
        host([TestAdapter { device: TestDevice::Absent, by_kernel: None, ..test_adapter(1) }])
            .read();
    assert_eq!(warnings(&snapshot), []);
    assert_eq!((&snapshot.adapters[0].pnp, &snapshot.adapters[0].driver_store), (&None, &None));
}

#[test]
fn inside_a_container_a_warning_replaces_the_runtime_files() {
    let inside = HOST_DRIVER_STORE;
    let adapter = TestAdapter { by_kernel: Some(inside), copy_to_vm: None, ..test_adapter(1) };
    let facts = HostFacts { inside_container: true, ..HostFacts::default() };
    let snapshot = read(&host([adapter]), facts).unwrap();
    let store = snapshot.adapters[0].driver_store.as_ref().unwrap();
    assert_eq!(store.files.contains("nvidia-smi.exe"), Some(false));
    assert!(store.copy_to_vm.is_empty());
    let reason = format!("cannot list the runtime files of `{inside}` inside a container");
    assert_eq!(warnings(&snapshot), [(1, WarningEffect::Incomplete, reason.as_str())]);
}

/// GPU-PV: a virtual machine that has the driver of its host.
#[test]
fn a_host_driver_store_alone_is_a_folder_on_disk() {
    let guest = TestAdapter { by_kernel: Some(HOST_DRIVER_STORE), ..test_adapter(1) };
    let snapshot = host([guest]).read();
    assert_eq!(warnings(&snapshot), []);
    let store = snapshot.adapters[0].driver_store.as_ref().unwrap();
    assert_eq!((store.path.as_str(), &store.files), (HOST_DRIVER_STORE, &StoreFiles::OnDisk));
    assert_eq!(store.copy_to_vm.len(), 1);
}

#[test]
fn a_linked_adapter_has_its_first_physical_device() {
    let other = device(5);
    let mut linked = host([test_adapter(1)]);
    linked.linked = vec![(Luid(1), 1, other)];
    let snapshot = linked.read();
    assert_eq!(snapshot.adapters[0].pnp.as_ref(), Some(&device(1)));
}

#[test]
fn a_device_with_a_problem_and_no_adapter_is_listed_separately() {
    let with_code = |n, problem_code| PnpDevice { problem_code, ..device(n) };
    let mut broken = host([test_adapter(1)]);
    broken.without_adapter = vec![
        (None, with_code(2, 28)),
        (Some(Luid(3)), with_code(3, 43)),
        // It only displays, so no list has its adapter.
        (Some(Luid(4)), with_code(4, 0)),
    ];
    let snapshot = broken.read();
    assert_eq!(snapshot.adapters, host([test_adapter(1)]).read().adapters);
    assert_eq!(snapshot.devices_without_adapter, [with_code(2, 28), with_code(3, 43)]);

    // The device of an adapter that has a problem and is listed.
    let mut listed = test_adapter(1);
    listed.device = TestDevice::Present(with_code(1, 43));
    assert_eq!(host([listed]).read().devices_without_adapter, []);
}

/// Flags of `D3DKMT_ADAPTERTYPE` (d3dkmthk.h).
const RENDERS: u32 = 1;
const DISPLAYS: u32 = 1 << 1;
const SOFTWARE: u32 = 1 << 2;
const INDIRECT_DISPLAY: u32 = 1 << 6;
const COMPUTE_ONLY: u32 = 1 << 11;

/// An adapter of NVIDIA that only the graphics kernel lists.
fn in_kernel(flags: u32) -> KernelReport {
    KernelReport {
        flags,
        hardware_id: Some(HardwareId { vendor: 0x10DE, ..HardwareId::default() }),
        description: Some("NVIDIA H100".to_owned()),
        ..KernelReport::default()
    }
}

/// The text about the adapter `Luid(2)` that only the kernel lists, if there is one.
fn text_about(report: KernelReport, pnp: Option<PnpDevice>) -> Option<String> {
    let unreadable = (Luid(3), Err(failed("cannot query the kernel")));
    let devices = pnp.map(|pnp| candidate_of(Some(Luid(2)), 0, pnp));
    let mut found =
        not_listed(vec![(Luid(2), Ok(report)), unreadable], devices.into_iter().collect());
    assert!(found.len() < 2, "{found:?}");
    let AdapterWarning { luid, text, effect } = found.pop()?;
    assert_eq!((luid, effect), (Luid(2), WarningEffect::NotListed));
    Some(text)
}

#[test]
fn a_gpu_that_only_the_graphics_kernel_lists_is_a_warning_with_its_name() {
    for flags in [RENDERS, RENDERS | DISPLAYS, RENDERS | COMPUTE_ONLY, COMPUTE_ONLY] {
        let text = "DXCore does not list NVIDIA H100, which the graphics kernel lists";
        assert_eq!(text_about(in_kernel(flags), None).as_deref(), Some(text), "{flags:#b}");
        let text = r"DXCore does not list NVIDIA Tesla T4 (PCI\VEN_10DE\2), which the graphics kernel lists";
        assert_eq!(text_about(in_kernel(flags), Some(device(2))).as_deref(), Some(text));
    }
}

#[test]
fn what_is_no_gpu_or_has_a_known_problem_is_not_missing() {
    let basic = HardwareId { vendor: 0x1414, device: 0x008C, ..HardwareId::default() };
    let reports = [
        in_kernel(DISPLAYS),
        in_kernel(RENDERS | SOFTWARE),
        in_kernel(RENDERS | INDIRECT_DISPLAY),
        KernelReport { hardware_id: Some(basic), ..in_kernel(RENDERS) },
    ];
    for report in reports {
        assert_eq!(text_about(report, None), None);
    }
    let virtual_display = PnpDevice { id: PnpId::new(r"ROOT\DISPLAY\0000"), ..device(2) };
    for pnp in [PnpDevice { problem_code: 43, ..device(2) }, virtual_display] {
        assert_eq!(text_about(in_kernel(RENDERS), Some(pnp)), None);
    }
}

#[test]
fn a_host_without_adapters_has_an_empty_snapshot() {
    let snapshot = TestHost::default().read();
    assert_eq!(snapshot, HostSnapshot::default());
}

#[test]
fn each_call_that_may_not_return_is_reported_first() {
    let host = host([test_adapter(1), test_adapter(2)]);
    host.read();
    let adapter = |n| [ReadStep::Adapter(Luid(n)), ReadStep::DriverStore(Luid(n))];
    let expected = [&[ReadStep::Devices][..], &adapter(1), &adapter(2)];
    assert_eq!(host.steps.into_inner(), expected.concat());
}
