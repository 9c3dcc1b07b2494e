//! The gRPC server of one socket.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use http::Request;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Server;
use tower::{Service as _, service_fn};

use crate::connection::ClosableIo;
use crate::device_list::MESSAGE_LIMIT;
use crate::service::Service;
use crate::status::SERVICE as STATUS;
use crate::status::v1::status_server::StatusServer;
use crate::text::error_chain;
use crate::transport::Listener;
use crate::v1beta1::device_plugin_server::{DevicePluginServer, SERVICE_NAME as PLUGIN};

/// The connections of a socket. At the limit, further ones wait. A kubelet keeps one connection
/// open; probes and `status` open others for a moment.
///
/// A client that sends incomplete requests can make a socket keep 128 MiB: 4 connections times 8
/// calls times a message of 4 MiB.
const CONNECTIONS: usize = 4;

/// The calls at the same time on a connection. A kubelet makes all its calls on one connection, for
/// several pods at the same time.
const CALLS: u32 = 8;

/// The headers of one call, in bytes. A kubelet sends less than 1 KiB.
const HEADER_BYTES: u32 = 8 * 1024;

/// How often HTTP/2 asks the peer whether it still runs.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How long the peer may take to answer before its connection is closed.
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(20);

/// How long a call may take. Kubelets wait 30 s for `PreStartContainer`.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// How long to wait after a failed accept, which would fail again immediately: the process has no
/// file handles or memory left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a socket that was replaced waits for calls and connections to end. A shutdown has its
/// own limit.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// The answer to the status call of a program of another version.
const UNKNOWN_SERVICE: &str = "the plugin and the program that calls it have different versions";

/// Accepts and serves connections until `close` of the service is cancelled and all connections
/// have ended.
pub(crate) async fn serve<L: Listener>(listener: L, service: Service) {
    // The token is canceled at the latest when this future ends or is dropped.
    let abort = CancellationToken::new();
    let _abort = abort.clone().drop_guard();
    let resource = service.resource.name().to_owned();
    let close = service.close.clone();
    let connections = incoming(listener, abort, resource.clone());
    let service = Arc::new(service);
    let plugin = DevicePluginServer::from_arc(Arc::clone(&service))
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    let status = StatusServer::from_arc(service);
    let services =
        service_fn(move |request: Request<Body>| match request.uri().path().split('/').nth(1) {
            Some(PLUGIN) => plugin.clone().call(request),
            Some(STATUS) => status.clone().call(request),
            _ => Box::pin(ready(Ok(Status::unimplemented(UNKNOWN_SERVICE).into_http()))),
        });
    let serving = Server::builder()
        .max_concurrent_streams(CALLS)
        .http2_max_header_list_size(HEADER_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_ANSWER))
        .timeout(CALL_LIMIT)
        .serve_with_incoming_shutdown(services, connections, close.clone().cancelled_owned());
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            tracing::warn!(resource, error = %error_chain(&error), "plugin socket failed");
        },
        () = async { close.cancelled().await; sleep(DRAIN_LIMIT).await } => {
            tracing::debug!(resource, "drain timed out; closed remaining connections");
        }
    }
}

/// The connections that a listener accepts, as many as the limit allows.
fn incoming<L: Listener>(
    listener: L,
    abort: CancellationToken,
    resource: String,
) -> impl Stream<Item = io::Result<ClosableIo>> {
    let limit = Arc::new(Semaphore::new(CONNECTIONS));
    stream::unfold((listener, resource), move |(mut listener, resource)| {
        let permit = Arc::clone(&limit).acquire_owned();
        let abort = abort.clone();
        async move {
            let permit = permit.await.expect("the semaphore is never closed");
            let io = loop {
                match listener.accept().await {
                    Ok(io) => break io,
                    Err(error) => {
                        tracing::warn!(resource, %error, "cannot accept connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            };
            let connection = ClosableIo::new(io, &abort).counted(permit);
            Some((Ok(connection), (listener, resource)))
        }
    })
}
