//! Which adapters of a snapshot are probably in a temporary state.

use devices::{Adapter, AdapterWarning, HostSnapshot, Luid, Unsettled, WarningEffect};

use crate::hosts::{NVIDIA, gpu, without_driver_files};

fn warning(luid: i64, effect: WarningEffect) -> AdapterWarning {
    AdapterWarning { luid: Luid(luid), text: "the driver is being updated".to_owned(), effect }
}

#[test]
fn adapters_that_are_unreadable_or_have_no_device_are_unsettled() {
    let without_device = Adapter { pnp: None, ..gpu(2, NVIDIA) };
    let snapshot = HostSnapshot {
        adapters: vec![gpu(1, NVIDIA), without_device, without_driver_files(3)],
        warnings: vec![warning(7, WarningEffect::Skipped)],
        ..HostSnapshot::default()
    };
    let expected = [
        (Luid(7), Unsettled::Unreadable),
        (Luid(1002), Unsettled::NoDevice),
        (Luid(1003), Unsettled::NoDriverFiles),
    ];
    assert_eq!(snapshot.unsettled(), expected);
}

#[test]
fn complete_adapters_software_and_values_that_are_left_out_are_settled() {
    let basic_render = Adapter { pnp: None, hardware: false, ..gpu(2, 0x1414) };
    let snapshot = HostSnapshot {
        adapters: vec![gpu(1, NVIDIA), basic_render],
        warnings: vec![warning(1001, WarningEffect::Incomplete)],
        ..HostSnapshot::default()
    };
    assert_eq!(snapshot.unsettled(), []);
    assert_eq!(HostSnapshot::default().unsettled(), []);
}
