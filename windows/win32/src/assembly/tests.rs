//! The assembly against a host whose every answer a test can spoil.

use std::io;

use devices::{LocationPath, PnpId};

use super::*;

const FOLDER: &str = r"C:\Windows\System32\DriverStore\FileRepository\nv.inf_amd64_1";
const REG_SZ: u32 = 1;
const REG_DWORD: u32 = 4;

/// The device of a card.
#[derive(Clone)]
enum Slot {
    Empty,
    Unreadable,
    Holds(Device),
}

/// A `CopyToVm*` key's name, and the type and text of its values.
type Values = (&'static str, Vec<(u32, &'static str)>);

/// What a host answers for one adapter. `None` is a call that fails.
#[derive(Clone)]
struct Card {
    luid: Luid,
    attributes: Vec<Attribute>,
    facts: Option<AdapterFacts>,
    device: Slot,
    by_kernel: Option<&'static str>,
    by_inf: Option<&'static str>,
    drivers: Option<Vec<&'static str>>,
    copy_to_vm: Option<Vec<Values>>,
}

#[derive(Clone, Default)]
struct TestHost {
    cards: Vec<Card>,
    linked: Vec<(Luid, u32, Device)>,
    system_root: String,
}

fn device(n: u32) -> Device {
    Device {
        pnp: PnpDevice {
            id: PnpId::new(format!(r"PCI\VEN_10DE\{n}")),
            description: "NVIDIA Tesla T4".to_owned(),
            manufacturer: "NVIDIA".to_owned(),
            driver_key: Some(DriverKey::new(format!(r"{{4d36e968}}\{n:04}"))),
            location_paths: vec![LocationPath::new(format!("PCIROOT(0)#PCI({n}00)"))],
            numa_node: None,
            problem_code: 0,
        },
        inf: Some("oem12.inf".to_owned()),
    }
}

fn card(n: u32) -> Card {
    Card {
        luid: Luid(n.into()),
        attributes: vec![Attribute::D3d11Graphics, Attribute::D3d12CoreCompute],
        facts: Some(AdapterFacts {
            kind: AdapterKind::Hardware,
            placement: Placement::Discrete,
            attachment: Attachment::Fixed,
            hardware_id: HardwareId { vendor: 0x10DE, ..HardwareId::default() },
            driver_description: "NVIDIA Tesla T4".to_owned(),
            driver_version: Some(DriverVersion(1)),
            dedicated_memory: Some(15360 * 1024 * 1024 + 5),
        }),
        device: Slot::Holds(device(n)),
        by_kernel: Some(r"\SystemRoot\System32\DriverStore\FileRepository\nv.inf_amd64_1"),
        by_inf: None,
        drivers: None,
        copy_to_vm: Some(vec![("CopyToVmOverwrite", vec![(REG_SZ, "nvcuda.dll")])]),
    }
}

fn host(cards: impl IntoIterator<Item = Card>) -> TestHost {
    TestHost {
        cards: cards.into_iter().collect(),
        linked: Vec::new(),
        system_root: r"C:\Windows".to_owned(),
    }
}

fn failed(what: &str) -> Failure {
    Failure::new(what, io::Error::other("access is denied"))
}

impl TestHost {
    fn card(&self, luid: Luid) -> &Card {
        self.cards.iter().find(|card| card.luid == luid).unwrap()
    }

    fn card_of(&self, key: &DriverKey) -> &Card {
        let has = |card: &&Card| matches!(&card.device, Slot::Holds(device) if device.pnp.driver_key.as_ref() == Some(key));
        self.cards.iter().find(has).unwrap()
    }

    fn read(&self) -> HostSnapshot {
        read(self, HostFacts::default()).unwrap()
    }
}

impl Host for TestHost {
    fn lists(&self) -> Result<Vec<(Attribute, Vec<Luid>)>, Failure> {
        let list = |attribute| {
            let has = |card: &&Card| card.attributes.contains(&attribute);
            (attribute, self.cards.iter().filter(has).map(|card| card.luid).collect())
        };
        Ok(Attribute::ALL.into_iter().map(list).collect())
    }

    fn adapter(&self, luid: Luid) -> Result<AdapterFacts, Failure> {
        self.card(luid).facts.clone().ok_or_else(|| failed("cannot read the adapter"))
    }

