//! The call against servers that answer, refuse, hang and misbehave, on the host's own sockets or
//! named pipes.

use std::convert::Infallible;
use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use tonic::body::Body;

use super::*;
use crate::error_chain::ErrorChain;
use crate::http2::{ConnectionLimits, close_signal, serve_connection};
use crate::pod_resources::FailureReason;
use crate::pod_resources::pod_uids::tests::response as uids;
use crate::pod_resources::response::tests::{pod, response as encoded};

const SOON: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(120);

/// How a server treats a client.
#[derive(Clone)]
enum Behavior {
    /// Answers the call with this data, before the status 0.
    Answers(Bytes),
    /// Answers the call with an error.
    Refuses(Status),
    /// Accepts the call and does not answer.
    Hangs,
    /// Accepts the connection and closes it.
    Closes,
    /// Sends this instead of HTTP/2.
    Speaks(&'static [u8]),
}

#[derive(Clone)]
struct Service(Behavior);

impl tower_service::Service<Request<Incoming>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let calls = ["/v1.PodResourcesLister/List", "/v1alpha1.Pods/ListPods"];
        if !calls.contains(&request.uri().path()) {
            return Box::pin(ready(Ok(Status::unimplemented("unknown method").into_http())));
        }
        match self.0.clone() {
            Behavior::Answers(data) => {
                let mut response = Response::new(Body::new(Answer(Some(data), false)));
                let grpc = HeaderValue::from_static("application/grpc");
                response.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
                Box::pin(ready(Ok(response)))
            }
            Behavior::Refuses(status) => Box::pin(ready(Ok(status.into_http()))),
            _ => Box::pin(pending()),
        }
    }
}

/// Data, and then trailers.
struct Answer(Option<Bytes>, bool);

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(data) = self.0.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let ended = std::mem::replace(&mut self.1, true);
        let status = ("grpc-status".parse().unwrap(), HeaderValue::from_static("0"));
        Poll::Ready((!ended).then(|| Ok(Frame::trailers(HeaderMap::from_iter([status])))))
    }
}

/// A message with its gRPC header.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message].concat().into()
}

/// A server at an endpoint of its own, until it is dropped.
struct Server {
    endpoint: Endpoint,
    running: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.abort();
    }
}

#[cfg(unix)]
fn start(behavior: Behavior) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::new(folder.path().join("kubelet.sock")).unwrap();
    let listener = uds::UnixListener::bind(endpoint.path()).unwrap();
    let running = tokio::spawn(async move {
        loop {
            serve(listener.accept().await.unwrap(), behavior.clone()).await;
        }
    });
    Server { endpoint, running, _folder: folder }
}

#[cfg(windows)]
fn start(behavior: Behavior) -> Server {
    use tokio::net::windows::named_pipe::ServerOptions;

    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    let path = format!(r"\\.\pipe\pod-resources-test-{name}");
    let mut instance = ServerOptions::new().first_pipe_instance(true).create(&path).unwrap();
    let endpoint = Endpoint::new(&path).unwrap();
    let running = tokio::spawn(async move {
        loop {
            instance.connect().await.unwrap();
            serve(instance, behavior.clone()).await;
            instance = ServerOptions::new().create(&path).unwrap();
        }
    });
    Server { endpoint, running, _folder: folder }
}

async fn serve<Io>(mut io: Io, behavior: Behavior)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match behavior {
        Behavior::Closes => drop(io),
        Behavior::Speaks(bytes) => {
            io.write_all(bytes).await.unwrap();
            // The client closes.
            let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
        }
        behavior => {
            let (_closer, signal) = close_signal();
            let limits = ConnectionLimits::default();
            serve_connection(io, Service(behavior), signal, limits, "test").await.unwrap();
        }
    }
}

async fn failure(behavior: Behavior, limit: Duration) -> (FailureReason, String) {
    let server = start(behavior);
    let error = list(&server.endpoint, limit).await.unwrap_err();
    (error.reason(), ErrorChain(&error).to_string())
}

#[tokio::test]
async fn the_pods_of_a_node_are_listed_again_and_again() {
    let pods = (0..250).map(|n| pod(&format!("pod-{n}"), "example.com/gpu", &["a", "b"]));
    let server = start(Behavior::Answers(framed(&encoded(pods.collect()))));
    for _ in 0..3 {
        let assignments = list(&server.endpoint, LONG).await.unwrap();
        assert_eq!(assignments.len(), 500);
        assert_eq!(&*assignments[499].holder.pod, "pod-249");
        assert_eq!(assignments[499].device_ids, ["b"]);
    }
}

