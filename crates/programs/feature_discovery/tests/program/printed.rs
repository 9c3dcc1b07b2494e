//! `--print` beside a plugin. Wine has no sockets with paths.

use std::path::Path;
use std::time::Duration;

use config::{EmptyEnvironment, Flags};
use daemon::node_devices::NodeDevices;
use device_plugin::status::Phase;
use device_plugin::{DevicePlugin, ResourceReadiness};
use devices::Catalog;

use crate::run;

const T4: &str = "\
directx.microsoft.com/count=2
directx.microsoft.com/count.NVIDIA-Tesla-T4=2
directx.microsoft.com/driver-model=wddm
directx.microsoft.com/memory=15360
directx.microsoft.com/product=NVIDIA-Tesla-T4
directx.microsoft.com/replicas=1
directx.microsoft.com/sharing-strategy=none
directx.microsoft.com/vendor=nvidia
directx.microsoft.com/windows-build=10.0.20348.1547
";

#[test]
fn print_prints_the_labels_that_the_plugin_reports_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let policy = config::load(&Flags::default(), &EmptyEnvironment).unwrap().policy;
    let inventories = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories");
    let host = config::inventory::read(&inventories.join("aws-t4-two.yaml")).unwrap();
    let devices = NodeDevices::fixed(Catalog::new(policy), host).unwrap();
    let plugin = DevicePlugin::following(folder.path(), devices.served());
    let readiness = plugin.readiness();
    runtime.spawn(plugin.run());
    let is_bound = |r: &ResourceReadiness| r.phase == Phase::WaitingForKubelet;
    while !readiness.borrow().resources.iter().all(is_bound) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let directory = folder.path().display().to_string();
    let run = |arguments: &[&str]| {
        run(&[&["--print", "--device-plugin-dir", &directory], arguments].concat())
    };
    let (status, out, err) = run(&[]);
    assert_eq!((status, out.as_str(), err.as_str()), (Some(0), T4, ""));
    let (_, out, _) = run(&["--gfd-labels"]);
    assert!(out.starts_with(T4) && out.contains("\nnvidia.com/gpu.count=2\n"), "{out}");
    let (_, out, _) = run(&["--output", "json"]);
    let labels: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(labels.as_object().unwrap().len(), T4.lines().count());
    assert_eq!(labels["directx.microsoft.com/product"], "NVIDIA-Tesla-T4");
}
