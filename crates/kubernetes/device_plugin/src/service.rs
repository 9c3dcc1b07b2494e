//! What a socket serves: the `DevicePlugin` service of one resource, and the status of the process.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::device_list::DeviceList;
use crate::readiness::Readiness;
use crate::resource::{PreferredRequest, Resource};
use crate::status::{StatusReport, v1 as status};
use crate::text::printable;
use crate::v1beta1::device_plugin_server::DevicePlugin;
use crate::v1beta1::{
    AllocateRequest, AllocateResponse, ContainerAllocateRequest,
    ContainerPreferredAllocationResponse, DevicePluginOptions, Empty, ListAndWatchResponse,
    PreStartContainerRequest, PreStartContainerResponse, PreferredAllocationRequest,
    PreferredAllocationResponse,
};

/// How many containers a request may have. Kubelets send one. A container takes a few bytes in a
/// request, but its answer has all mounts of its devices, and the library does not limit answers.
const CONTAINERS: usize = 16;

/// The kubelet's `ListAndWatch` stream on a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum KubeletStream {
    /// No kubelet was asked to connect, so the next stream is from another client.
    Unexpected,
    /// The next stream is the kubelet's. Only the kubelet knows the name of the socket, which is
    /// new and was sent to it.
    Expected,
    /// The kubelet called `ListAndWatch`.
    Open,
    /// The kubelet received the whole first device list.
    ListDelivered,
    /// The stream ended.
    Ended,
}

impl KubeletStream {
    /// Sets the state to `to` if it is `from`. Returns whether it was.
    pub(crate) fn change(stream: &watch::Sender<Self>, from: Self, to: Self) -> bool {
        stream.send_if_modified(|state| {
            let is_changed = *state == from;
            if is_changed {
                *state = to;
            }
            is_changed
        })
    }
}

/// The services of one socket.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) resource: Arc<dyn Resource>,
    /// Ends the streams.
    pub(crate) close: CancellationToken,
    pub(crate) stream: watch::Sender<KubeletStream>,
    /// The answer to a status call.
    pub(crate) readiness: watch::Receiver<Readiness>,
}

impl Service {
    /// Refuses a request for more containers than [`CONTAINERS`].
    fn check_count<T>(&self, containers: &[T]) -> Result<(), Status> {
        if containers.len() <= CONTAINERS {
            return Ok(());
        }
        let count = containers.len();
        let resource = self.resource.name();
        tracing::warn!(resource, count, "refused a request for too many containers");
        let text = format!("request has {count} containers, at most {CONTAINERS} are supported");
        Err(Status::invalid_argument(text))
    }

    /// Logs an error of the resource and returns it. Its message is escaped and shortened, because
    /// it may quote what a client sent.
    fn refusal(&self, what: &str, ids: &[String], error: &Status) -> Status {
        let resource = self.resource.name();
        let text = printable(error.message());
        tracing::warn!(resource, ?ids, error = text, "{what}");
        Status::new(error.code(), text)
    }
}

#[tonic::async_trait]
impl DevicePlugin for Service {
    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        tracing::debug!(resource = self.resource.name(), "GetDevicePluginOptions called");
        Ok(Response::new(self.resource.options()))
    }

    type ListAndWatchStream =
        Pin<Box<dyn Stream<Item = Result<ListAndWatchResponse, Status>> + Send>>;

    async fn list_and_watch(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let from_kubelet =
            KubeletStream::change(&self.stream, KubeletStream::Expected, KubeletStream::Open);
        tracing::debug!(resource = self.resource.name(), from_kubelet, "ListAndWatch called");
        let lists = Lists {
            devices: self.resource.devices(),
            close: self.close.clone(),
            sent: None,
            stream: if from_kubelet {
                self.stream.clone()
            } else {
                watch::Sender::new(KubeletStream::Unexpected)
            },
        };
        Ok(Response::new(Box::pin(stream::unfold(lists, Lists::next))))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let containers = request.into_inner().container_requests;
        self.check_count(&containers)?;
        let mut container_responses = Vec::with_capacity(containers.len());
        for container in &containers {
            // The answer is only advice, so a wrong size is not an error.
            let size = usize::try_from(container.allocation_size).unwrap_or(0);
            let available = &container.available_device_ids;
            let included = &container.must_include_device_ids;
            let device_ids = self
                .resource
                .preferred_allocation(PreferredRequest::new(available, included, size))
                .await
                .map_err(|e| self.refusal("GetPreferredAllocation failed", included, &e))?;
            tracing::debug!(
                resource = self.resource.name(),
                available = available.len(),
                size,
                preferred = ?device_ids,
                "GetPreferredAllocation succeeded"
            );
            container_responses.push(ContainerPreferredAllocationResponse { device_ids });
        }
        Ok(Response::new(PreferredAllocationResponse { container_responses }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let containers = request.into_inner().container_requests;
        self.check_count(&containers)?;
        let mut container_responses = Vec::with_capacity(containers.len());
        for ContainerAllocateRequest { devices_ids: ids } in &containers {
            let allocated = self.resource.allocate(ids).await;
            let response = allocated.map_err(|e| self.refusal("Allocate failed", ids, &e))?;
            container_responses.push(response);
        }
        Ok(Response::new(AllocateResponse { container_responses }))
    }

    async fn pre_start_container(
        &self,
        request: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        let ids = request.into_inner().devices_ids;
        let started = self.resource.pre_start(&ids).await;
        started.map_err(|error| self.refusal("PreStartContainer failed", &ids, &error))?;
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

#[tonic::async_trait]
impl status::status_server::Status for Service {
    async fn get(
        &self,
        _: Request<status::StatusRequest>,
    ) -> Result<Response<StatusReport>, Status> {
        Ok(Response::new(self.readiness.borrow().report(Instant::now())))
    }
}

/// A running `ListAndWatch`.
struct Lists {
    devices: watch::Receiver<Arc<DeviceList>>,
    close: CancellationToken,
    sent: Option<Arc<DeviceList>>,
    /// The state of the stream. Nobody reads the state of a stream of another client.
    stream: watch::Sender<KubeletStream>,
}

impl Lists {
    async fn next(mut self) -> Option<(Result<ListAndWatchResponse, Status>, Self)> {
        if self.sent.is_some() {
            // tonic polls again only after h2 took the previous message, i.e. after flow control
            // let it out: being polled a second time means that the kubelet has the list.
            yield_now().await;
            self.stream.send_replace(KubeletStream::ListDelivered);
        }
        loop {
            let list = self.devices.borrow_and_update().clone();
            if self.sent.as_ref() != Some(&list) {
                let message = list.message();
                self.sent = Some(list);
                return Some((Ok(message), self));
            }
            tokio::select! {
                biased;
                () = self.close.cancelled() => break,
                // An error means that the sender was dropped, so the list never changes again.
                Ok(()) = self.devices.changed() => {}
            }
        }
        // The kubelet logs this message when it marks the devices unhealthy.
        Some((Err(Status::unavailable("device plugin is closing this socket")), self))
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.stream.send_replace(KubeletStream::Ended);
    }
}
