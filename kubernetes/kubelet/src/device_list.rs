//! The device list, encoded once and shared by all streams that send it.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use crate::v1beta1;

/// The largest message that a kubelet accepts, in bytes: the default of grpc-go, which kubelets do
/// not change.
pub const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;

/// The size of the header of a gRPC message: a compression flag and the length of the message.
pub(crate) const FRAME_HEADER: usize = 5;

/// The tag of `ListAndWatchResponse.devices`.
const DEVICES_TAG: u32 = 1;

/// One device, or one replica of a shared device, as the kubelet counts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdvertisedDevice {
    /// Unique within the resource.
    pub id: String,
    /// Whether the device may be allocated.
    pub health: Health,
    /// The NUMA node of the device, if it is advertised.
    pub numa_node: Option<u32>,
}

/// Whether a device may be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Health {
    /// The device may be allocated.
    #[default]
    Healthy,
    /// The device counts towards capacity and is not allocated.
    Unhealthy,
}

impl Health {
    /// The value of the API's `health` field.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Healthy => "Healthy",
            Health::Unhealthy => "Unhealthy",
        }
    }
}

/// An encoded list of devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceList {
    frame: Bytes,
    len: usize,
    longest_id: usize,
}

/// The device list exceeds the kubelet's message limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "device list with {devices} devices is {bytes} bytes long; kubelet accepts at most {MESSAGE_LIMIT} bytes"
)]
pub struct ListTooLarge {
    /// The number of devices in the list.
    pub devices: usize,
    /// The size of the encoded list, in bytes.
    pub bytes: usize,
}

impl DeviceList {
    /// Encodes a list, in the order given.
    ///
    /// # Errors
    /// The encoded list is larger than [`MESSAGE_LIMIT`].
    pub fn new(devices: impl IntoIterator<Item = AdvertisedDevice>) -> Result<Self, ListTooLarge> {
        let mut frame = vec![0; FRAME_HEADER];
        let (mut len, mut longest_id) = (0, 0);
        for device in devices {
            longest_id = longest_id.max(device.id.len());
            append(&mut frame, device);
            len += 1;
        }
        let bytes = frame.len() - FRAME_HEADER;
        let header = match u32::try_from(bytes) {
            Ok(short) if bytes <= MESSAGE_LIMIT => short.to_be_bytes(),
            _ => return Err(ListTooLarge { devices: len, bytes }),
        };
        frame[1..FRAME_HEADER].copy_from_slice(&header);
        Ok(DeviceList { frame: Bytes::from(frame.into_boxed_slice()), len, longest_id })
    }

    /// The number of devices in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty, which gives the resource a capacity of 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of the longest device ID, in bytes.
    pub(crate) fn longest_id(&self) -> usize {
        self.longest_id
    }

    /// The encoded `ListAndWatchResponse`.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.frame[FRAME_HEADER..]
    }

    /// The message with its gRPC frame header. The bytes are shared, not copied.
    pub(crate) fn frame(&self) -> Bytes {
        self.frame.clone()
    }
}

fn append(frame: &mut Vec<u8>, device: AdvertisedDevice) {
    let message = v1beta1::Device {
        id: device.id,
        health: device.health.as_str().to_owned(),
        topology: device.numa_node.map(|node| v1beta1::TopologyInfo {
            nodes: vec![v1beta1::NumaNode { id: node.into() }],
        }),
    };
    let length = message.encoded_len();
    frame.reserve(key_len(DEVICES_TAG) + encoded_len_varint(length as u64) + length);
    encode_key(DEVICES_TAG, WireType::LengthDelimited, frame);
    encode_varint(length as u64, frame);
    message.encode_raw(frame);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device() -> impl Strategy<Value = AdvertisedDevice> {
        (".{0,40}", any::<bool>(), any::<Option<u32>>()).prop_map(|(id, healthy, numa_node)| {
            let health = if healthy { Health::Healthy } else { Health::Unhealthy };
            AdvertisedDevice { id, health, numa_node }
        })
    }

    proptest! {
        #[test]
        fn a_list_decodes_to_the_same_devices(devices in prop::collection::vec(device(), 0..40)) {
            let list = DeviceList::new(devices.clone()).unwrap();
            prop_assert_eq!(list.len(), devices.len());
            let decoded = v1beta1::ListAndWatchResponse::decode(list.message()).unwrap();
            prop_assert_eq!(decoded.devices.len(), devices.len());
            for (decoded, device) in decoded.devices.iter().zip(&devices) {
                prop_assert_eq!(&decoded.id, &device.id);
                prop_assert_eq!(&decoded.health, device.health.as_str());
                let nodes = decoded.topology.iter().flat_map(|t| &t.nodes).map(|n| n.id);
                prop_assert!(nodes.eq(device.numa_node.map(i64::from)));
            }
            prop_assert_eq!(list.message(), decoded.encode_to_vec());
        }
    }

    /// A list whose message is exactly `bytes` bytes long.
    fn list_of_size(bytes: usize) -> Result<DeviceList, ListTooLarge> {
        // The device: key 1 + length 4. In it the id: key 1 + length 4. The health: 2 + 7.
        let id = "x".repeat(bytes - 1 - 4 - 1 - 4 - 2 - 7);
        DeviceList::new([AdvertisedDevice { id, health: Health::Healthy, numa_node: None }])
    }

    #[test]
    fn accepts_a_list_up_to_the_message_limit() {
        assert_eq!(list_of_size(MESSAGE_LIMIT).unwrap().message().len(), MESSAGE_LIMIT);
        let error = list_of_size(MESSAGE_LIMIT + 1).unwrap_err();
        assert_eq!(error, ListTooLarge { devices: 1, bytes: MESSAGE_LIMIT + 1 });
        assert_eq!(
            error.to_string(),
            "device list with 1 devices is 4194305 bytes long; kubelet accepts at most 4194304 bytes"
        );
    }

    #[test]
    fn an_empty_list_is_an_empty_message() {
        let list = DeviceList::new([]).unwrap();
        assert!(list.is_empty() && list.message().is_empty());
        assert_eq!(list.frame(), Bytes::from_static(&[0; 5]));
    }
}
