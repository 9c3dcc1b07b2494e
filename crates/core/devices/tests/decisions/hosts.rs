//! Hosts and policies for the tests.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use devices::{
    Catalog, DeviceClass, DeviceSet, DriverModel, ModelPolicy, Moment, PlanWarning, Policy,
    ResourceDevices, ResourceRule,
};
use host::{
    Adapter, Attribute, CopyToVmValue, DriverKey, DriverStore, DriverVersion, HardwareId,
    HostFacts, HostSnapshot, LocationPath, Luid, NvidiaFacts, PnpDevice, PnpId, StoreFiles,
};

pub(crate) const NVIDIA: u32 = 0x10DE;
pub(crate) const AMD: u32 = 0x1002;

/// GPU number `n`: healthy, discrete, not detachable, with display and compute.
pub(crate) fn gpu(n: i64, vendor: u32) -> Adapter {
    let key = r"{4d36e968-e325-11ce-bfc1-08002be10318}";
    Adapter {
        luid: Luid(1000 + n),
        attributes: [
            Attribute::D3d11Graphics,
            Attribute::D3d12Graphics,
            Attribute::D3d12CoreCompute,
        ]
        .into_iter()
        .collect(),
        hardware: true,
        integrated: false,
        detachable: false,
        indirect_display: false,
        hardware_id: HardwareId { vendor, device: 0x1EB8, subsystem: 0, revision: 0xA1 },
        driver_description: format!("GPU {n}"),
        driver_version: Some(DriverVersion(0x001F_000F_000E_0001)),
        dedicated_memory_mib: Some(15360),
        load: None,
        nvidia: NvidiaFacts::default(),
        pnp: Some(PnpDevice {
            id: PnpId::new(format!(r"PCI\VEN_{vendor:04X}\{n}&0")),
            description: format!("GPU {n}"),
            manufacturer: "Advanced Micro Devices, Inc.".into(),
            driver_key: Some(DriverKey::new(format!(r"{key}\000{n}"))),
            location_paths: vec![LocationPath::new(format!("PCIROOT(0)#PCI({n:02X}00)"))],
            driver_date: None,
            numa_node: Some(0),
            problem_code: 0,
        }),
        driver_store: Some(store(&format!("drv_{vendor:04x}.inf"))),
    }
}

/// An adapter of a remote session or of a program such as Parsec, which the kernel calls an indirect
/// display or whose `PnP` device is below `enumerator`. It looks like GPU `n`.
pub(crate) fn indirect_display(n: i64, enumerator: Option<&str>) -> Adapter {
    let mut adapter = gpu(n, NVIDIA);
    adapter.luid = Luid(2000 + n);
    adapter.indirect_display = enumerator.is_none();
    let pnp = adapter.pnp.as_mut().unwrap();
    pnp.id = PnpId::new(format!(r"{}\DISPLAY\{n:04}", enumerator.unwrap_or("USB")));
    pnp.description = "Virtual Display Adapter".into();
    adapter
}

/// One of Microsoft's basic adapters that Windows calls hardware, with the attributes of a GPU.
pub(crate) fn basic_adapter(n: i64, device: u32) -> Adapter {
    let mut adapter = gpu(n, 0x1414);
    adapter.hardware_id.device = device;
    adapter
}

/// A GPU whose driver store folder does not exist, as Windows may report it while a driver is
/// replaced.
pub(crate) fn without_driver_files(n: i64) -> Adapter {
    let mut gpu = gpu(n, NVIDIA);
    gpu.driver_store.as_mut().unwrap().files = StoreFiles::Listed([].into());
    gpu
}

pub(crate) fn npu(n: i64) -> Adapter {
    Adapter {
        attributes: [Attribute::D3d12GenericMl, Attribute::Npu].into_iter().collect(),
        ..gpu(n, 0x8086)
    }
}

/// A GPU in MCDM mode as Windows versions list it that do not report hardware types.
pub(crate) fn mcdm_gpu(n: i64, vendor: u32) -> Adapter {
    Adapter { attributes: [Attribute::D3d12CoreCompute].into_iter().collect(), ..gpu(n, vendor) }
}

/// A driver store folder that names `runtime.dll` for System32 and `SysWOW64`.
pub(crate) fn store(name: &str) -> DriverStore {
    let value = |file: &str| {
        BTreeMap::from([(
            "1".to_owned(),
            CopyToVmValue::Multi(vec![file.to_owned(), "runtime.dll".into()]),
        )])
    };
    DriverStore {
        path: format!(r"C:\Windows\System32\DriverStore\FileRepository\{name}"),
        files: StoreFiles::EveryNamed,
        copy_to_vm: BTreeMap::from([
            ("CopyToVmOverwrite".parse().unwrap(), value("runtime64.dll")),
            ("CopyToVmOverwriteWow64".parse().unwrap(), value("runtime32.dll")),
        ]),
    }
}

/// A Windows Server 2022 host.
pub(crate) fn host(adapters: Vec<Adapter>) -> HostSnapshot {
    HostSnapshot { host: server("10.0.20348.1547", "2.5"), adapters, ..HostSnapshot::default() }
}

pub(crate) fn server(build: &str, schema: &str) -> HostFacts {
    HostFacts {
        build: Some(build.parse().unwrap()),
        hcs_schemas: vec![schema.parse().unwrap()],
        ..HostFacts::default()
    }
}

/// The default policy, without regard to names of adapters.
pub(crate) fn model(model: DriverModel) -> ModelPolicy {
    ModelPolicy { match_name: None, ..ModelPolicy::for_model(model) }
}

/// The warning about `count` display devices in one container.
pub(crate) fn several(count: usize) -> PlanWarning {
    PlanWarning::SeveralDevices { count, class: DeviceClass::DISPLAY_ADAPTER }
}

/// WDDM with `replicas` replicas per device.
pub(crate) fn wddm(replicas: u32) -> ModelPolicy {
    let mut wddm = model(DriverModel::Wddm);
    wddm.sharing.replicas = NonZeroU32::new(replicas).unwrap();
    wddm
}

pub(crate) fn with_rules(mut policy: ModelPolicy, rules: Vec<ResourceRule>) -> ModelPolicy {
    policy.rules = rules.into();
    policy
}

pub(crate) fn catalog(models: impl IntoIterator<Item = ModelPolicy>) -> Catalog {
    Catalog::new(Policy { models: models.into_iter().collect() })
}

/// The devices of the first resource of `policy` on a host.
pub(crate) fn resource(policy: ModelPolicy, snapshot: &HostSnapshot) -> Arc<ResourceDevices> {
    let offer = catalog([policy]).offer(snapshot);
    DeviceSet::next(None, offer, Moment::default()).resources[0].clone()
}
