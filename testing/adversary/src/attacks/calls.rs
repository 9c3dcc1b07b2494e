//! Complete requests that are expensive or malicious.

use anyhow::{Result, ensure};
use bytes::Bytes;
use daemon_bed::Method;
use device_plugin::v1beta1::{ContainerPreferredAllocationRequest, PreferredAllocationRequest};
use prost::Message;

use crate::target::{Target, allocate_request, block_on};

/// The longest request that the daemon reads, less what surrounds it.
const LONGEST: usize = 4 * 1024 * 1024 - 1024;

/// How long the message of an error may be. Clients refuse long headers.
const MESSAGE: usize = 8 * 1024;

pub(super) fn large(target: &Target) -> Result<u64> {
    use Method::{Allocate, GetPreferredAllocation};
    let unknown: Vec<String> = (100_000..500_000).map(|n| format!("x{n}")).collect();
    let replica = target.replicas[..1].to_vec();
    let one = allocate_request(&replica, 1).len();
    let requests = [
        (GetPreferredAllocation, preferred(&target.replicas, target.replicas.len())),
        (GetPreferredAllocation, preferred(&unknown, 1)),
        (Allocate, allocate_request(&replica, LONGEST / one)),
        (Allocate, allocate_request(&target.replicas[..2048], 16)),
    ];
    repeat(target, &requests)
}

pub(super) fn log_injection(target: &Target) -> Result<u64> {
    let ids = [
        "\u{1b}[2J\u{1b}[31mERROR".to_owned(),
        "a\nlevel=error b\r\0c\u{7f}\u{85}".to_owned(),
        "\u{202e}gpu\u{2066}\u{200f}\u{2028}".to_owned(),
        "x".repeat(LONGEST),
        "\u{1b}".repeat(1000),
    ];
    let request = |id| (Method::Allocate, allocate_request(std::slice::from_ref(id), 1));
    repeat(target, &ids.iter().map(request).collect::<Vec<_>>())
}

/// An encoded request for `size` of the available replicas.
pub(super) fn preferred(available: &[String], size: usize) -> Bytes {
    let container = ContainerPreferredAllocationRequest {
        available_device_ids: available.to_vec(),
        must_include_device_ids: Vec::new(),
        allocation_size: i32::try_from(size).unwrap_or(i32::MAX),
    };
    PreferredAllocationRequest { container_requests: vec![container] }.encode_to_vec().into()
}

/// Makes calls over a connection, one after the other. The daemon may refuse them.
fn repeat(target: &Target, requests: &[(Method, Bytes)]) -> Result<u64> {
    block_on(async {
        let mut plugin = target.plugin().await?;
        let (mut count, least) = (0, u64::try_from(requests.len())?);
        for (method, request) in requests.iter().cycle() {
            if !target.goes_on(count) && count >= least {
                break;
            }
            if let Err(error) = plugin.call(*method, request.clone()).await {
                check_message(&error)?;
                if is_lost(&error) {
                    plugin = target.plugin().await?;
                }
            }
            count += 1;
        }
        Ok(count)
    })
}

/// Whether a call failed because its connection is closed.
fn is_lost(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref::<tonic::Status>();
    status.is_none_or(|status| status.code() == tonic::Code::Unknown)
}

fn check_message(error: &anyhow::Error) -> Result<()> {
    let Some(status) = error.downcast_ref::<tonic::Status>() else { return Ok(()) };
    let length = status.message().len();
    ensure!(length <= MESSAGE, "an error message of {length} bytes");
    let control = status.message().chars().find(|c| c.is_control());
    ensure!(control.is_none(), "an error message with control characters: {control:?}");
    Ok(())
}
