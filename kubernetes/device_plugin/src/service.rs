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
    AllocateRequest, AllocateResponse, ContainerAllocateResponse,
    ContainerPreferredAllocationRequest, ContainerPreferredAllocationResponse, DevicePluginOptions,
    Empty, ListAndWatchResponse, PreStartContainerRequest, PreStartContainerResponse,
    PreferredAllocationRequest, PreferredAllocationResponse,
};

/// How many containers a request may have. Kubelets send one.
const CONTAINERS: usize = 16;

/// How many device IDs any request may have. A kubelet can send IDs of an earlier list that was
/// longer than the current one.
const IDS: usize = 16 * 1024;

/// The kubelet's `ListAndWatch` stream on a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum KubeletStream {
    /// The next stream is that of another client.
    Unexpected,
    /// The next stream is the kubelet's: it was sent the name of the socket, which is new.
    Expected,
    /// The kubelet called `ListAndWatch`.
    Open,
    /// The kubelet received the whole first device list.
    ListDelivered,
    /// The stream ended.
    Ended,
}

/// The services of one socket.
pub(crate) struct Service {
    pub(crate) resource: Arc<dyn Resource>,
    /// Ends the streams.
    pub(crate) close: CancellationToken,
    pub(crate) stream: watch::Sender<KubeletStream>,
    /// The answer to a status call.
    pub(crate) readiness: watch::Receiver<Readiness>,
}

impl Service {
    /// Checks how much a request asks for.
    fn check(&self, containers: usize, ids: usize) -> Result<(), Status> {
        // A preferred allocation names every device at most twice: as available, and as one that
        // must be included.
        let limit = IDS.max(2 * self.resource.devices().borrow().devices().len());
        for (count, limit, what) in
            [(containers, CONTAINERS, "containers"), (ids, limit, "device IDs")]
        {
            if count > limit {
                let text = format!("request has more than {limit} {what}");
                return Err(Status::invalid_argument(text));
            }
        }
        Ok(())
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
        let from_kubelet = self.stream.send_if_modified(|stream| {
            let is_expected = *stream == KubeletStream::Expected;
            if is_expected {
                *stream = KubeletStream::Open;
            }
            is_expected
        });
        tracing::debug!(resource = self.resource.name(), from_kubelet, "ListAndWatch called");
        let lists = Lists {
            devices: self.resource.devices(),
            close: self.close.clone(),
            sent: None,
            kubelet: KubeletStreamReport(from_kubelet.then(|| self.stream.clone())),
        };
        Ok(Response::new(Box::pin(stream::unfold(lists, Lists::next))))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let containers = request.into_inner().container_requests;
        self.check(containers.len(), containers.iter().map(ids_of).sum())?;
        let mut container_responses = Vec::with_capacity(containers.len());
        for container in &containers {
            container_responses.push(prefer(&*self.resource, container).await?);
        }
        Ok(Response::new(PreferredAllocationResponse { container_responses }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let containers = request.into_inner().container_requests;
        let ids = containers.iter().map(|container| container.devices_ids.len()).sum();
        self.check(containers.len(), ids)?;
        let mut container_responses = Vec::with_capacity(containers.len());
        for container in &containers {
            container_responses.push(allocate(&*self.resource, &container.devices_ids).await?);
        }
        Ok(Response::new(AllocateResponse { container_responses }))
    }

    async fn pre_start_container(
        &self,
        request: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        let ids = request.into_inner().devices_ids;
        self.check(1, ids.len())?;
        let resource = &*self.resource;
        let started = resource.pre_start(&ids).await;
        started.map_err(|error| refusal(resource, "PreStartContainer failed", &ids, &error))?;
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

async fn allocate(
    resource: &dyn Resource,
    ids: &[String],
) -> Result<ContainerAllocateResponse, Status> {
    let response = resource
        .allocate(ids)
        .await
        .map_err(|error| refusal(resource, "Allocate failed", ids, &error))?;
    tracing::debug!(
        resource = resource.name(),
        ?ids,
        devices = response.devices.len(),
        mounts = response.mounts.len(),
        "Allocate succeeded"
    );
    Ok(response)
}

/// How many IDs a request for one container has.
fn ids_of(container: &ContainerPreferredAllocationRequest) -> usize {
    container.available_device_ids.len() + container.must_include_device_ids.len()
}

async fn prefer(
    resource: &dyn Resource,
    container: &ContainerPreferredAllocationRequest,
) -> Result<ContainerPreferredAllocationResponse, Status> {
    let size = usize::try_from(container.allocation_size).map_err(|_| {
        let size = container.allocation_size;
        Status::invalid_argument(format!("invalid allocation size {size}"))
    })?;
    let included = &container.must_include_device_ids;
    let request = PreferredRequest::new(&container.available_device_ids, included, size);
    let device_ids = resource
        .preferred_allocation(request)
        .await
        .map_err(|error| refusal(resource, "GetPreferredAllocation failed", included, &error))?;
    tracing::debug!(
        resource = resource.name(),
        available = container.available_device_ids.len(),
        size,
        preferred = ?device_ids,
        "GetPreferredAllocation succeeded"
    );
    Ok(ContainerPreferredAllocationResponse { device_ids })
}

/// Logs the error of a plugin and returns it. Its message may quote what a client sent.
fn refusal(resource: &dyn Resource, what: &str, ids: &[String], error: &Status) -> Status {
    let (resource, text) = (resource.name(), printable(error.message()));
    tracing::warn!(resource, ?ids, error = text, "{what}");
    Status::new(error.code(), text)
}

/// A running `ListAndWatch`.
struct Lists {
    devices: watch::Receiver<Arc<DeviceList>>,
    close: CancellationToken,
    sent: Option<Arc<DeviceList>>,
    kubelet: KubeletStreamReport,
}

impl Lists {
    async fn next(mut self) -> Option<(Result<ListAndWatchResponse, Status>, Self)> {
        if self.sent.is_some() {
            // The server takes the list, and comes back when the peer has granted a window for it.
            yield_now().await;
            self.kubelet.set(KubeletStream::ListDelivered);
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

/// Reports what becomes of the kubelet's stream. For other streams it is empty.
struct KubeletStreamReport(Option<watch::Sender<KubeletStream>>);

impl KubeletStreamReport {
    fn set(&self, state: KubeletStream) {
        if let Some(stream) = &self.0 {
            stream.send_replace(state);
        }
    }
}

impl Drop for KubeletStreamReport {
    fn drop(&mut self) {
        self.set(KubeletStream::Ended);
    }
}