#[tokio::test]
async fn a_node_without_pods_has_an_empty_list() {
    let server = start(Behavior::Answers(framed(&[])));
    assert!(list(&server.endpoint, LONG).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_uids_of_pods_are_listed() {
    let pods = uids(&[("render", "0b1e"), ("train", "7c2f")]);
    let server = start(Behavior::Answers(framed(&pods)));
    let found = list_pod_uids(&server.endpoint, LONG).await.unwrap();
    assert_eq!(found[&("default".to_owned(), "train".to_owned())], "7c2f");
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn a_missing_endpoint_is_named() {
    let server = start(Behavior::Hangs);
    let path = format!("{}-missing", server.endpoint.path().display());
    let error = list(&Endpoint::new(&path).unwrap(), LONG).await.unwrap_err();
    assert_eq!(error.reason(), FailureReason::Missing);
    assert!(error.to_string().contains(&path), "{error}");
}

/// A kubelet that was killed leaves its socket behind.
#[cfg(unix)]
#[tokio::test]
async fn a_socket_without_a_listener_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubelet.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let error = list(&Endpoint::new(path).unwrap(), LONG).await.unwrap_err();
    assert_eq!(error.reason(), FailureReason::Refused);
}

#[tokio::test]
async fn the_errors_of_a_kubelet_are_told_apart() {
    let status = Status::resource_exhausted("rejected by rate limit");
    let (reason, text) = failure(Behavior::Refuses(status), LONG).await;
    assert_eq!(reason, FailureReason::Exhausted);
    assert!(text.contains("rejected by rate limit (ResourceExhausted)"), "{text}");
    let (reason, _) = failure(Behavior::Refuses(Status::unimplemented("old")), LONG).await;
    assert_eq!(reason, FailureReason::Refused);
}

#[tokio::test]
async fn a_kubelet_that_hangs_is_left_in_time() {
    for behavior in [Behavior::Hangs, Behavior::Speaks(b"")] {
        let (reason, text) = failure(behavior, SOON).await;
        assert_eq!(
            (reason, &*text),
            (FailureReason::Timeout, "kubelet did not list its pods within 200 ms")
        );
    }
}

#[tokio::test]
async fn a_lost_connection_and_other_protocols_are_errors() {
    for behavior in [Behavior::Closes, Behavior::Speaks(b"HTTP/1.1 400 Bad Request\r\n\r\n")] {
        let (reason, text) = failure(behavior, LONG).await;
        assert_eq!(reason, FailureReason::Other);
        assert!(text.starts_with("kubelet closed the connection before"), "{text}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_a_list_is_an_error() {
    let cut_off = framed(&encoded(vec![pod("render", "r", &["1"])])[..20]);
    let (reason, text) = failure(Behavior::Answers(cut_off), LONG).await;
    assert_eq!(reason, FailureReason::Other);
    assert_eq!(text, "kubelet's list of pods is not valid: invalid message: message is incomplete");
}

/// Its header is enough: 17 MiB are neither received nor allocated.
#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_before_it_arrives() {
    let start_of_large = Bytes::from_static(&[0, 1, 0x10, 0, 0]);
    let (reason, text) = failure(Behavior::Answers(start_of_large), LONG).await;
    let expected = "kubelet's list of pods exceeds 16777216 bytes";
    assert_eq!((reason, &*text), (FailureReason::Other, expected));
}

/// The kubelet creates the next instance of its pipe after it has accepted a client.
#[cfg(windows)]
#[tokio::test]
async fn a_busy_pipe_is_waited_for() {
    use tokio::net::windows::named_pipe::{ClientOptions, ServerOptions};

    let path = format!(r"\\.\pipe\pod-resources-busy-{}", std::process::id());
    let busy = ServerOptions::new().create(&path).unwrap();
    let other_client = ClientOptions::new().open(&path).unwrap();
    let endpoint = Endpoint::new(&path).unwrap();
    let error = list(&endpoint, SOON).await.unwrap_err();
    assert_eq!(error.reason(), FailureReason::Timeout);
    let server = async {
        tokio::time::sleep(SOON).await;
        let next = ServerOptions::new().create(&path).unwrap();
        next.connect().await.unwrap();
        serve(next, Behavior::Answers(framed(&[]))).await;
    };
    tokio::select! {
        assignments = list(&endpoint, LONG) => assert!(assignments.unwrap().is_empty()),
        () = server => panic!("the server ended first"),
    }
    drop((busy, other_client));
}
