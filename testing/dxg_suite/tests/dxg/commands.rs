//! `devices`, `record` and `doctor`.

use std::fs;
use std::process::Output;

use serde_json::Value;

use super::machine::Machine;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a program prints in JSON.
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// The device IDs that `devices` prints.
fn device_ids(machine: &Machine) -> Vec<String> {
    let printed = json(&machine.run(&["devices", "--output", "json"]));
    let devices = printed["devices"].as_array().unwrap().iter();
    devices.map(|device| device["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn devices_are_those_of_the_inventory() {
    let Some(machine) = Machine::new() else { return };
    let live = machine.run(&["devices", "--output", "json"]);
    let recorded = machine.run(&["devices", "--output", "json", "--inventory", "/inventory.yaml"]);
    assert_eq!(json(&live), json(&recorded));
    assert_eq!(json(&live)["devices"].as_array().map(Vec::len), Some(3));
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn a_recording_has_every_property_that_the_driver_reports() {
    let Some(machine) = Machine::new() else { return };
    let recorded = machine.run(&["record"]);
    let recorded = config::inventory::parse("recorded", &recorded.stdout).unwrap();
    assert_eq!(recorded.host.platform, machine.host.host.platform);
    assert_eq!(recorded.host.product, machine.host.host.product);
    assert_eq!(recorded.adapters.len(), machine.host.adapters.len());
    for (recorded, adapter) in recorded.adapters.iter().zip(&machine.host.adapters) {
        assert_eq!((recorded.luid, recorded.hardware), (adapter.luid, adapter.hardware));
        if adapter.hardware {
            assert_eq!(recorded, adapter);
        }
    }
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn an_older_driver_lists_no_compute_only_adapters() {
    let Some(machine) = Machine::new() else { return };
    let all = device_ids(&machine);
    machine.driver.change(|state| state.is_old = true);
    assert_eq!(device_ids(&machine), all[..2]);
}

/// The driver reports only that it has no display, so its vendor says that it is no NPU.
#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn a_gpu_without_a_display_is_advertised_and_an_npu_is_not() {
    let Some(machine) = Machine::new() else { return };
    let found = |machine: &Machine| {
        let printed = json(&machine.run(&["devices", "--output", "json"]));
        let doctor = text(&machine.run(&["doctor"]).stdout);
        let resource = doctor.lines().find(|line| line.contains("directx.microsoft.com/compute"));
        (printed["devices"][2]["kind"].clone(), resource.unwrap_or_default().to_owned())
    };
    let (kind, resource) = found(&machine);
    assert_eq!(kind, "npu");
    assert!(resource.contains("capacity 0: "), "{resource}");
    machine.driver.change(|state| state.adapters[2].hardware_id.vendor = 0x10DE);
    let (kind, resource) = found(&machine);
    assert_eq!(kind, "gpu");
    assert!(resource.ends_with("1 of 1 device healthy"), "{resource}");
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn an_adapter_that_does_not_answer_is_skipped_with_the_reason() {
    let Some(machine) = Machine::new() else { return };
    machine.driver.change(|state| state.query_error = Some((6, libc::ENODEV)));
    let printed = json(&machine.run(&["devices", "--output", "json"]));
    let reason = "cannot read the PCI address (query 6): No such device (os error 19)";
    assert_eq!(printed["skipped"].to_string().matches(reason).count(), 3, "{printed:#}");
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn a_driver_that_hangs_is_named_and_given_up() {
    let Some(machine) = Machine::new() else { return };
    machine.driver.change(|state| state.hangs = true);
    // They wait at the same time.
    let [devices, doctor] = std::thread::scope(|scope| {
        [&["devices"], &["doctor"]]
            .map(|words| scope.spawn(|| machine.run(words)))
            .map(|run| run.join().unwrap())
    });
    for output in [&devices, &doctor] {
        assert_eq!(output.status.code(), Some(1));
        let stderr = text(&output.stderr);
        assert!(stderr.contains("has not answered for 5 s while listing adapters;"), "{stderr}");
    }
    let error = "no answer within 30 s while listing adapters";
    assert!(text(&devices.stderr).contains(error), "{}", text(&devices.stderr));
    let doctor = text(&doctor.stdout);
    let findings: Vec<&str> = doctor.lines().collect();
    let device = findings.iter().position(|line| line.starts_with("problem      device "));
    let device = device.unwrap_or_else(|| panic!("{doctor}"));
    assert!(findings[device].ends_with(error), "{doctor}");
    assert!(findings[device + 1].contains("-> the graphics driver or the system"), "{doctor}");
    assert!(doctor.contains("\nproblem      kubelet-socket "), "{doctor}");
    assert!(doctor.contains("\nok           configuration "), "{doctor}");
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn a_device_file_that_cannot_be_opened_is_explained() {
    const OTHER_FUNCTION: &str = "PCI_ID=1AF4:1041\nPCI_SUBSYS_ID=1414:008E";
    let broken = "the connection of /dev/dxg to the Windows host is broken";
    let no_gpu = "Windows lends no GPU to this virtual machine";
    for (error, on_the_bus, message) in [
        (libc::EBADF, "PCI_ID=1414:008E", broken),
        (libc::EBADF, "PCI_ID=1414:008A", broken),
        (libc::EBADF, OTHER_FUNCTION, no_gpu),
        (libc::EOVERFLOW, OTHER_FUNCTION, broken),
        (libc::ENODEV, "PCI_ID=1414:008E", "cannot open /dev/dxg"),
        (libc::EACCES, "PCI_ID=1414:008E", "pass the device to this container"),
    ] {
        let Some(machine) = Machine::new() else { return };
        machine.set_gpu_on_the_bus(on_the_bus);
        machine.driver.change(|state| state.open_error = Some(error));
        let devices = machine.run(&["devices"]);
        assert_eq!(devices.status.code(), Some(1), "{message}");
        assert!(text(&devices.stderr).contains(message), "{}", text(&devices.stderr));
        let doctor = text(&machine.run(&["doctor"]).stdout);
        let mut problems = doctor.lines().filter(|line| line.starts_with("problem"));
        assert!(problems.any(|line| line.contains(message)), "{doctor}");
    }
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn a_machine_without_the_driver_is_explained() {
    let Some(machine) = Machine::new() else { return };
    fs::remove_file(machine.path("dev/dxg")).unwrap();
    let devices = machine.run(&["devices"]);
    assert_eq!(devices.status.code(), Some(2));
    let message = "this host runs Linux and has no /dev/dxg";
    assert!(text(&devices.stderr).contains(message), "{}", text(&devices.stderr));
}

#[test]
#[ignore = "needs root and musl: cargo xtask test dxg"]
fn doctor_finds_two_healthy_gpus_and_then_a_missing_driver() {
    let Some(machine) = Machine::new() else { return };
    let resource = |text: &str| {
        let line = text.lines().find(|line| line.contains("directx.microsoft.com/display"));
        line.unwrap_or_default().to_owned()
    };
    let healthy = text(&machine.run(&["doctor"]).stdout);
    assert!(resource(&healthy).starts_with("ok "), "{healthy}");
    fs::remove_dir_all(machine.path("usr/lib/wsl")).unwrap();
    let missing = text(&machine.run(&["doctor"]).stdout);
    assert!(resource(&missing).ends_with("0 of 2 devices healthy"), "{missing}");
    assert!(missing.contains("the folder `/usr/lib/wsl/lib` does not exist"), "{missing}");
}
