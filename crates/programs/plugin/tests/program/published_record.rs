//! What pods got on real nodes with another device plugin, in a published record, beside what
//! `simulate` predicts for the same device (`fixtures/README.md`).

use std::fs;

use crate::harness::{Simulation, devices, mounts, recorded};

const HOST: &str = "aws-l4-fractional.yaml";

/// In the status of the record's pods.
const DEVICE_ID: &str = r"PCI\VEN_10DE&DEV_27B8&SUBSYS_173310DE&REV_A1\4&EE1B678&0&0000\0";

#[test]
fn pods_of_the_published_record_get_what_worked_there() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.yaml");
    let server_2025 = fs::read_to_string(recorded(HOST)).unwrap();
    for (build, config, mounted_files) in [
        // Rendered with Direct3D 11 and encoded with NVENC.
        ("10.0.20348.5499", "", 1),
        ("10.0.26100.33296", "", 0),
        // HCS refused to create the container: "The parameter is incorrect."
        ("10.0.26100.33296", "runtimeMounts: always", 1),
    ] {
        fs::write(&host, server_2025.replace("10.0.26100.33296", build)).unwrap();
        let host = host.to_str().unwrap();
        let flags = &["--pod=pod=directx.microsoft.com/display:1"];
        let document = Simulation { host, config, flags, ..Default::default() }.run();
        assert_eq!(document["host"]["build"], build);
        let resource = &document["resources"].as_array().unwrap()[1];
        assert_eq!((&resource["capacity"], &resource["allocatable"]), (&1.into(), &1.into()));
        let pod = &document["pods"][0];
        assert_eq!(pod["deviceIds"], serde_json::json!([DEVICE_ID]));
        assert_eq!(devices(pod), ["vpci-location-path://PCIROOT(30)#PCI(0000)#PCI(0000)"]);
        assert_eq!(mounts(pod).len(), mounted_files, "{build} {config}");
    }
}
