//! Which adapters of a snapshot are probably in a temporary state.

use host::{Adapter, AdapterWarning, HostSnapshot, Luid, WarningEffect};

use crate::hosts::{NVIDIA, basic_adapter, gpu, indirect_display, without_driver_files};

fn warning(luid: i64, effect: WarningEffect) -> AdapterWarning {
    AdapterWarning { luid: Luid(luid), text: "the driver is being updated".to_owned(), effect }
}

#[test]
fn adapters_that_are_unreadable_or_have_no_device_are_unsettled() {
    let without_device = Adapter { pnp: None, ..gpu(2, NVIDIA) };
    let unreadable = warning(7, WarningEffect::Unreadable);
    for (adapter, warnings) in [
        (without_device, vec![]),
        (without_driver_files(3), vec![]),
        (gpu(2, NVIDIA), vec![unreadable]),
    ] {
        let adapters = vec![gpu(1, NVIDIA), adapter];
        let snapshot = HostSnapshot { adapters, warnings, ..HostSnapshot::default() };
        assert!(snapshot.is_unsettled(), "{snapshot:?}");
    }
}

#[test]
fn complete_adapters_displays_software_and_values_that_are_left_out_are_settled() {
    let basic_render = Adapter { pnp: None, hardware: false, ..without_driver_files(2) };
    let called_hardware = Adapter { pnp: None, ..basic_adapter(3, 0x008C) };
    let of_session = Adapter { pnp: None, ..indirect_display(4, None) };
    let mut without_files = indirect_display(5, Some("ROOT"));
    without_files.driver_store = without_driver_files(5).driver_store;
    let snapshot = HostSnapshot {
        adapters: vec![gpu(1, NVIDIA), basic_render, called_hardware, of_session, without_files],
        warnings: vec![warning(1001, WarningEffect::Incomplete)],
        ..HostSnapshot::default()
    };
    assert!(!snapshot.is_unsettled());
    assert!(!HostSnapshot::default().is_unsettled());
}
