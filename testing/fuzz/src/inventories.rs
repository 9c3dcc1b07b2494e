//! Inventories, which people write and send to each other.
//!
//! What parses is written and reads back the same, and every adapter of it is either
//! offered under exactly one resource or not advertised. What does not parse is refused with its line.

use devices::{DeviceSet, DriverModel, Moment};
use host::HostSnapshot;

/// Checks one input.
pub fn check(data: &[u8]) {
    let snapshot = match config::inventory::parse("i", data) {
        Ok(snapshot) => snapshot,
        Err(error) => return crate::sensible(&error, "i", data),
    };
    reads_back(&snapshot);
    for models in [&[][..], &[DriverModel::Legacy]] {
        every_adapter_once(models, &snapshot);
    }
}

fn reads_back(snapshot: &HostSnapshot) {
    let written = config::inventory::to_yaml(snapshot).expect("an inventory lists its files");
    let again = match config::inventory::parse("written", &written) {
        Ok(again) => again,
        Err(error) => panic!("{error}\n{written}"),
    };
    assert_eq!(*snapshot, again, "{written}");
    assert_eq!(config::inventory::to_yaml(&again).ok(), Some(written));
}

fn every_adapter_once(models: &[DriverModel], snapshot: &HostSnapshot) {
    let offer = crate::catalog(models, "").offer(snapshot);
    let offered: usize = offer.resources.iter().map(|resource| resource.devices.len()).sum();
    assert_eq!(offered + offer.not_advertised.len(), snapshot.adapters.len());
    let set = DeviceSet::next(None, offer, Moment::default());
    assert_eq!(set.resources.iter().map(|r| r.entries().len()).sum::<usize>(), offered);
}
