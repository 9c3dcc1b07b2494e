//! IDs of replicas, which kubelets send back and keep in their checkpoints.
//!
//! An ID that parses is printed exactly as it was, and only advertised replicas can be
//! allocated.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use devices::{DeviceSet, Moment, ResourceDevices, plan};
use host::ReplicaId;

static SET: LazyLock<DeviceSet> = LazyLock::new(|| {
    let catalog = crate::catalog(&[], "multitenancy: 12");
    DeviceSet::next(None, catalog.offer(&crate::fixture()), Moment::default())
});

static ADVERTISED: LazyLock<BTreeSet<ReplicaId>> =
    LazyLock::new(|| resource().replicas().map(|replica| replica.id).collect());

fn resource() -> &'static Arc<ResourceDevices> {
    &SET.resources[0]
}

/// Checks one input.
pub fn check(data: &[u8]) {
    let text = crate::first_text(data);
    let planned = plan(resource(), [text], &SET.host, &|_| false);
    let id = ReplicaId::parse(text);
    assert_eq!(
        planned.is_ok(),
        id.as_ref().is_some_and(|id| ADVERTISED.contains(id)),
        "{planned:?}"
    );
    if let Some(id) = id {
        assert_eq!(id.to_string(), text);
    }
}
