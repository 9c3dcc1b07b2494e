//! What a socket serves: the `DevicePlugin` service of one resource, and the status of the process.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{Stream, stream};
use http::Response as HttpResponse;
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::{Request, Response, Status};

use crate::device_list::{DeviceList, MESSAGE_LIMIT};
use crate::events::{EndpointId, Event};
use crate::limits::{Limits, Peer};
use crate::panicked::Panicked;
use crate::readiness::Readiness;
use crate::resource::{PreferredRequest, Resource};
use crate::status::{StatusReport, v1 as status};
use crate::v1beta1::device_plugin_server::{DevicePlugin, DevicePluginServer};
use crate::v1beta1::{
    AllocateRequest, AllocateResponse, ContainerPreferredAllocationRequest,
    ContainerPreferredAllocationResponse, DevicePluginOptions, Empty, ListAndWatchResponse,
    PreStartContainerRequest, PreStartContainerResponse, PreferredAllocationRequest,
    PreferredAllocationResponse,
};

/// How many containers a request may have. Kubelets send one.
const CONTAINERS: usize = 16;

/// How many device IDs any request may have. A kubelet can send IDs of an earlier list that was
/// longer than the current one.
const IDS: usize = 16 * 1024;

/// How many device IDs are answered on the thread that serves everything else: less than a
/// millisecond of work.
const SHORT: usize = 200;

/// The services of a socket.
#[derive(Clone)]
pub(crate) struct Services {
    plugin: DevicePluginServer<Service>,
    status: status::status_server::StatusServer<Service>,
}

impl Services {
    pub(crate) fn new(service: Service) -> Self {
        let plugin = DevicePluginServer::new(service.clone());
        Services {
            plugin: plugin.max_decoding_message_size(MESSAGE_LIMIT),
            status: status::status_server::StatusServer::new(service),
        }
    }
}

impl tower::Service<http::Request<Body>> for Services {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path().starts_with("/status.v1.Status/") {
            return self.status.call(request);
        }
        self.plugin.call(request)
    }
}

/// The services of one endpoint.
#[derive(Clone)]
pub(crate) struct Service(Arc<EndpointContext>);

/// What the calls of an endpoint need.
pub(crate) struct EndpointContext {
    pub(crate) id: EndpointId,
    pub(crate) resource: Arc<dyn Resource>,
    pub(crate) close: CancellationToken,
    /// Whether the next stream is the kubelet's. Set during a `Register` call: the name of the
    /// socket is new then, and only the kubelet was given it.
    pub(crate) kubelet_expected: Arc<AtomicBool>,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    /// The answer to a status call.
    pub(crate) readiness: watch::Receiver<Readiness>,
    pub(crate) limits: Limits,
}

impl Service {
    pub(crate) fn new(endpoint: EndpointContext) -> Self {
        Service(Arc::new(endpoint))
    }

    /// Computes an answer: a long one on another thread, one at a time. A panic ends the plugin.
    async fn compute<T: Send + 'static>(
        &self,
        is_long: bool,
        is_kubelet: bool,
        compute: impl FnOnce(&dyn Resource) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let endpoint = Arc::clone(&self.0);
        let compute = move || {
            let computed = catch_unwind(AssertUnwindSafe(|| compute(&*endpoint.resource)));
            computed.unwrap_or_else(|payload| {
                let task = format!("connection to {}", endpoint.resource.name());
                // An error means that the supervisor has ended.
                let _ = endpoint.events.send(Event::Panicked(Panicked::new(task, &*payload)));
                Err(Status::internal("plugin panicked"))
            })
        };
        if !is_long {
            return compute();
        }
        let limits = &self.0.limits;
        let turn = if is_kubelet { &limits.kubelet_turn } else { &limits.turn };
        let turn = Arc::clone(turn).acquire_owned().await;
        let computed = spawn_blocking(move || {
            // Ends with the computation, also when the call has ended before.
            let _turn = turn;
            compute()
        });
        computed.await.unwrap_or_else(|_| Err(Status::unavailable("plugin is shutting down")))
    }

    /// Checks how much a request asks for. Returns whether the answer takes long.
    fn check(&self, containers: usize, ids: usize) -> Result<bool, Status> {
        // A preferred allocation names every device at most twice: as available, and as one that
        // must be included.
        let limit = IDS.max(2 * self.0.resource.devices().borrow().devices().len());
        if containers > CONTAINERS {
            let text = format!("request has more than {CONTAINERS} containers");
            return Err(Status::invalid_argument(text));
        }
        if ids > limit {
            let text = format!("request has more than {limit} device IDs");
            return Err(Status::invalid_argument(text));
        }
        Ok(containers > 1 || ids > SHORT)
    }
}

fn is_kubelet<T>(request: &Request<T>) -> bool {
    request.extensions().get::<Arc<Peer>>().is_some_and(|peer| peer.is_kubelet())
}

