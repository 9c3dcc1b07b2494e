//! The protobuf messages of the kubelet's API.
//!
//! The first byte selects the message type of the rest. A decoded message is the same after
//! encoding and decoding it again, and a device list arrives as it was advertised. Who holds
//! devices is safe to print, and found by the names of the devices.

use kubelet::pod_resources::{Assignment, Attribution, assignments};
use kubelet::v1beta1::{
    AllocateRequest, AllocateResponse, DevicePluginOptions, Empty, ListAndWatchResponse,
    PreStartContainerRequest, PreferredAllocationRequest, PreferredAllocationResponse,
    RegisterRequest,
};
use kubelet::{AdvertisedDevice, DeviceList, Health};
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
            check_pods(bytes);
        }
    }
}

fn check_round_trip<M: Message + Default + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = M::decode(bytes) else { return };
    let encoded = message.encode_to_vec();
    assert_eq!(encoded.len(), message.encoded_len());
    assert_eq!(M::decode(encoded.as_slice()).as_ref(), Ok(&message));
}

fn check_pods(bytes: &[u8]) {
    let Ok(found) = assignments(bytes) else { return };
    let attribution = Attribution::new(found.iter().cloned());
    for Assignment { holder, resource, device_ids } in &found {
        let names = [&holder.namespace, &holder.pod, &holder.container];
        assert!(names.iter().all(|name| !name.chars().any(char::is_control)), "{names:?}");
        assert!(device_ids.iter().all(|id| attribution.holder(resource, id).is_some()));
    }
    let ids: usize = found.iter().map(|assignment| assignment.device_ids.len()).sum();
    assert!(attribution.iter().count() <= ids);
}

/// `DeviceList` encodes its message itself, device by device.
fn check_device_list(bytes: &[u8]) {
    let Ok(message) = ListAndWatchResponse::decode(bytes) else { return };
    let advertised: Vec<AdvertisedDevice> = message
        .devices
        .into_iter()
        .map(|device| AdvertisedDevice {
            health: if device.id.len() % 2 == 0 { Health::Healthy } else { Health::Unhealthy },
            numa_node: device
                .topology
                .and_then(|topology| u32::try_from(topology.nodes.first()?.id).ok()),
            id: device.id,
        })
        .collect();
    let list = DeviceList::new(advertised.clone()).expect("the list is short");
    let arrived = ListAndWatchResponse::decode(list.message()).expect("a list decodes");
    assert_eq!((list.len(), arrived.devices.len()), (advertised.len(), advertised.len()));
    for (arrived, advertised) in arrived.devices.iter().zip(&advertised) {
        assert_eq!((&arrived.id, &*arrived.health), (&advertised.id, advertised.health.as_str()));
        let node = arrived.topology.as_ref().map(|topology| topology.nodes[0].id);
        assert_eq!(node, advertised.numa_node.map(i64::from));
    }
}
