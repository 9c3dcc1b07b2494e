//! The `DevicePlugin` service of one endpoint.
//!
//! Unary calls go through the code that tonic generates. `ListAndWatch` has its own response body,
//! `list_stream`, which the generated code cannot express.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;

use crate::MESSAGE_LIMIT;
use crate::events::{EndpointId, Event};
use crate::http2::CloseSignal;
use crate::list_stream::{ListStream, StreamObserver};
use crate::readiness::Readiness;
use crate::registration::OPTIONS;
use crate::resource::{PreferredRequest, Resource};
use crate::status;
use crate::v1beta1::device_plugin_server::{DevicePlugin, DevicePluginServer};
use crate::v1beta1::{
    AllocateRequest, AllocateResponse, ContainerPreferredAllocationResponse, DevicePluginOptions,
    Empty, PreStartContainerRequest, PreStartContainerResponse, PreferredAllocationRequest,
    PreferredAllocationResponse,
};

const LIST_AND_WATCH: &str = "/v1beta1.DevicePlugin/ListAndWatch";

/// How long a unary call may take. Nearly all of that is the time for the request to arrive:
/// computing an answer takes less than a millisecond.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// The service of one endpoint. It is cloned for each call.
#[derive(Clone)]
pub(crate) struct Service {
    unary_calls: DevicePluginServer<UnaryCalls>,
    endpoint: Arc<EndpointContext>,
}

/// What the calls of an endpoint need.
pub(crate) struct EndpointContext {
    pub(crate) id: EndpointId,
    pub(crate) resource: Arc<dyn Resource>,
    pub(crate) close_signal: CloseSignal,
    /// Whether the next stream is the kubelet's. Set during a `Register` call: the name of the
    /// socket is new then, and only the kubelet was given it.
    pub(crate) kubelet_expected: Arc<AtomicBool>,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    /// The answer to a status call.
    pub(crate) readiness: watch::Receiver<Readiness>,
}

impl Service {
    pub(crate) fn new(endpoint: EndpointContext) -> Self {
        let unary_calls = UnaryCalls { resource: endpoint.resource.clone() };
        Service {
            unary_calls: DevicePluginServer::new(unary_calls)
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
            endpoint: Arc::new(endpoint),
        }
    }

    fn list_and_watch(&self) -> Response<Body> {
        let EndpointContext { id, resource, close_signal, kubelet_expected, events, .. } =
            &*self.endpoint;
        let from_kubelet = kubelet_expected.swap(false, Ordering::Relaxed);
        tracing::debug!(resource = resource.name(), from_kubelet, "ListAndWatch called");
        let observer = KubeletStreamObserver(from_kubelet.then(|| (*id, events.clone())));
        observer.send(Event::StreamOpened);
        let stream = ListStream::new(resource.devices(), close_signal.clone(), observer);
        let mut response = Response::new(Body::new(stream));
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        response
    }
}

impl tower_service::Service<Request<Incoming>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        if request.uri().path() == LIST_AND_WATCH {
            let response = self.list_and_watch();
            return Box::pin(std::future::ready(Ok(response)));
        }
        let response: Self::Future = if request.uri().path() == status::GET {
            Box::pin(status::respond(self.endpoint.readiness.clone(), request))
        } else {
            self.unary_calls.call(request)
        };
        Box::pin(async move {
            timeout(REQUEST_LIMIT, response).await.unwrap_or_else(|_| {
                let error = format!("no request received within {} s", REQUEST_LIMIT.as_secs());
                Ok(Status::deadline_exceeded(error).into_http())
            })
        })
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

impl StreamObserver for KubeletStreamObserver {
    fn list_delivered(&mut self) {
        self.send(Event::ListDelivered);
    }
}

impl Drop for KubeletStreamObserver {
    fn drop(&mut self) {
        self.send(Event::StreamEnded);
    }
}

/// The unary calls of the `DevicePlugin` service.
#[derive(Clone)]
struct UnaryCalls {
    resource: Arc<dyn Resource>,
}

#[tonic::async_trait]
impl DevicePlugin for UnaryCalls {
    async fn get_device_plugin_options(
        &self,
        _request: tonic::Request<Empty>,
    ) -> Result<tonic::Response<DevicePluginOptions>, Status> {
        tracing::debug!(resource = self.resource.name(), "GetDevicePluginOptions called");
        Ok(tonic::Response::new(OPTIONS))
    }

    async fn get_preferred_allocation(
        &self,
        request: tonic::Request<PreferredAllocationRequest>,
    ) -> Result<tonic::Response<PreferredAllocationResponse>, Status> {
        let mut container_responses = Vec::new();
        for container in &request.get_ref().container_requests {
            let size = usize::try_from(container.allocation_size).map_err(|_| {
                let size = container.allocation_size;
                Status::invalid_argument(format!("invalid allocation size {size}"))
            })?;
            let preferred = self.resource.prefer(PreferredRequest {
                available: &container.available_device_ids,
                must_include: &container.must_include_device_ids,
                size,
            });
            let device_ids = preferred.inspect_err(|refusal| {
                tracing::warn!(
                    resource = self.resource.name(),
                    size,
                    error = %refusal,
                    "GetPreferredAllocation failed"
                );
            })?;
            tracing::debug!(
                resource = self.resource.name(),
                available = container.available_device_ids.len(),
                size,
                preferred = ?device_ids,
                "GetPreferredAllocation succeeded"
            );
            container_responses.push(ContainerPreferredAllocationResponse { device_ids });
        }
        Ok(tonic::Response::new(PreferredAllocationResponse { container_responses }))
    }

    async fn allocate(
        &self,
        request: tonic::Request<AllocateRequest>,
    ) -> Result<tonic::Response<AllocateResponse>, Status> {
        let mut container_responses = Vec::new();
        for container in &request.get_ref().container_requests {
            let ids = &container.devices_ids;
            let response = self.resource.allocate(ids).inspect_err(|refusal| {
                tracing::warn!(resource = self.resource.name(), ?ids, error = %refusal, "Allocate failed");
            })?;
            tracing::debug!(
                resource = self.resource.name(),
                ?ids,
                devices = response.devices.len(),
                mounts = response.mounts.len(),
                "Allocate succeeded"
            );
            container_responses.push(response);
        }
        Ok(tonic::Response::new(AllocateResponse { container_responses }))
    }

    async fn pre_start_container(
        &self,
        _request: tonic::Request<PreStartContainerRequest>,
    ) -> Result<tonic::Response<PreStartContainerResponse>, Status> {
        Ok(tonic::Response::new(PreStartContainerResponse {}))
    }
}