    fn devices(&self) -> Result<Vec<Candidate>, Failure> {
        let candidate = |card: &Card| {
            let device = match &card.device {
                Slot::Empty => return None,
                Slot::Unreadable => Err(failed("cannot read the device")),
                Slot::Holds(device) => Ok(device.clone()),
            };
            Some(Candidate { luid: card.luid, physical_index: 0, device })
        };
        let linked = self.linked.iter().cloned().map(|(luid, physical_index, device)| Candidate {
            luid,
            physical_index,
            device: Ok(device),
        });
        Ok(linked.chain(self.cards.iter().filter_map(candidate)).collect())
    }

    fn store_of_adapter(&self, luid: Luid) -> Result<String, Failure> {
        let path = self.card(luid).by_kernel.map(str::to_owned);
        path.ok_or_else(|| failed("the graphics kernel does not name the folder"))
    }

    fn store_of_inf(&self, inf: &str) -> Result<String, Failure> {
        assert_eq!(inf, "oem12.inf");
        let path = self.cards[0].by_inf.map(str::to_owned);
        path.ok_or_else(|| failed("INF oem12.inf is not in the driver store"))
    }

    fn user_mode_drivers(&self, key: &DriverKey) -> Result<Vec<String>, Failure> {
        let names = self.card_of(key).drivers.as_ref();
        let names = names.map(|names| names.iter().map(ToString::to_string).collect());
        names.ok_or_else(|| failed("cannot read the driver key"))
    }

    fn copy_to_vm(&self, key: &DriverKey) -> Result<CopyToVmKeys, Failure> {
        let keys = self.card_of(key).copy_to_vm.as_ref().ok_or_else(|| failed("cannot read it"))?;
        let raw = |(n, (kind, text)): (usize, &(u32, &str))| RawValue {
            name: format!("{n:02}"),
            kind: *kind,
            data: text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        };
        let key = |(name, values): &Values| {
            (name.parse().unwrap(), values.iter().enumerate().map(raw).collect())
        };
        Ok(CopyToVmKeys { read: keys.iter().map(key).collect(), unread: Vec::new() })
    }

    fn system_root(&self) -> &str {
        &self.system_root
    }
}

fn warnings(snapshot: &HostSnapshot) -> Vec<(i64, WarningEffect, &str)> {
    snapshot.warnings.iter().map(|w| (w.luid.0, w.effect, w.text.as_str())).collect()
}

#[test]
fn an_adapter_is_joined_with_its_device_and_driver() {
    let snapshot = host([card(1), card(2)]).read();
    assert_eq!(warnings(&snapshot), []);
    let adapter = &snapshot.adapters[1];
    assert_eq!(adapter.luid, Luid(2));
    assert_eq!(adapter.attributes.iter().collect::<Vec<_>>(), card(2).attributes);
    assert_eq!(adapter.dedicated_memory_mib, Some(15360));
    assert_eq!(adapter.pnp.as_ref(), Some(&device(2).pnp));
    let store = adapter.driver_store.as_ref().unwrap();
    assert_eq!((store.path.as_str(), &store.files), (FOLDER, &StoreFiles::OnDisk));
    let value = &store.copy_to_vm[&"CopyToVmOverwrite".parse().unwrap()]["00"];
    assert_eq!(value, &CopyToVmValue::Single("nvcuda.dll".to_owned()));
}

#[test]
fn adapters_stand_in_the_order_of_the_host() {
    let npu = Card { attributes: vec![Attribute::D3d12CoreCompute], ..card(7) };
    let graphics = Card { attributes: vec![Attribute::D3d11Graphics], ..card(9) };
    let snapshot = host([npu, card(8), graphics]).read();
    let luids: Vec<i64> = snapshot.adapters.iter().map(|adapter| adapter.luid.0).collect();
    assert_eq!(luids, [7, 8, 9]);
}

#[test]
fn what_fails_for_one_adapter_leaves_that_one_out_with_the_reason() {
    let spoiled = [
        (Card { facts: None, ..card(1) }, "cannot read the adapter: access is denied"),
        (Card { device: Slot::Unreadable, ..card(1) }, "cannot read the device: access is denied"),
        (Card { copy_to_vm: None, ..card(1) }, "cannot read it: access is denied"),
    ];
    for (bad, reason) in spoiled {
        let snapshot = host([bad, card(2)]).read();
        assert_eq!(warnings(&snapshot), [(1, WarningEffect::Skipped, reason)]);
        assert_eq!(snapshot.adapters, host([card(2)]).read().adapters);
    }
}

