//! The list of devices, encoded once and shared by every stream that sends it.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use crate::v1beta1;

/// The largest message that a kubelet accepts, in bytes: grpc-go's default, which
/// kubelets leave as it is.
pub const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;

/// What precedes a message on a gRPC stream: a flag (not compressed) and a length.
const FRAME_HEADER: usize = 5;

/// The tag of `ListAndWatchResponse.devices`.
const DEVICES_TAG: u32 = 1;

/// One device (or one share of one) as the kubelet counts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdvertisedDevice {
    /// Unique within the resource.
    pub id: String,
    /// Whether it may be allocated.
    pub health: Health,
    /// The NUMA node it is attached to, where that is to be known.
    pub numa_node: Option<u32>,
}

/// Whether a device may be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Health {
    /// It may.
    #[default]
    Healthy,
    /// It counts towards capacity and is given to nobody.
    Unhealthy,
}

impl Health {
    /// The word that the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Healthy => "Healthy",
            Health::Unhealthy => "Unhealthy",
        }
    }
}

/// A list of devices, ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceList {
    frame: Bytes,
    len: usize,
}

/// The list would be refused by the kubelet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a list of {devices} devices takes {bytes} bytes, and a kubelet accepts {MESSAGE_LIMIT} at most"
)]
pub struct ListTooLarge {
    /// How many devices the list holds.
    pub devices: usize,
    /// How many bytes it takes.
    pub bytes: usize,
}

impl DeviceList {
    /// Encodes a list, in the order given.
    ///
    /// # Errors
    /// The list takes more than [`MESSAGE_LIMIT`] bytes.
    pub fn new(devices: impl IntoIterator<Item = AdvertisedDevice>) -> Result<Self, ListTooLarge> {
        let mut frame = vec![0; FRAME_HEADER];
        let mut len = 0;
        for device in devices {
            append(&mut frame, device);
            len += 1;
        }
        let bytes = frame.len() - FRAME_HEADER;
        let header = match u32::try_from(bytes) {
            Ok(short) if bytes <= MESSAGE_LIMIT => short.to_be_bytes(),
            _ => return Err(ListTooLarge { devices: len, bytes }),
        };
        frame[1..FRAME_HEADER].copy_from_slice(&header);
        Ok(DeviceList { frame: Bytes::from(frame.into_boxed_slice()), len })
    }

    /// How many devices the list holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list holds no device: a resource of capacity 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The encoded `ListAndWatchResponse`.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.frame[FRAME_HEADER..]
    }

    /// The message with its gRPC frame header, shared rather than copied.
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
        fn a_list_decodes_to_what_went_in(devices in prop::collection::vec(device(), 0..40)) {
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

    /// A list whose message has exactly `bytes` bytes.
    fn sized(bytes: usize) -> Result<DeviceList, ListTooLarge> {
        // Key 1 + length 4 around the device; in it: key 1 + length 4 around the id, 2 + 7 for the health.
        let id = "x".repeat(bytes - 1 - 4 - 1 - 4 - 2 - 7);
        DeviceList::new([AdvertisedDevice { id, health: Health::Healthy, numa_node: None }])
    }

    #[test]
    fn a_list_may_be_as_large_as_the_kubelet_accepts_and_no_larger() {
        assert_eq!(sized(MESSAGE_LIMIT).unwrap().message().len(), MESSAGE_LIMIT);
        let error = sized(MESSAGE_LIMIT + 1).unwrap_err();
        assert_eq!(error, ListTooLarge { devices: 1, bytes: MESSAGE_LIMIT + 1 });
        assert_eq!(
            error.to_string(),
            "a list of 1 devices takes 4194305 bytes, and a kubelet accepts 4194304 at most"
        );
    }

    #[test]
    fn an_empty_list_is_an_empty_message() {
        let list = DeviceList::new([]).unwrap();
        assert!(list.is_empty() && list.message().is_empty());
        assert_eq!(list.frame(), Bytes::from_static(&[0; 5]));
    }
}
