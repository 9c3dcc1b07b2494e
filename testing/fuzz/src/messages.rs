//! The protobuf messages of the kubelet's API.
//!
//! The first byte selects the message type of the rest. A decoded message is the same after
//! encoding and decoding it again, and a device list has the devices that were advertised.

use std::collections::HashSet;

use device_plugin::v1beta1::{
    AllocateRequest, AllocateResponse, DevicePluginOptions, Empty, ListAndWatchResponse,
    PreStartContainerRequest, PreferredAllocationRequest, PreferredAllocationResponse,
    RegisterRequest,
};
use device_plugin::{AdvertisedDevice, DeviceList};
use prost::Message;

/// Checks one input.
pub fn check(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 9 {
        0 => check_round_trip::<AllocateRequest>(bytes),
        1 => check_round_trip::<PreferredAllocationRequest>(bytes),
        2 => check_round_trip::<PreStartContainerRequest>(bytes),
        3 => check_round_trip::<Empty>(bytes),
        4 => check_round_trip::<AllocateResponse>(bytes),
        5 => check_round_trip::<PreferredAllocationResponse>(bytes),
        6 => check_round_trip::<DevicePluginOptions>(bytes),
        7 => check_round_trip::<RegisterRequest>(bytes),
        _ => {
            check_round_trip::<ListAndWatchResponse>(bytes);
            check_device_list(bytes);
        }
    }
}

fn check_round_trip<M: Message + Default + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = M::decode(bytes) else { return };
    let encoded = message.encode_to_vec();
    assert_eq!(encoded.len(), message.encoded_len());
    assert_eq!(M::decode(encoded.as_slice()).as_ref(), Ok(&message));
}

/// A list has the devices that it was made of, if each has its own ID.
fn check_device_list(bytes: &[u8]) {
    let Ok(message) = ListAndWatchResponse::decode(bytes) else { return };
    let advertised: Vec<AdvertisedDevice> = message
        .devices
        .into_iter()
        .map(|device| {
            let nodes = device.topology.map(|topology| topology.nodes).unwrap_or_default();
            let mut advertised = AdvertisedDevice::healthy(device.id);
            advertised.healthy = advertised.id.len() % 2 == 0;
            advertised.numa_nodes =
                nodes.iter().filter_map(|node| u32::try_from(node.id).ok()).collect();
            advertised
        })
        .collect();
    let ids: HashSet<&str> = advertised.iter().map(|device| &*device.id).collect();
    let are_unique = ids.len() == advertised.len() && !ids.contains("");
    let list = DeviceList::new(advertised.clone());
    assert_eq!(list.is_ok(), are_unique);
    let Ok(list) = list else { return };
    assert_eq!(list.devices().len(), advertised.len());
    for (arrived, advertised) in list.devices().iter().zip(&advertised) {
        let health = if advertised.healthy { "Healthy" } else { "Unhealthy" };
        assert_eq!((&*arrived.id, &*arrived.health), (&*advertised.id, health));
        let nodes = arrived.topology.iter().flat_map(|topology| &topology.nodes);
        assert!(nodes.map(|node| node.id).eq(advertised.numa_nodes.iter().copied().map(i64::from)));
    }
}
