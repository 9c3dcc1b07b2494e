//! IDs of replicas, which kubelets send back and keep in their checkpoints.
//!
//! An ID that parses is printed exactly as it was, and only advertised replicas can be
//! allocated.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use devices::{DeviceSet, Moment, ResourceDevices, plan};

static SET: LazyLock<DeviceSet> = LazyLock::new(|| {
    let catalog = crate::catalog(&[], "multitenancy: 12");
    DeviceSet::next(None, catalog.offer(&crate::fixture()), Moment::default())
});

static ADVERTISED: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| resource().replicas().map(|replica| replica.id.to_string()).collect());

fn resource() -> &'static Arc<ResourceDevices> {
    &SET.resources[0]
}

/// Checks one input.
pub fn check(data: &[u8]) {
    let text = crate::first_text(data);
    let planned = plan(resource(), [text], &SET.host, &|_| false);
    assert_eq!(planned.is_ok(), ADVERTISED.contains(text), "{planned:?}");
}
