//! The device list, shared by all streams that send it.

use std::collections::{BTreeSet, HashSet};

use prost::Message;

use crate::v1beta1::{Device, ListAndWatchResponse, NumaNode, TopologyInfo};

/// The largest message that a kubelet accepts, in bytes: the default of grpc-go, which kubelets do
/// not change.
pub const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;

/// The values of the API's `health` field.
const HEALTHY: &str = "Healthy";
const UNHEALTHY: &str = "Unhealthy";

/// One device, or one replica of a shared device, as the kubelet counts it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AdvertisedDevice {
    /// The ID, which is unique within the resource and not empty. The API limits it to 63
    /// characters, but no kubelet up to 1.37 checks the length.
    pub id: String,
    /// Whether the device may be allocated. An unhealthy one counts towards capacity.
    pub healthy: bool,
    /// The NUMA nodes of the device, for the kubelet's topology manager. Without any, it does not
    /// align the device with processors and memory.
    pub numa_nodes: BTreeSet<u32>,
}

impl AdvertisedDevice {
    /// A healthy device without NUMA nodes. Set these fields afterwards for other devices.
    pub fn healthy(id: impl Into<String>) -> Self {
        AdvertisedDevice { id: id.into(), healthy: true, numa_nodes: BTreeSet::new() }
    }
}

/// A list of devices that a kubelet accepts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceList(ListAndWatchResponse);

/// Why a list of devices is not a [`DeviceList`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceListError {
    /// A device has no ID.
    #[error("the ID of a device is empty")]
    EmptyId,
    /// Two devices have the same ID. A kubelet would count them as one.
    #[error("duplicate device `{0}`")]
    DuplicateId(String),
    /// The list exceeds [`MESSAGE_LIMIT`].
    #[error(
        "device list with {devices} devices is {bytes} bytes long; kubelet accepts at most {MESSAGE_LIMIT} bytes"
    )]
    TooLarge {
        /// The number of devices in the list.
        devices: usize,
        /// The size of the encoded list, in bytes.
        bytes: usize,
    },
}

impl DeviceList {
    /// A list of devices, in the order given.
    ///
    /// # Errors
    /// An ID is empty or not unique, or the encoded list is larger than [`MESSAGE_LIMIT`].
    pub fn new(
        devices: impl IntoIterator<Item = AdvertisedDevice>,
    ) -> Result<Self, DeviceListError> {
        let message =
            ListAndWatchResponse { devices: devices.into_iter().map(Device::from).collect() };
        let bytes = message.encoded_len();
        if bytes > MESSAGE_LIMIT {
            return Err(DeviceListError::TooLarge { devices: message.devices.len(), bytes });
        }
        let mut ids = HashSet::new();
        for Device { id, .. } in &message.devices {
            if id.is_empty() {
                return Err(DeviceListError::EmptyId);
            }
            if !ids.insert(id) {
                return Err(DeviceListError::DuplicateId(id.clone()));
            }
        }
        Ok(DeviceList(message))
    }

    /// The devices as the kubelet receives them. An empty list gives the resource a capacity of 0.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    pub(crate) fn message(&self) -> ListAndWatchResponse {
        self.0.clone()
    }
}

impl From<AdvertisedDevice> for Device {
    fn from(AdvertisedDevice { id, healthy, numa_nodes }: AdvertisedDevice) -> Self {
        let nodes: Vec<_> = numa_nodes.into_iter().map(|id| NumaNode { id: id.into() }).collect();
        Device {
            id,
            health: if healthy { HEALTHY } else { UNHEALTHY }.to_owned(),
            topology: (!nodes.is_empty()).then_some(TopologyInfo { nodes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list whose message is exactly `bytes` bytes long.
    fn list_of_size(bytes: usize) -> Result<DeviceList, DeviceListError> {
        // A device has a key of 1 byte and a length of 4, and so has its ID; the health has 2 and
        // 7.
        DeviceList::new([AdvertisedDevice::healthy("x".repeat(bytes - 1 - 4 - 1 - 4 - 2 - 7))])
    }

    #[test]
    fn accepts_a_list_up_to_the_message_limit() {
        assert_eq!(list_of_size(MESSAGE_LIMIT).unwrap().message().encoded_len(), MESSAGE_LIMIT);
        let error = list_of_size(MESSAGE_LIMIT + 1).unwrap_err();
        assert_eq!(error, DeviceListError::TooLarge { devices: 1, bytes: MESSAGE_LIMIT + 1 });
        assert_eq!(
            error.to_string(),
            "device list with 1 devices is 4194305 bytes long; kubelet accepts at most 4194304 bytes"
        );
    }

    #[test]
    fn ids_are_unique_and_not_empty() {
        let list = |ids: [&str; 3]| DeviceList::new(ids.map(AdvertisedDevice::healthy));
        assert_eq!(list(["a", "b", "a"]), Err(DeviceListError::DuplicateId("a".to_owned())));
        assert_eq!(list(["a", "", "b"]), Err(DeviceListError::EmptyId));
        assert!(list(["a", "A", "b"]).is_ok());
    }

    #[test]
    fn a_device_has_a_topology_if_its_nodes_are_known() {
        let mut device = AdvertisedDevice::healthy("a");
        device.numa_nodes = BTreeSet::from([1, 0]);
        let list = DeviceList::new([device, AdvertisedDevice::healthy("b")]).unwrap();
        let [a, b] = list.devices() else { panic!("{list:?}") };
        let nodes = a.topology.iter().flat_map(|topology| &topology.nodes);
        assert_eq!(nodes.map(|node| node.id).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(b.topology, None);
    }
}
