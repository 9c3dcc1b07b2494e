//! GPUs whose driver mode changes, through `simulate`.

use std::fmt::Write as _;

use crate::harness::{Simulation, capacities, devices, pod};

const GPU: &str = "example.com/gpu";
const EVERY_ADAPTER: &str = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53";

/// A host with two GPUs of NVIDIA in these modes.
fn gpus_in_modes(modes: [&str; 2]) -> String {
    let mut text = String::from(
        "schema: directx-inventory/v1\nhost: {build: 10.0.26100.2314, hcsSchemas: ['2.9']}\nadapters:\n",
    );
    for (number, mode) in modes.into_iter().enumerate() {
        let attributes = match mode {
            "wddm" => "d3d11-graphics, d3d12-graphics, d3d12-core-compute, gpu",
            _ => "d3d12-core-compute, gpu",
        };
        write!(
            text,
            "- luid: {number}\n  attributes: [{attributes}]\n  hardware: true\n  \
             hardwareId: {{vendor: 0x10DE, device: 0x26B9}}\n  pnp:\n    \
             id: 'PCI\\VEN_10DE&DEV_26B9\\{number}'\n    description: NVIDIA L40S\n    \
             locationPaths: ['PCIROOT({number})']\n"
        )
        .unwrap();
    }
    text
}

/// A new driver starts GPUs in MCDM mode, one after the other.
#[test]
fn a_rule_without_driver_model_keeps_the_name_when_a_driver_changes_the_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    let [one, two] = [1, 2].map(|count| format!("--pod=pod={GPU}:{count}"));
    let run = |class: &str, flag: &str| {
        let rule = format!("resources:\n- name: {GPU}\n  match: {{vendor: nvidia}}\n{class}");
        let host = file.to_str().unwrap();
        Simulation { host, config: &rule, flags: &[flag], ..Default::default() }.run()
    };
    for modes in [["wddm", "wddm"], ["mcdm", "wddm"], ["mcdm", "mcdm"]] {
        std::fs::write(&file, gpus_in_modes(modes)).unwrap();
        let document = run("", &one);
        let mut advertised = capacities(&document);
        advertised.retain(|(_, count)| *count > 0);
        assert_eq!(advertised, [(GPU.to_owned(), 2)], "{modes:?}");
        let device = devices(pod(&document, "pod"))[0];
        assert!(device.starts_with("vpci-location-path://PCIROOT("), "{modes:?} {device}");
        let every = run(&format!("deviceClass: {EVERY_ADAPTER}"), &two);
        assert_eq!(devices(pod(&every, "pod")), [format!("class/{EVERY_ADAPTER}")], "{modes:?}");
    }

    std::fs::write(&file, gpus_in_modes(["mcdm", "wddm"])).unwrap();
    for (class, refusal) in [
        (String::new(), "deviceClass is not set for the driver model mcdm"),
        (format!("deviceClass: {{mcdm: {EVERY_ADAPTER}}}"), "deviceClass differs between"),
    ] {
        let document = run(&class, &two);
        let reason = pod(&document, "pod")["reason"].as_str().unwrap();
        assert!(reason.contains(refusal), "{reason}");
    }
}
