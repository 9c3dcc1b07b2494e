//! Instances on inventories that the environment variable names.

#![allow(unsafe_code, reason = "sets the environment variable that names the inventory")]

use std::path::PathBuf;
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use directx_device_discovery::abi::*;

use crate::calls::{Owned, failures, text};

/// The inventory file. The test that holds the lock may change it.
static HOST: LazyLock<Mutex<(tempfile::TempDir, PathBuf)>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    // SAFETY: all code of this program accesses the environment through Rust, which locks it.
    unsafe { std::env::set_var("DIRECTX_DISCOVERY_INVENTORY", &file) };
    Mutex::new((folder, file))
});

/// The host of one test.
struct Host(MutexGuard<'static, (tempfile::TempDir, PathBuf)>);

impl Host {
    fn new(adapters: &str) -> Host {
        let host = Host(HOST.lock().unwrap_or_else(PoisonError::into_inner));
        host.set(adapters);
        host
    }

    fn set(&self, adapters: &str) {
        let text = format!("schema: directx-inventory/v1\nadapters: [{adapters}]\n");
        // Replaced atomically, so that no reader sees an incomplete file.
        let draft = self.0.1.with_extension("draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, &self.0.1).unwrap();
    }
}

const GPU: &str = r"{luid: -70, attributes: [d3d12-graphics], hardware: true,
  hardwareId: {vendor: 0x10DE, device: 1}, driverDescription: Adapter, pnp: {id: 'PCI\GPU\1',
  description: 'Gerät 𝄞', manufacturer: Maker, driverKey: '{4d36e968}\0001', locationPaths: [Place]},
  driverStore: {path: 'C:\Windows\System32\DriverStore\FileRepository\x', copyToVm: {CopyToVmOverwrite: {a: [sub\one64.dll, one.dll]},
  CopyToVmWhenNewerWow64: {a: one32.dll, b: two32.dll}}}}";
const NPU: &str = r"{luid: 71, attributes: [npu], hardware: true, integrated: true,
  detachable: true, hardwareId: {vendor: 0x8086, device: 1}, pnp: {id: 'PCI\NPU\1'}}";

#[test]
fn every_property_of_a_device_is_returned() {
    let _host = Host::new(GPU);
    let i = Owned::new();
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 0, 1, 1), 0);
    assert_eq!(DeviceDiscovery_GetNumDevices(i.0), 1);
    assert_eq!(DeviceDiscovery_GetDeviceAdapterLUID(i.0, 0), -70);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(text(DeviceDiscovery_GetDeviceID(i.0, 0)), some(r"PCI\GPU\1"));
    assert_eq!(text(DeviceDiscovery_GetDeviceDescription(i.0, 0)), some("Gerät 𝄞"));
    let class = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Class";
    let key = format!(r"{class}\{{4d36e968}}\0001");
    assert_eq!(text(DeviceDiscovery_GetDeviceDriverRegistryKey(i.0, 0)), Some(key));
    assert_eq!(
        text(DeviceDiscovery_GetDeviceDriverStorePath(i.0, 0)),
        some(r"C:\Windows\System32\DriverStore\FileRepository\x")
    );
    assert_eq!(text(DeviceDiscovery_GetDeviceLocationPath(i.0, 0)), some("Place"));
    assert_eq!(text(DeviceDiscovery_GetDeviceVendor(i.0, 0)), some("Maker"));
    assert_eq!(DeviceDiscovery_GetNumRuntimeFiles(i.0, 0), 1);
    assert_eq!(text(DeviceDiscovery_GetRuntimeFileSource(i.0, 0, 0)), some(r"sub\one64.dll"));
    assert_eq!(text(DeviceDiscovery_GetRuntimeFileDestination(i.0, 0, 0)), some("one.dll"));
    assert_eq!(DeviceDiscovery_GetNumRuntimeFilesWow64(i.0, 0), 2);
    let wow64 = [0, 1].map(|f| text(DeviceDiscovery_GetRuntimeFileSourceWow64(i.0, 0, f)));
    assert_eq!(wow64, [some("one32.dll"), some("two32.dll")]);
    let name = text(DeviceDiscovery_GetRuntimeFileDestinationWow64(i.0, 0, 1));
    assert_eq!(name, some("two32.dll"));
    assert_eq!(DeviceDiscovery_IsDeviceIntegrated(i.0, 0), 0);
    assert_eq!(DeviceDiscovery_IsDeviceDetachable(i.0, 0), 0);
    assert_eq!(DeviceDiscovery_DoesDeviceSupportDisplay(i.0, 0), 1);
    assert_eq!(DeviceDiscovery_DoesDeviceSupportCompute(i.0, 0), 1);
}

