//! Invalid instances, and instances before their first discovery, on any host.

use std::ptr;

use directx_device_discovery::abi::*;

use crate::calls::{Owned, failures, text};

#[test]
fn null_invalid_and_destroyed_instances_fail_without_a_crash() {
    let destroyed = CreateDeviceDiscoveryInstance();
    DestroyDeviceDiscoveryInstance(destroyed);
    DestroyDeviceDiscoveryInstance(destroyed);
    let mut number = 7_u64;
    let invalid = ptr::from_mut(&mut number).cast();
    for instance in [ptr::null_mut(), destroyed, invalid, ptr::without_provenance_mut(usize::MAX)] {
        assert_eq!(failures(instance, 0, 0), (vec![-1; 7], vec![true; 10]));
        assert_eq!(DeviceDiscovery_GetNumDevices(instance), -1);
        assert_eq!(DeviceDiscovery_IsRefreshRequired(instance), -1);
        assert_eq!(DeviceDiscovery_DiscoverDevices(instance, 0, 1, 1), -1);
        let error = text(DeviceDiscovery_GetLastErrorMessage(instance)).unwrap();
        assert_eq!(error, "the instance is null or has been destroyed");
        DestroyDeviceDiscoveryInstance(instance);
    }
}

#[test]
fn before_the_first_discovery_every_call_fails_with_a_reason() {
    let i = Owned::new();
    assert_eq!(i.error(), "");
    assert_eq!(DeviceDiscovery_IsRefreshRequired(i.0), 1);
    assert_eq!(failures(i.0, 0, 0), (vec![-1; 7], vec![true; 10]));
    assert_eq!(DeviceDiscovery_GetNumDevices(i.0), -1);
    assert!(i.error().starts_with("no devices have been discovered yet"), "{}", i.error());
    assert_eq!(DeviceDiscovery_DiscoverDevices(i.0, 6, 1, 1), -1);
    assert_eq!(i.error(), "invalid device filter 6: expected 0 to 5");
}

/// On any host, a discovery succeeds or fails with a reason.
#[test]
fn a_discovery_on_this_host_succeeds_or_reports_an_error() {
    let i = Owned::new();
    EnableDiscoveryLogging();
    let outcome = DeviceDiscovery_DiscoverDevices(i.0, 0, 1, 1);
    DisableDiscoveryLogging();
    assert_eq!(i.error().is_empty(), outcome == 0, "{outcome} and `{}`", i.error());
    assert_eq!(DeviceDiscovery_GetNumDevices(i.0) >= 0, outcome == 0);
}

/// The earlier Go device plugins compare the text and refuse any other.
#[test]
fn the_version_is_the_one_that_earlier_clients_require() {
    let version = text(GetDiscoveryLibraryVersion());
    assert_eq!(version.as_deref(), Some("0.0.1"));
}