#[test]
fn a_bad_value_is_told_and_the_adapter_stays() {
    let values = vec![(REG_SZ, "a.dll"), (REG_DWORD, "xx"), (REG_SZ, "c.dll")];
    let card = Card { copy_to_vm: Some(vec![("CopyToVmWhenNewer", values)]), ..card(1) };
    let snapshot = host([card]).read();
    let reason = "value `01` of CopyToVmWhenNewer is left out: it has registry type 4, neither REG_SZ nor REG_MULTI_SZ";
    assert_eq!(warnings(&snapshot), [(1, WarningEffect::Incomplete, reason)]);
    let store = snapshot.adapters[0].driver_store.as_ref().unwrap();
    let values = store.copy_to_vm.values().next().unwrap();
    assert_eq!(values.keys().collect::<Vec<_>>(), ["00", "02"]);
}

#[test]
fn the_folder_is_looked_for_in_the_documented_order() {
    let drivers = Some(vec!["nvldumd.dll", r"C:\drivers\nvldumdx.dll"]);
    let all = Card { by_inf: Some(r"C:\inf\nv.inf"), drivers, ..card(1) };
    let folder = |card: Card| {
        let store = host([card]).read().adapters.remove(0).driver_store;
        store.map(|store| store.path)
    };
    assert_eq!(folder(all.clone()).as_deref(), Some(FOLDER));
    let no_kernel = Card { by_kernel: None, ..all.clone() };
    assert_eq!(folder(no_kernel.clone()).as_deref(), Some(r"C:\inf"));
    let empty_kernel = Card { by_kernel: Some(""), ..all };
    assert_eq!(folder(empty_kernel).as_deref(), Some(r"C:\inf"));
    let drivers_alone = Card { by_inf: None, ..no_kernel };
    assert_eq!(folder(drivers_alone).as_deref(), Some(r"C:\drivers"));
}

#[test]
fn a_folder_that_is_nowhere_is_told_with_every_attempt() {
    let snapshot = host([Card { by_kernel: None, drivers: Some(vec!["x.dll"]), ..card(1) }]).read();
    assert_eq!(snapshot.adapters[0].driver_store, None);
    let reason = r"its driver store folder could not be found: the graphics kernel does not name the folder: access is denied; INF oem12.inf is not in the driver store: access is denied; driver key {4d36e968}\0001 names no absolute path";
    assert_eq!(warnings(&snapshot), [(1, WarningEffect::Incomplete, reason)]);
}

#[test]
fn an_adapter_without_a_device_stays_and_needs_no_folder() {
    let snapshot = host([Card { device: Slot::Empty, by_kernel: None, ..card(1) }]).read();
    assert_eq!(warnings(&snapshot), []);
    assert_eq!((&snapshot.adapters[0].pnp, &snapshot.adapters[0].driver_store), (&None, &None));
}

#[test]
fn inside_a_container_no_runtime_file_is_listed_and_the_note_says_why() {
    let inside = r"C:\Windows\System32\HostDriverStore\FileRepository\nv.inf_amd64_1";
    let snapshot = host([Card { by_kernel: Some(inside), copy_to_vm: None, ..card(1) }]).read();
    let store = snapshot.adapters[0].driver_store.as_ref().unwrap();
    assert_eq!(store.files.contains("nvidia-smi.exe"), Some(false));
    assert!(store.copy_to_vm.is_empty());
    let reason = format!("inside a container the runtime files of `{inside}` cannot be listed");
    assert_eq!(warnings(&snapshot), [(1, WarningEffect::Incomplete, reason.as_str())]);
}

#[test]
fn a_linked_adapter_is_its_first_physical_device() {
    let other = device(5);
    let mut linked = host([card(1)]);
    linked.linked = vec![(Luid(1), 1, other)];
    let snapshot = linked.read();
    assert_eq!(snapshot.adapters[0].pnp.as_ref(), Some(&device(1).pnp));
}

#[test]
fn a_host_without_adapters_is_an_answer() {
    let snapshot = TestHost::default().read();
    assert_eq!(snapshot, HostSnapshot::default());
}