#[test]
fn unknown_properties_of_a_device_are_empty_text() {
    let _host = Host::new(NPU);
    let i = Owned::new();
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 4, 1, 1), 0);
    for get in [
        DeviceDiscovery_GetDeviceDescription,
        DeviceDiscovery_GetDeviceDriverRegistryKey,
        DeviceDiscovery_GetDeviceDriverStorePath,
        DeviceDiscovery_GetDeviceLocationPath,
        DeviceDiscovery_GetDeviceVendor,
    ] {
        assert_eq!(text(get(i.0, 0)).as_deref(), Some(""));
    }
    assert_eq!(DeviceDiscovery_IsDeviceIntegrated(i.0, 0), 1);
    assert_eq!(DeviceDiscovery_IsDeviceDetachable(i.0, 0), 1);
    assert_eq!(DeviceDiscovery_DoesDeviceSupportDisplay(i.0, 0), 0);
    // Earlier versions of the library returned 0 for a compute-only device.
    assert_eq!(DeviceDiscovery_DoesDeviceSupportCompute(i.0, 0), 1);
}

#[test]
fn filters_and_scopes_select_devices() {
    let _host = Host::new(&format!("{GPU}, {NPU}"));
    let i = Owned::new();
    let found = |filter, integrated, detachable| {
        assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, filter, integrated, detachable), 0);
        DeviceDiscovery_GetNumDevices(i.0)
    };
    assert_eq!([0, 1, 2, 3, 4, 5].map(|filter| found(filter, 1, 1)), [2, 1, 2, 0, 1, 1]);
    assert_eq!([found(0, 0, 1), found(0, 1, 0), found(0, -1, 7)], [1, 1, 2]);
    for filter in [-1, 6, i32::MAX, i32::MIN] {
        assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, filter, 1, 1), -1);
        assert_eq!(i.error(), format!("invalid device filter {filter}: expected 0 to 5"));
    }
    assert_eq!(DeviceDiscovery_GetNumDevices(i.0), 2, "the devices of the last discovery stay");
}

#[test]
fn an_index_out_of_range_fails_with_a_reason() {
    let _host = Host::new(GPU);
    let i = Owned::new();
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 0, 1, 1), 0);
    assert_eq!(i.error(), "");
    for device in [1, u32::MAX] {
        assert_eq!(failures(i.0, device, 0), (vec![-1; 7], vec![true; 10]));
        let expected =
            format!("device index {device} is out of range: the last discovery found 1 devices");
        assert_eq!(i.error(), expected);
    }
    assert_eq!(text(DeviceDiscovery_GetRuntimeFileSource(i.0, 0, 1)), None);
    let expected = "file index 1 is out of range: device 0 has 1 runtime files of this kind";
    assert_eq!(i.error(), expected);
    assert_eq!(DeviceDiscovery_GetNumDevices(i.0), 1);
    assert_eq!(i.error(), "", "a success clears the error");
}

#[test]
fn a_failed_discovery_keeps_the_devices_of_the_last_one() {
    let host = Host::new(GPU);
    let i = Owned::new();
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 0, 1, 1), 0);
    let id = DeviceDiscovery_GetDeviceID(i.0, 0);
    host.set("invalid");
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 0, 1, 1), -1);
    let error = i.error();
    assert!(error.starts_with("cannot read the adapters of this host: "), "{error}");
    assert!(error.contains("host.yaml:2"), "{error}");
    assert_eq!(DeviceDiscovery_IsRefreshRequired(i.0), 1);
    assert_eq!(text(id).as_deref(), Some(r"PCI\GPU\1"));
    host.set(NPU);
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 0, 1, 1), 0);
    assert_eq!(text(DeviceDiscovery_GetDeviceID(i.0, 0)).as_deref(), Some(r"PCI\NPU\1"));
}

#[test]
fn a_change_of_the_host_requires_a_refresh() {
    let host = Host::new(GPU);
    let i = Owned::new();
    let other = Owned::new();
    assert_eq!(DeviceDiscovery_IsRefreshRequired(i.0), 1, "there was no discovery yet");
    for instance in [&i, &other] {
        assert_eq!(DeviceDiscovery_DiscoverDevices(instance.0, 0, 1, 1), 0);
        assert_eq!(DeviceDiscovery_IsRefreshRequired(instance.0), 0);
    }
    host.set(&format!("{GPU}, {NPU}"));
    let deadline = Instant::now() + Duration::from_mins(2);
    while DeviceDiscovery_IsRefreshRequired(i.0) == 0 {
        assert!(Instant::now() < deadline, "the change was not detected");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        DeviceDiscovery_GetNumDevices(i.0),
        1,
        "the devices change only with the next discovery"
    );
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 0, 1, 1), 0);
    assert_eq!(DeviceDiscovery_GetNumDevices(i.0), 2);
    assert_eq!(DeviceDiscovery_GetNumDevices(other.0), 1, "instances are independent");
}

#[test]
fn threads_can_share_an_instance_and_use_their_own() {
    let _host = Host::new(&format!("{GPU}, {NPU}"));
    let shared = Owned::new();
    let shared = shared.0.addr();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let shared = ptr::with_exposed_provenance_mut(shared);
                for _ in 0..20 {
                    assert_eq!(DeviceDiscovery_DiscoverDevices(shared, 0, 1, 1), 0);
                    assert_eq!(DeviceDiscovery_GetNumDevices(shared), 2);
                    let own = Owned::new();
                    assert_eq!(DeviceDiscovery_GetNumDevices(own.0), -1);
                }
            });
        }
    });
}
