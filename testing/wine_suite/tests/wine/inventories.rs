//! From an inventory to a host and back: every program prints the same on a host made from an
//! inventory and for the inventory itself, except for the software of the node, which is Wine's.

use std::path::{Path, PathBuf};

use super::compare::{compare, without_notes};
use super::host::Host;
use super::output::{native, stdout};
use super::paths::inventories;

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn every_host_reads_back_as_its_inventory() {
    let host = Host::take();
    host.install(&["dxcore.dll", "vmcompute.dll", "nvml.dll"]);
    let folders = ["fixtures/inventories", "fixtures/inventories/generated"];
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| inventories(folder)).collect();
    files.push(host.write("sixty-four-adapters.yaml", with_many_adapters()));
    files.push(host.write("long-values.yaml", with_long_values()));
    for inventory in &files {
        host.set(inventory);
        for arguments in [&["record"][..], &["devices", "--output", "json"]] {
            check_host(&host, arguments, inventory);
        }
    }
}

/// The plugin prints the same on the host of `inventory` and for `inventory` itself.
pub(crate) fn check_host(host: &Host, arguments: &[&str], inventory: &Path) {
    let expected = stdout(&mut native("directx-device-plugin", arguments, inventory));
    let found = stdout(&mut host.plugin(arguments));
    let what = format!("{arguments:?} of {}", inventory.display());
    compare(&what, &without_notes(&expected), &without_notes(&found));
}

/// The `host` section of every generated inventory.
const HOST: &str = "schema: directx-inventory/v1\nhost:\n  \
    product: Microsoft Windows Server 2022 Datacenter\n  displayVersion: 21H2\n  \
    build: 10.0.20348.1547\n  hcsSchemas: ['2.5']\nadapters:\n";

/// More adapters than any host has, each with its own device, driver and folder.
fn with_many_adapters() -> String {
    let adapters = (0..64u32).map(|n| {
        format!(
            r"- luid: {luid}
  attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]
  hardware: true
  hardwareId: {{vendor: 0x10DE, device: 0x1EB8, subsystem: 0x12A210DE, revision: 0xA1}}
  driverDescription: NVIDIA Tesla T4
  pnp:
    id: 'PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\3&13C0B0C5&1&{n:02X}'
    description: NVIDIA Tesla T4 {n}
    manufacturer: NVIDIA
    driverKey: '{{4d36e968-e325-11ce-bfc1-08002be10318}}\{n:04}'
    locationPaths: ['PCIROOT(0)#PCI({n:02X}00)']
    numaNode: {numa}
    problemCode: 0
  driverStore:
    path: 'C:\Windows\System32\DriverStore\FileRepository\nv{n}.inf_amd64_1'
    files: [nvcuda_loader64.dll]
    copyToVm:
      CopyToVmWhenNewer:
        '01': [nvcuda_loader64.dll, nvcuda.dll]
",
            luid = 100_000 + n,
            numa = n / 32
        )
    });
    format!("{HOST}{}", adapters.collect::<String>())
}

/// Texts over 1 KiB, a folder path longer than `MAX_PATH` (260), the longest device instance
/// id (199 characters) and a value with a long name.
fn with_long_values() -> String {
    let folder = ["grafik"; 8].map(|word| word.repeat(8)).join(r"\");
    format!(
        r"{HOST}- luid: 200001
  attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]
  hardware: true
  hardwareId: {{vendor: 0x10DE, device: 0x1EB8, subsystem: 0x12A210DE, revision: 0xA1}}
  driverDescription: {text}
  pnp:
    id: 'PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\{instance}'
    description: {text}
    manufacturer: {text}
    driverKey: '{{4d36e968-e325-11ce-bfc1-08002be10318}}\0004'
    locationPaths: ['PCIROOT(0){path}', 'ACPI(_SB_){path}']
    problemCode: 0
  driverStore:
    path: 'C:\Windows\System32\DriverStore\FileRepository\{folder}'
    files: ['{folder}\loader64.dll']
    copyToVm:
      CopyToVmOverwrite:
        {name}: ['{folder}\loader64.dll', loader.dll]
        data: [{text}]
",
        text = "Graphics".repeat(200),
        instance = "7".repeat(199 - r"PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\".len()),
        path = "#PCI(0100)".repeat(150),
        name = "value".repeat(50),
    )
}
