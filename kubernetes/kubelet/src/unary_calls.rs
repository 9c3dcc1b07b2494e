//! The unary calls of an endpoint: those of the `DevicePlugin` service, and the status call.
//!
//! A request is checked in its encoded form before it is decoded, and a response is measured with
//! each container, so that no call occupies much more than its messages. Long computations run on
//! another thread, one at a time, so that all other calls and the registration continue.

use std::panic::resume_unwind;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use prost::Message;
use tokio::sync::watch;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

use crate::ContainerResponse;
use crate::claim::Claim;
use crate::grpc_message::{RequestMessage, ResponseMessage, receive};
use crate::memory_budget::Share;
use crate::readiness::Readiness;
use crate::registration::OPTIONS;
use crate::request_limits::{RequestLimits, invalid};
use crate::resource::{PreferredRequest, Resource};
use crate::status::{self, StatusReport};
use crate::v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
    ContainerPreferredAllocationResponse, PreStartContainerResponse, PreferredAllocationRequest,
};

/// The size of a request whose answer is computed on the thread that serves everything else, in
/// bytes: about 200 device IDs, which takes less than a millisecond.
const SHORT: usize = 16 * 1024;

/// What the unary calls of an endpoint need.
pub(crate) struct UnaryCalls<'a> {
    pub(crate) resource: &'a Arc<dyn Resource>,
    pub(crate) readiness: &'a watch::Receiver<Readiness>,
    pub(crate) claim: Claim,
    pub(crate) share: &'a Share,
}

impl UnaryCalls<'_> {
    /// Answers the call of the method at `path`.
    ///
    /// # Errors
    /// The error that the call is answered with.
    pub(crate) async fn answer<B>(&self, path: &str, body: B) -> Result<Response<Body>, Status>
    where
        B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
    {
        let request = receive(body, self.share).await?;
        let response = match path {
            "/v1beta1.DevicePlugin/GetDevicePluginOptions" => {
                let resource = self.resource.name();
                tracing::debug!(resource, "GetDevicePluginOptions called");
                ResponseMessage::of(&OPTIONS, self.share)
            }
            "/v1beta1.DevicePlugin/GetPreferredAllocation" => self.prefer(request).await,
            "/v1beta1.DevicePlugin/Allocate" => self.allocate(request).await,
            // The device IDs of the request make no difference, so they are not decoded.
            "/v1beta1.DevicePlugin/PreStartContainer" => {
                ResponseMessage::of(&PreStartContainerResponse {}, self.share)
            }
            status::GET => {
                let report = StatusReport {
                    claim: Some(self.claim),
                    ..StatusReport::of(&self.readiness.borrow(), Instant::now())
                };
                ResponseMessage::of(&report, self.share)
            }
            _ => Err(Status::unimplemented("unknown method")),
        };
        response.map(ResponseMessage::send)
    }

    async fn allocate(&self, request: RequestMessage) -> Result<ResponseMessage, Status> {
        let containers = |request: AllocateRequest| request.container_requests;
        self.for_each_container(request, containers, allocate).await
    }

    async fn prefer(&self, request: RequestMessage) -> Result<ResponseMessage, Status> {
        let containers = |request: PreferredAllocationRequest| request.container_requests;
        self.for_each_container(request, containers, prefer).await
    }

    /// Answers a request for devices container by container.
    async fn for_each_container<R, C, A>(
        &self,
        request: RequestMessage,
        containers: impl FnOnce(R) -> Vec<C> + Send + 'static,
        answer: impl Fn(&dyn Resource, &C) -> Result<A, Status> + Send + 'static,
    ) -> Result<ResponseMessage, Status>
    where
        R: Message + Default,
        A: Message,
    {
        RequestLimits::new(&self.resource.devices().borrow()).check(request.bytes())?;
        if request.bytes().len() > SHORT {
            let (resource, share) = (Arc::clone(self.resource), self.share.clone());
            return on_another_thread(self.share, move || {
                let request = R::decode(request.bytes()).map_err(|error| invalid(&error))?;
                let mut response = ResponseMessage::new(&share)?;
                for container in containers(request) {
                    response.add_container(&answer(&*resource, &container)?)?;
                }
                Ok(response)
            })
            .await;
        }
        let request = R::decode(request.bytes()).map_err(|error| invalid(&error))?;
        let mut response = ResponseMessage::new(self.share)?;
        for container in containers(request) {
            response.add_container(&answer(&**self.resource, &container)?)?;
            yield_now().await;
        }
        Ok(response)
    }
}

/// Runs a long computation of a share when it is its turn. The turn ends with the computation,
/// also when the call has ended before.
async fn on_another_thread<T: Send + 'static>(
    share: &Share,
    compute: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let turn = share.turn_to_compute().await;
    let computed = spawn_blocking(move || {
        let _turn = turn;
        compute()
    });
    computed.await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Err(Status::unavailable("plugin is shutting down")),
    })
}

fn allocate(
    resource: &dyn Resource,
    container: &ContainerAllocateRequest,
) -> Result<ContainerResponse, Status> {
    let ids = &container.devices_ids;
    let response = resource.allocate(ids).inspect_err(|refusal| {
        tracing::warn!(resource = resource.name(), ?ids, error = %refusal, "Allocate failed");
    })?;
    tracing::debug!(
        resource = resource.name(),
        ?ids,
        devices = response.devices.len(),
        mounts = response.mounts.len(),
        "Allocate succeeded"
    );
    Ok(response)
}

fn prefer(
    resource: &dyn Resource,
    container: &ContainerPreferredAllocationRequest,
) -> Result<ContainerPreferredAllocationResponse, Status> {
    let size = usize::try_from(container.allocation_size).map_err(|_| {
        let size = container.allocation_size;
        Status::invalid_argument(format!("invalid allocation size {size}"))
    })?;
    let preferred = resource.prefer(PreferredRequest {
        available: &container.available_device_ids,
        must_include: &container.must_include_device_ids,
        size,
    });
    let device_ids = preferred.inspect_err(|refusal| {
        tracing::warn!(
            resource = resource.name(),
            size,
            error = %refusal,
            "GetPreferredAllocation failed"
        );
    })?;
    tracing::debug!(
        resource = resource.name(),
        available = container.available_device_ids.len(),
        size,
        preferred = ?device_ids,
        "GetPreferredAllocation succeeded"
    );
    Ok(ContainerPreferredAllocationResponse { device_ids })
}
