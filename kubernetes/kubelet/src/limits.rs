//! Which calls the clients of the plugin's sockets may make at the same time, in the whole process.
//!
//! The kubelet is not limited by what others use: its connection is known by its stream.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::Status;
use tonic::body::Body;

use crate::device_list::MESSAGE_LIMIT;
use crate::service::{KubeletStream, Service};
use crate::status::v1::status_server::StatusServer;
use crate::v1beta1::device_plugin_server::DevicePluginServer;

/// The calls of clients that are not the kubelet, until the last byte of the response is taken.
/// Each may keep a message of [`MESSAGE_LIMIT`] bytes in memory.
pub(crate) const CALLS: usize = 8;

/// Who is at the other end of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    is_kubelet: Arc<AtomicBool>,
    _connection: Arc<OwnedSemaphorePermit>,
}

impl Peer {
    /// The peer of a connection that has this permit.
    pub(crate) fn new(connection: OwnedSemaphorePermit) -> Peer {
        Peer { is_kubelet: Arc::default(), _connection: Arc::new(connection) }
    }

    /// Marks the connection as the kubelet's.
    pub(crate) fn set_kubelet(&self) {
        self.is_kubelet.store(true, Ordering::Relaxed);
    }

    /// Whether the kubelet's stream was opened on this connection.
    fn is_kubelet(&self) -> bool {
        self.is_kubelet.load(Ordering::Relaxed)
    }
}

/// The services of a socket, within the limits.
#[derive(Clone)]
pub(crate) struct LimitedService {
    plugin: DevicePluginServer<Service>,
    status: StatusServer<Service>,
    stream: watch::Sender<KubeletStream>,
    calls: Arc<Semaphore>,
}

impl LimitedService {
    pub(crate) fn new(service: Service, calls: Arc<Semaphore>) -> Self {
        let (stream, service) = (service.stream.clone(), Arc::new(service));
        LimitedService {
            plugin: DevicePluginServer::from_arc(Arc::clone(&service))
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
            status: StatusServer::from_arc(service),
            stream,
            calls,
        }
    }
}

impl tower::Service<Request<Body>> for LimitedService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let peer = request.extensions().get::<Peer>();
        let may_be_kubelet =
            *self.stream.borrow() == KubeletStream::Expected || peer.is_some_and(Peer::is_kubelet);
        let permit = Arc::clone(&self.calls).try_acquire_owned();
        if permit.is_err() && !may_be_kubelet {
            let refused = Status::resource_exhausted("too many calls at the same time; try again");
            return Box::pin(ready(Ok(refused.into_http())));
        }
        let answer = if request.uri().path().starts_with("/status.v1.Status/") {
            self.status.call(request)
        } else {
            self.plugin.call(request)
        };
        if may_be_kubelet {
            return answer;
        }
        Box::pin(async move {
            // The permit is kept as long as the body.
            let keep = move |frame| {
                let _kept = &permit;
                frame
            };
            Ok(answer.await?.map(|body| Body::new(body.map_frame(keep))))
        })
    }
}
