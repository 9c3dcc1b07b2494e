//! `--print` beside a plugin. Wine has no sockets with paths.

use std::path::Path;
use std::time::Duration;

use config::{EmptyEnvironment, Flags};
use daemon::node_devices::NodeDevices;
use device_plugin::status::Phase;
use device_plugin::{DevicePlugin, ResourceReadiness};
use devices::{Catalog, DeviceSet, Moment};
use report::{Labels, NodeReport, labels};

use crate::run;

#[test]
fn print_prints_the_labels_that_the_plugin_reports_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let policy = config::load(&Flags::default(), &EmptyEnvironment).unwrap().policy;
    let inventories = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories");
    let host = config::inventory::read(&inventories.join("aws-t4-two.yaml")).unwrap();
    let offer = Catalog::new(policy.clone()).offer(&host);
    let report = NodeReport::of(&DeviceSet::next(None, offer, Moment::default()));
    let printed = |gfd_labels| -> String {
        let labels = labels(&report, gfd_labels).into_iter();
        let lines: Vec<String> = labels.map(|(name, value)| format!("{name}={value}\n")).collect();
        lines.concat()
    };
    let devices = NodeDevices::fixed(Catalog::new(policy), host).unwrap();
    let plugin = DevicePlugin::following(folder.path(), devices.served());
    let readiness = plugin.readiness();
    runtime.spawn(plugin.run());
    let waits = |resource: &ResourceReadiness| resource.phase == Phase::WaitingForKubelet;
    let is_bound =
        |resources: &[ResourceReadiness]| !resources.is_empty() && resources.iter().all(waits);
    while !is_bound(&readiness.borrow().resources) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let directory = folder.path().display().to_string();
    let run = |arguments: &[&str]| {
        run(&[&["--print", "--device-plugin-dir", &directory], arguments].concat())
    };
    let (status, out, err) = run(&[]);
    assert_eq!((status, out.as_str(), err.as_str()), (Some(0), printed(false).as_str(), ""));
    assert!(out.contains("\ndirectx.microsoft.com/count.NVIDIA-Tesla-T4=2\n"), "{out}");
    let (_, out, _) = run(&["--gfd-labels"]);
    assert_eq!(out, printed(true));
    assert!(out.contains("\nnvidia.com/gpu.count=2\n"), "{out}");
    let (_, out, _) = run(&["--output", "json"]);
    let parsed: Labels = serde_json::from_str(&out).unwrap();
    assert_eq!(parsed, labels(&report, false));
}
