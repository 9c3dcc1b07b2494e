//! A node for the program: an inventory with eight GPUs, a configuration file and a device plugin
//! directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use host::{
    Adapter, Attribute, CopyToVmKey, CopyToVmKind, CopyToVmValue, DriverKey, DriverStore,
    DriverVersion, HardwareId, HostBuild, HostFacts, HostSnapshot, LocationPath, Luid, NvidiaFacts,
    PnpDevice, PnpId, StoreFiles,
};
use tempfile::TempDir;

/// The resource name of the node's GPUs.
pub(crate) const RESOURCE: &str = "directx.microsoft.com/display";

/// The number of GPUs of the host.
pub(crate) const GPUS: usize = 8;

/// The replicas of all GPUs.
pub(crate) const REPLICAS: usize = 128;

/// The number of existing files that are mounted into a container.
pub(crate) const FILES: usize = 16;

/// The health of the host's first GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FirstGpu {
    /// The first GPU works.
    Healthy,
    /// Windows reports a problem code.
    Unhealthy,
}

/// The files of a node. They are removed when it is dropped.
pub(crate) struct Node {
    folder: TempDir,
}

impl Node {
    /// Writes the files of a node whose GPUs are all healthy.
    pub(crate) fn new() -> Result<Node> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let node = Node { folder };
        std::fs::create_dir(node.directory())?;
        std::fs::write(node.config(), format!("multitenancy: {}\n", REPLICAS / GPUS))?;
        node.set_host(FirstGpu::Healthy)?;
        Ok(node)
    }

    /// The kubelet's device plugin directory.
    pub(crate) fn directory(&self) -> PathBuf {
        // The name is short, because a socket path may have at most 107 bytes.
        self.folder.path().join("k")
    }

    /// The configuration file.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("config.yaml")
    }

    /// The inventory file.
    pub(crate) fn inventory(&self) -> PathBuf {
        self.folder.path().join("host.yaml")
    }

    /// Replaces the inventory atomically, by a rename.
    pub(crate) fn set_host(&self, first: FirstGpu) -> Result<()> {
        let new = self.folder.path().join("new.yaml");
        std::fs::write(&new, config::inventory::to_yaml(&host(first))?)?;
        std::fs::rename(&new, self.inventory()).context("cannot replace the inventory")
    }
}

fn host(first: FirstGpu) -> HostSnapshot {
    HostSnapshot {
        host: HostFacts {
            build: Some(HostBuild { major: 10, minor: 0, build: 20_348, revision: 1 }),
            ..HostFacts::default()
        },
        adapters: (0..GPUS).map(|n| adapter(n, first)).collect(),
        ..HostSnapshot::default()
    }
}

/// A display adapter like those of servers with eight equal GPUs. No files are mounted by default
/// for its vendor.
fn adapter(n: usize, first: FirstGpu) -> Adapter {
    let unhealthy = n == 0 && first == FirstGpu::Unhealthy;
    let number = i64::try_from(n).unwrap_or_default();
    Adapter {
        luid: Luid(0x6B000 + number),
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
        hardware_id: HardwareId { vendor: 0x1002, device: 0x73A1, subsystem: 0, revision: 0 },
        driver_description: "AMD Radeon Pro V620".to_owned(),
        driver_version: Some(DriverVersion(0x001F_0000_36B0_0001)),
        dedicated_memory_mib: Some(30_720),
        load: None,
        nvidia: NvidiaFacts::default(),
        pnp: Some(PnpDevice {
            id: PnpId::new(format!(
                r"PCI\VEN_1002&DEV_73A1&SUBSYS_0E351002&REV_00\6&2E1D7C5A&0&000000{n:02X}"
            )),
            description: "AMD Radeon Pro V620".to_owned(),
            manufacturer: "Advanced Micro Devices, Inc.".to_owned(),
            driver_key: Some(DriverKey::new(format!(
                r"{{4d36e968-e325-11ce-bfc1-08002be10318}}\{n:04}"
            ))),
            location_paths: vec![LocationPath::new(format!("PCIROOT(0)#PCI({n:02X}00)#PCI(0000)"))],
            driver_date: None,
            numa_node: Some(u32::from(n >= GPUS / 2)),
            problem_code: if unhealthy { 43 } else { 0 },
        }),
        driver_store: Some(driver_store()),
    }
}

fn driver_store() -> DriverStore {
    let name = |n: usize| format!("amdruntime{n:02}.dll");
    let values: BTreeMap<String, CopyToVmValue> =
        (0..FILES).map(|n| (format!("{n:02}"), CopyToVmValue::Multi(vec![name(n)]))).collect();
    let key = CopyToVmKey { kind: CopyToVmKind::WhenNewer, subkey: None };
    DriverStore {
        path: r"C:\Windows\System32\DriverStore\FileRepository\u0390451.inf_amd64_5d2b1a0d7c3c8f11"
            .to_owned(),
        files: StoreFiles::Listed((0..FILES).map(name).collect()),
        copy_to_vm: BTreeMap::from([(key, values)]),
    }
}
