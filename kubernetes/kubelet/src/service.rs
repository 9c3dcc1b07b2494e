//! The `DevicePlugin` service of one endpoint.
//!
//! Single answers go through the code that tonic generates; `ListAndWatch` has a body
//! of its own, `list_stream`, which it cannot express.

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
use crate::list_stream::{ListStream, StreamObserver};
use crate::readiness::Readiness;
use crate::resource::{PreferredRequest, Resource};
use crate::status;
use crate::v1beta1::device_plugin_server::{DevicePlugin, DevicePluginServer};
use crate::v1beta1::{
    AllocateRequest, AllocateResponse, ContainerPreferredAllocationResponse, DevicePluginOptions,
    Empty, PreStartContainerRequest, PreStartContainerResponse, PreferredAllocationRequest,
    PreferredAllocationResponse,
};
use crate::wire::Closing;

const LIST_AND_WATCH: &str = "/v1beta1.DevicePlugin/ListAndWatch";

/// How long a request may take to arrive. Answers take no time to speak of.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// What plugins of this crate ask a kubelet for.
pub(crate) const OPTIONS: DevicePluginOptions =
    DevicePluginOptions { pre_start_required: false, get_preferred_allocation_available: true };

/// The service of one endpoint. Cloned for each call.
#[derive(Clone)]
pub(crate) struct Service {
    answers: DevicePluginServer<Answers>,
    endpoint: Arc<Watched>,
}

/// What the streams of an endpoint need and tell.
pub(crate) struct Watched {
    pub(crate) id: EndpointId,
    pub(crate) resource: Arc<dyn Resource>,
    pub(crate) closing: Closing,
    /// Whether the next stream is the kubelet's: set while it is asked to register us.
    /// The socket's name is new then, and nobody else has been told it.
    pub(crate) kubelet_expected: Arc<AtomicBool>,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    /// What a probe is told.
    pub(crate) readiness: watch::Receiver<Readiness>,
}

impl Service {
    pub(crate) fn new(endpoint: Watched) -> Self {
        let answers = Answers { resource: endpoint.resource.clone() };
        Service {
            answers: DevicePluginServer::new(answers)
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
            endpoint: Arc::new(endpoint),
        }
    }

    fn list_and_watch(&self) -> Response<Body> {
        let Watched { id, resource, closing, kubelet_expected, events, .. } = &*self.endpoint;
        let kubelets = kubelet_expected.swap(false, Ordering::Relaxed);
        tracing::debug!(resource = resource.name(), kubelets, "list asked for");
        let observer = Observer(kubelets.then(|| (*id, events.clone())));
        observer.tell(Event::StreamOpened);
        let stream = ListStream::new(resource.devices(), closing.clone(), observer);
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
        let answer: Self::Future = if request.uri().path() == status::GET {
            Box::pin(status::answer(self.endpoint.readiness.clone(), request))
        } else {
            self.answers.call(request)
        };
        Box::pin(async move {
            match timeout(REQUEST_LIMIT, answer).await {
                Ok(response) => response,
                Err(_) => Ok(Status::deadline_exceeded("the request did not arrive").into_http()),
            }
        })
    }
}

/// Tells the supervisor about the kubelet's stream, and nothing about others'.
struct Observer(Option<(EndpointId, mpsc::UnboundedSender<Event>)>);

impl Observer {
    fn tell(&self, event: impl FnOnce(EndpointId) -> Event) {
        if let Some((id, events)) = &self.0 {
            // No supervisor any more: nobody needs to know.
            let _ = events.send(event(*id));
        }
    }
}

impl StreamObserver for Observer {
    fn list_taken(&mut self) {
        self.tell(Event::ListTaken);
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.tell(Event::StreamEnded);
    }
}

/// The calls with a single answer.
#[derive(Clone)]
struct Answers {
    resource: Arc<dyn Resource>,
}

#[tonic::async_trait]
impl DevicePlugin for Answers {
    async fn get_device_plugin_options(
        &self,
        _request: tonic::Request<Empty>,
    ) -> Result<tonic::Response<DevicePluginOptions>, Status> {
        tracing::debug!(resource = self.resource.name(), "options asked for");
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
                Status::invalid_argument(format!("an allocation size of {size} is not possible"))
            })?;
            let preferred = self.resource.prefer(PreferredRequest {
                available: &container.available_device_ids,
                must_include: &container.must_include_device_ids,
                size,
            });
            let device_ids = preferred.inspect_err(|refusal| {
                tracing::warn!(resource = self.resource.name(), size, %refusal, "no preference");
            })?;
            tracing::debug!(
                resource = self.resource.name(),
                available = container.available_device_ids.len(),
                size,
                preferred = ?device_ids,
                "preference asked for"
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
                tracing::warn!(resource = self.resource.name(), ?ids, %refusal, "not allocated");
            })?;
            tracing::debug!(
                resource = self.resource.name(),
                ?ids,
                devices = response.devices.len(),
                mounts = response.mounts.len(),
                "allocated"
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
