//! The `DevicePlugin` service of one endpoint.
//!
//! `ListAndWatch` has its own response body, `list_stream`. The other calls are in `unary_calls`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::{mpsc, watch};
use tonic::Status;
use tonic::body::Body;

use crate::claim::Claim;
use crate::events::{EndpointId, Event};
use crate::http2::CloseSignal;
use crate::list_stream::{ListStream, StreamObserver};
use crate::memory_budget::MemoryBudget;
use crate::readiness::Readiness;
use crate::resource::Resource;
use crate::unary_calls::UnaryCalls;

const LIST_AND_WATCH: &str = "/v1beta1.DevicePlugin/ListAndWatch";

/// The service of one connection to an endpoint. It is cloned for each call.
#[derive(Clone)]
pub(crate) struct Service {
    endpoint: Arc<EndpointContext>,
    /// Whether the kubelet's stream was opened on this connection.
    is_kubelet: Arc<AtomicBool>,
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
    /// Part of the answer to a status call.
    pub(crate) claim: Claim,
    /// The memory of all calls of the process.
    pub(crate) memory: Arc<MemoryBudget>,
}

impl Service {
    pub(crate) fn new(endpoint: EndpointContext) -> Self {
        Service { endpoint: Arc::new(endpoint), is_kubelet: Arc::default() }
    }

    /// The service of a new connection.
    pub(crate) fn for_connection(&self) -> Self {
        Service { endpoint: Arc::clone(&self.endpoint), is_kubelet: Arc::default() }
    }

    async fn unary_call(&self, request: Request<Incoming>) -> Response<Body> {
        let EndpointContext { resource, readiness, claim, memory, .. } = &*self.endpoint;
        let is_kubelet = self.is_kubelet.load(Ordering::Relaxed);
        let share = if is_kubelet { memory.kubelet() } else { memory.others() };
        let calls = UnaryCalls { resource, readiness, claim: *claim, share };
        let path = request.uri().path().to_owned();
        calls.answer(&path, request.into_body()).await.unwrap_or_else(Status::into_http)
    }

    fn list_and_watch(&self) -> Response<Body> {
        let EndpointContext { id, resource, close_signal, kubelet_expected, events, .. } =
            &*self.endpoint;
        let from_kubelet = kubelet_expected.swap(false, Ordering::Relaxed);
        if from_kubelet {
            self.is_kubelet.store(true, Ordering::Relaxed);
        }
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
        let service = self.clone();
        Box::pin(async move { Ok(service.unary_call(request).await) })
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
