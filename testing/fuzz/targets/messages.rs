//! The protobuf messages of the kubelet's API.
//!
//! The first byte says which message the rest is. What decodes encodes to something
//! that decodes to the same, and a list that is offered is the list that arrives.

#![no_main]

use kubelet::v1beta1::{
    AllocateRequest, AllocateResponse, DevicePluginOptions, Empty, ListAndWatchResponse,
    PreStartContainerRequest, PreferredAllocationRequest, PreferredAllocationResponse,
    RegisterRequest,
};
use kubelet::{AdvertisedDevice, DeviceList, Health};
use libfuzzer_sys::fuzz_target;
use prost::Message;

fuzz_target!(|data: &[u8]| {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 9 {
        0 => reads_back::<AllocateRequest>(bytes),
        1 => reads_back::<PreferredAllocationRequest>(bytes),
        2 => reads_back::<PreStartContainerRequest>(bytes),
        3 => reads_back::<Empty>(bytes),
        4 => reads_back::<AllocateResponse>(bytes),
        5 => reads_back::<PreferredAllocationResponse>(bytes),
        6 => reads_back::<DevicePluginOptions>(bytes),
        7 => reads_back::<RegisterRequest>(bytes),
        _ => {
            reads_back::<ListAndWatchResponse>(bytes);
            arrives(bytes);
        }
    }
});

fn reads_back<M: Message + Default + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = M::decode(bytes) else { return };
    let encoded = message.encode_to_vec();
    assert_eq!(encoded.len(), message.encoded_len());
    assert_eq!(M::decode(encoded.as_slice()).as_ref(), Ok(&message));
}

/// `DeviceList` writes its message itself, device by device.
fn arrives(bytes: &[u8]) {
    let Ok(message) = ListAndWatchResponse::decode(bytes) else { return };
    let offered: Vec<AdvertisedDevice> = message
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
    let list = DeviceList::new(offered.clone()).expect("the list is short");
    let arrived = ListAndWatchResponse::decode(list.message()).expect("a list decodes");
    assert_eq!((list.len(), arrived.devices.len()), (offered.len(), offered.len()));
    for (arrived, offered) in arrived.devices.iter().zip(&offered) {
        assert_eq!((&arrived.id, &*arrived.health), (&offered.id, offered.health.as_str()));
        let node = arrived.topology.as_ref().map(|topology| topology.nodes[0].id);
        assert_eq!(node, offered.numa_node.map(i64::from));
    }
}