#[tonic::async_trait]
impl DevicePlugin for Service {
    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        tracing::debug!(resource = self.0.resource.name(), "GetDevicePluginOptions called");
        Ok(Response::new(self.0.resource.options()))
    }

    type ListAndWatchStream =
        Pin<Box<dyn Stream<Item = Result<ListAndWatchResponse, Status>> + Send>>;

    async fn list_and_watch(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let EndpointContext { id, resource, close, kubelet_expected, events, .. } = &*self.0;
        let from_kubelet = kubelet_expected.swap(false, Ordering::Relaxed);
        if from_kubelet && let Some(peer) = request.extensions().get::<Arc<Peer>>() {
            peer.set_kubelet();
        }
        tracing::debug!(resource = resource.name(), from_kubelet, "ListAndWatch called");
        let observer = KubeletStreamObserver(from_kubelet.then(|| (*id, events.clone())));
        observer.send(Event::StreamOpened);
        let lists = Lists {
            devices: resource.devices(),
            close: close.clone(),
            sent: None,
            is_delivered: false,
            observer,
        };
        Ok(Response::new(Box::pin(stream::unfold(lists, Lists::next))))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let is_kubelet = is_kubelet(&request);
        let containers = request.into_inner().container_requests;
        let ids = |c: &ContainerPreferredAllocationRequest| {
            c.available_device_ids.len() + c.must_include_device_ids.len()
        };
        let is_long = self.check(containers.len(), containers.iter().map(ids).sum())?;
        let answers = self.compute(is_long, is_kubelet, move |resource| {
            for_each(containers, |container| prefer(resource, &container))
        });
        Ok(Response::new(PreferredAllocationResponse { container_responses: answers.await? }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let is_kubelet = is_kubelet(&request);
        let containers = request.into_inner().container_requests;
        let ids = containers.iter().map(|container| container.devices_ids.len()).sum();
        let is_long = self.check(containers.len(), ids)?;
        let answers = self.compute(is_long, is_kubelet, move |resource| {
            for_each(containers, |container| allocate(resource, &container.devices_ids))
        });
        Ok(Response::new(AllocateResponse { container_responses: answers.await? }))
    }

    async fn pre_start_container(
        &self,
        request: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        let is_kubelet = is_kubelet(&request);
        let ids = request.into_inner().devices_ids;
        let is_long = self.check(1, ids.len())?;
        let started = self.compute(is_long, is_kubelet, move |resource| {
            resource.pre_start(&ids).map_err(|refusal| {
                let resource = resource.name();
                tracing::warn!(resource, ?ids, error = %refusal, "PreStartContainer failed");
                refusal.into()
            })
        });
        started.await?;
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

#[tonic::async_trait]
impl status::status_server::Status for Service {
    async fn get(
        &self,
        _: Request<status::StatusRequest>,
    ) -> Result<Response<StatusReport>, Status> {
        let report = StatusReport::of(&self.0.readiness.borrow(), Instant::now());
        Ok(Response::new(report))
    }
}

/// Answers a request container by container, and refuses a response that would be too long.
fn for_each<C, A: Message>(
    containers: Vec<C>,
    mut answer: impl FnMut(C) -> Result<A, Status>,
) -> Result<Vec<A>, Status> {
    let (mut answers, mut bytes) = (Vec::with_capacity(containers.len()), 0);
    for container in containers {
        let answer = answer(container)?;
        bytes += answer.encoded_len();
        if bytes > MESSAGE_LIMIT {
            let text = format!("response is longer than {MESSAGE_LIMIT} bytes");
            return Err(Status::resource_exhausted(text));
        }
        answers.push(answer);
    }
    Ok(answers)
}

fn allocate(resource: &dyn Resource, ids: &[String]) -> Result<crate::ContainerResponse, Status> {
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
    let preferred = resource.preferred_allocation(PreferredRequest {
        available: &container.available_device_ids,
        must_include: &container.must_include_device_ids,
        size,
    });
    let device_ids = preferred.inspect_err(|refusal| {
        let resource = resource.name();
        tracing::warn!(resource, size, error = %refusal, "GetPreferredAllocation failed");
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

/// A running `ListAndWatch`.
struct Lists {
    devices: watch::Receiver<Arc<DeviceList>>,
    close: CancellationToken,
    sent: Option<Arc<DeviceList>>,
    is_delivered: bool,
    observer: KubeletStreamObserver,
}

impl Lists {
    async fn next(mut self) -> Option<(Result<ListAndWatchResponse, Status>, Self)> {
        if self.sent.is_some() && !self.is_delivered {
            // The server takes the list, and comes back when the peer has granted a window for it.
            yield_now().await;
            self.is_delivered = true;
            self.observer.send(Event::ListDelivered);
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

/// Reports events of the kubelet's stream to the supervisor. For other streams it is empty and
/// reports nothing.
struct KubeletStreamObserver(Option<(EndpointId, mpsc::UnboundedSender<Event>)>);

impl KubeletStreamObserver {
    fn send(&self, event: impl FnOnce(EndpointId) -> Event) {
        if let Some((id, events)) = &self.0 {
            // An error means that the supervisor has ended and needs no events.
            let _ = events.send(event(*id));
        }
    }
}

impl Drop for KubeletStreamObserver {
    fn drop(&mut self) {
        self.send(Event::StreamEnded);
    }
}
