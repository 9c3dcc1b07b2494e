//! The limits of a request for devices, checked on its encoded form: a device ID of two bytes
//! would occupy 24 bytes in decoded form.

use tonic::Status;

use crate::DeviceList;
use crate::message_fields::{FieldError, next_field};

/// How many containers a request may have. Kubelets send one.
const CONTAINERS: usize = 16;

/// How many device IDs any request may have. A kubelet can send IDs of an earlier list that was
/// longer than the current one.
const IDS: usize = 16 * 1024;

/// How long any device ID may be, in bytes. The longest device instance ID of Windows has 199
/// UTF-16 code units (`MAX_DEVICE_ID_LEN`, cfgmgr32.h), so at most 597 bytes, and a replica number
/// follows.
const ID_BYTES: usize = 1024;

/// The tag of the containers in every request for devices.
const CONTAINER: u32 = 1;

/// The tags of the device IDs of a container: `devices_ids`, or `available_deviceIDs` and
/// `must_include_deviceIDs`.
const DEVICE_IDS: [u32; 2] = [1, 2];

/// The limits of `Allocate` and `GetPreferredAllocation` for one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestLimits {
    ids: usize,
    id_bytes: usize,
}

impl RequestLimits {
    /// The limits for a resource whose current list is `list`. A preferred allocation names every
    /// slot at most twice: as available, and as one that must be included.
    pub(crate) fn new(list: &DeviceList) -> Self {
        RequestLimits { ids: IDS.max(2 * list.len()), id_bytes: ID_BYTES.max(list.longest_id()) }
    }

    /// Checks an encoded `AllocateRequest` or `PreferredAllocationRequest`.
    ///
    /// # Errors
    /// `InvalidArgument` if the request exceeds a limit or is not encoded correctly.
    pub(crate) fn check(&self, mut message: &[u8]) -> Result<(), Status> {
        let (mut containers, mut ids) = (0, 0);
        while let Some((tag, mut container)) = next_field(&mut message).map_err(not_a_message)? {
            if tag != CONTAINER {
                continue;
            }
            containers += 1;
            if containers > CONTAINERS {
                return Err(exceeds(&format!("more than {CONTAINERS} containers")));
            }
            while let Some((tag, id)) = next_field(&mut container).map_err(not_a_message)? {
                if !DEVICE_IDS.contains(&tag) {
                    continue;
                }
                ids += 1;
                if ids > self.ids {
                    return Err(exceeds(&format!("more than {} device IDs", self.ids)));
                }
                if id.len() > self.id_bytes {
                    let (length, limit) = (id.len(), self.id_bytes);
                    let id = format!("a device ID of {length} bytes; at most {limit} are accepted");
                    return Err(exceeds(&id));
                }
            }
        }
        Ok(())
    }
}

fn exceeds(what: &str) -> Status {
    Status::invalid_argument(format!("request has {what}"))
}

fn not_a_message(error: FieldError) -> Status {
    match error {
        FieldError::Malformed(error) => invalid(&error),
        FieldError::Incomplete => Status::invalid_argument("request is incomplete"),
    }
}

/// A request that is not encoded correctly.
pub(crate) fn invalid(error: &prost::DecodeError) -> Status {
    Status::invalid_argument(format!("invalid request: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::v1beta1::{
        AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
        PreferredAllocationRequest,
    };
    use crate::{AdvertisedDevice, Health};

    fn limits(ids: impl IntoIterator<Item = String>) -> RequestLimits {
        let devices = ids.into_iter().map(|id| AdvertisedDevice {
            id,
            health: Health::Healthy,
            numa_node: None,
        });
        RequestLimits::new(&DeviceList::new(devices).unwrap())
    }

    fn allocate(containers: usize, ids: &[String]) -> Vec<u8> {
        let container = ContainerAllocateRequest { devices_ids: ids.to_vec() };
        AllocateRequest { container_requests: vec![container; containers] }.encode_to_vec()
    }

    fn refusal(limits: RequestLimits, message: &[u8]) -> String {
        limits.check(message).unwrap_err().message().to_owned()
    }

    #[test]
    fn containers_ids_and_the_length_of_ids_are_limited() {
        let few = limits([]);
        let (id, long) = ("x".to_owned(), "x".repeat(ID_BYTES));
        few.check(&allocate(CONTAINERS, std::slice::from_ref(&id))).unwrap();
        few.check(&allocate(1, std::slice::from_ref(&long))).unwrap();
        few.check(&allocate(1, &vec![id.clone(); IDS])).unwrap();
        assert_eq!(
            refusal(few, &allocate(CONTAINERS + 1, &[])),
            "request has more than 16 containers"
        );
        assert_eq!(
            refusal(few, &allocate(1, &vec![id.clone(); IDS + 1])),
            "request has more than 16384 device IDs"
        );
        assert_eq!(
            refusal(few, &allocate(2, &vec![id; IDS])),
            "request has more than 16384 device IDs"
        );
        assert_eq!(
            refusal(few, &allocate(1, &[long + "x"])),
            "request has a device ID of 1025 bytes; at most 1024 are accepted"
        );
    }

    /// A kubelet can ask about every slot of a long list with long IDs.
    #[test]
    fn a_request_for_the_whole_list_is_within_the_limits() {
        let ids: Vec<String> = (0..30_000).map(|n| format!("device-{n}")).collect();
        let all = ContainerPreferredAllocationRequest {
            available_device_ids: ids.clone(),
            must_include_device_ids: ids.clone(),
            allocation_size: 30_000,
        };
        let all = PreferredAllocationRequest { container_requests: vec![all] }.encode_to_vec();
        limits(ids.clone()).check(&all).unwrap();
        assert_eq!(refusal(limits([]), &all), "request has more than 16384 device IDs");
        let long = "x".repeat(5_000);
        limits([long.clone()]).check(&allocate(1, &[long])).unwrap();
    }

    proptest! {
        /// Whatever passes has no more IDs than the limit, also when prost decodes it differently.
        #[test]
        fn any_bytes_are_checked(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let checked = RequestLimits { ids: 3, id_bytes: 4 }.check(&bytes);
            if let (Ok(()), Ok(decoded)) = (checked, AllocateRequest::decode(&*bytes)) {
                let ids = || decoded.container_requests.iter().flat_map(|c| &c.devices_ids);
                prop_assert!(ids().count() <= 3 && ids().all(|id| id.len() <= 4));
            }
        }
    }
}
