//! The calls against servers that answer, refuse, hang and misbehave, on the host's own sockets or
//! named pipes.

use std::future::pending;
use std::io;
use std::path::PathBuf;

use futures_util::stream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;
use tonic::{Request, Response, Status};
use tower::{Service as _, service_fn};

use super::*;
use crate::pod_resources::FailureReason;
use crate::pod_resources::v1::PodResources;
use crate::pod_resources::v1::pod_resources_lister_server::{
    PodResourcesLister, PodResourcesListerServer,
};
use crate::pod_resources::v1alpha1::pods_server::{Pods, PodsServer};
use crate::pod_resources::v1alpha1::{ListPodsResponse, ObjectMeta, Pod};
#[cfg(unix)]
use crate::transport::{Listener as _, Transport as _};
#[cfg(unix)]
use crate::unix_sockets::UnixSockets;

const SOON: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_mins(2);

/// How a server treats a client.
#[derive(Clone)]
enum Behavior {
    Answers(Vec<PodResources>),
    Refuses(Status),
    /// Accepts the call and does not answer.
    Hangs,
    /// Accepts the connection and closes it.
    Closes,
    /// The server sends these bytes instead of HTTP/2.
    Speaks(&'static [u8]),
}

#[tonic::async_trait]
impl PodResourcesLister for Behavior {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        match self.clone() {
            Behavior::Answers(pods) => {
                Ok(Response::new(ListPodResourcesResponse { pod_resources: pods }))
            }
            Behavior::Refuses(status) => Err(status),
            _ => pending().await,
        }
    }
}

#[tonic::async_trait]
impl Pods for Behavior {
    async fn list_pods(
        &self,
        _: Request<ListPodsRequest>,
    ) -> Result<Response<ListPodsResponse>, Status> {
        let pod = |(name, uid): (&str, &str)| {
            let [name, namespace, uid] = [name, "default", uid].map(str::to_owned);
            Pod { metadata: Some(ObjectMeta { name, namespace, uid }) }
        };
        let pods = [("render", "1-a"), ("train", "2\nb")].map(pod).to_vec();
        Ok(Response::new(ListPodsResponse { pods }))
    }
}

/// A server at a separate endpoint, until it is dropped.
struct Server {
    endpoint: PathBuf,
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
    let endpoint = folder.path().join("kubelet.sock");
    let mut listener = UnixSockets.bind(&endpoint).unwrap();
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
    let endpoint = PathBuf::from(&path);
    let running = tokio::spawn(async move {
        loop {
            instance.connect().await.unwrap();
            serve(instance, behavior.clone()).await;
            instance = ServerOptions::new().create(&path).unwrap();
        }
    });
    Server { endpoint, running, _folder: folder }
}

async fn serve<S>(mut io: S, behavior: Behavior)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match behavior {
        Behavior::Closes => drop(io),
        Behavior::Speaks(bytes) => {
            io.write_all(bytes).await.unwrap();
            // The client closes the connection.
            let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
        }
        behavior => {
            let lister = PodResourcesListerServer::new(behavior.clone());
            let pods = PodsServer::new(behavior);
            let service = service_fn(move |request: http::Request<tonic::body::Body>| {
                let mut lister = lister.clone();
                let mut pods = pods.clone();
                match request.uri().path() {
                    "/v1alpha1.Pods/ListPods" => pods.call(request),
                    _ => lister.call(request),
                }
            });
            let (mut near, far) = tokio::io::duplex(64 * 1024);
            let server = tonic::transport::Server::builder();
            let incoming = stream::iter([Ok::<_, io::Error>(far)]);
            server.serve_with_incoming(service, incoming).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut io, &mut near).await;
        }
    }
}

async fn failure(behavior: Behavior, limit: Duration) -> (FailureReason, String) {
    let server = start(behavior);
    let error = list(&server.endpoint, limit).await.unwrap_err();
    (error.reason, error.to_string())
}

/// A pod whose container `main` holds devices, each reported on its own, beside a container without
/// devices.
fn pod(name: &str, ids: &[&str]) -> PodResources {
    let device = |id: &&str| ContainerDevices {
        resource_name: "example.com/gpu".to_owned(),
        device_ids: vec![(*id).to_owned()],
    };
    let container = |name: &str, devices| ContainerResources { name: name.to_owned(), devices };
    PodResources {
        name: name.to_owned(),
        namespace: "default".to_owned(),
        containers: vec![
            container("sidecar", Vec::new()),
            container("main", ids.iter().map(device).collect()),
        ],
    }
}

#[tokio::test]
async fn the_pods_of_a_node_are_listed_again_and_again() {
    let pods = (0..250).map(|n| pod(&format!("pod-{n}"), &[&format!("a-{n}"), &format!("b-{n}")]));
    let server = start(Behavior::Answers(pods.collect()));
    for _ in 0..3 {
        let holders = list(&server.endpoint, LONG).await.unwrap();
        assert_eq!(holders.iter().count(), 500);
        let holder = holders.holder("example.com/gpu", "b-249").unwrap();
        assert_eq!((&*holder.pod, &*holder.container), ("pod-249", "main"));
    }
}

#[tokio::test]
async fn a_node_without_pods_that_hold_devices_has_an_empty_list() {
    for pods in [Vec::new(), vec![pod("plain", &[])]] {
        let server = start(Behavior::Answers(pods));
        assert_eq!(list(&server.endpoint, LONG).await, Ok(Attribution::default()));
    }
}

#[tokio::test]
async fn names_are_safe_to_print() {
    let server = start(Behavior::Answers(vec![pod("a\nERROR\u{202e}", &["1"])]));
    let holders = list(&server.endpoint, LONG).await.unwrap();
    assert_eq!(holders.holder("example.com/gpu", "1").unwrap().pod, r"a\nERROR\u{202e}");
}

#[tokio::test]
async fn the_uids_of_pods_are_listed() {
    let server = start(Behavior::Hangs);
    let found = list_pod_uids(&server.endpoint, LONG).await.unwrap();
    let uid = |pod: &str| &*found[&("default".to_owned(), pod.to_owned())];
    assert_eq!((uid("render"), uid("train"), found.len()), ("1-a", r"2\nb", 2));
}

#[tokio::test]
async fn a_missing_endpoint_is_named() {
    let server = start(Behavior::Hangs);
    let path = format!("{}-missing", server.endpoint.display());
    let error = list(&PathBuf::from(&path), LONG).await.unwrap_err();
    assert_eq!(error.reason, FailureReason::Missing);
    assert!(error.to_string().contains(&path), "{error}");
}

/// A kubelet that was killed leaves its socket behind.
#[cfg(unix)]
#[tokio::test]
async fn a_socket_without_a_listener_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubelet.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let error = list(&path, LONG).await.unwrap_err();
    assert_eq!(error.reason, FailureReason::Refused);
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
async fn an_answer_that_is_too_large_is_refused() {
    let id = "x".repeat(RESPONSE_LIMIT);
    let (reason, text) = failure(Behavior::Answers(vec![pod("render", &[&id])]), LONG).await;
    assert_eq!(reason, FailureReason::Other);
    assert!(text.contains("message length too large"), "{text}");
}

/// The kubelet creates the next instance of its pipe after it has accepted a client.
#[cfg(windows)]
#[tokio::test]
async fn a_busy_pipe_is_waited_for() {
    use tokio::net::windows::named_pipe::{ClientOptions, ServerOptions};

    let path = format!(r"\\.\pipe\pod-resources-busy-{}", std::process::id());
    let busy = ServerOptions::new().create(&path).unwrap();
    let other_client = ClientOptions::new().open(&path).unwrap();
    let endpoint = PathBuf::from(&path);
    let error = list(&endpoint, SOON).await.unwrap_err();
    assert_eq!(error.reason, FailureReason::Timeout);
    let server = async {
        tokio::time::sleep(SOON).await;
        let next = ServerOptions::new().create(&path).unwrap();
        next.connect().await.unwrap();
        serve(next, Behavior::Answers(Vec::new())).await;
    };
    tokio::select! {
        holders = list(&endpoint, LONG) => assert_eq!(holders, Ok(Attribution::default())),
        () = server => panic!("the server ended first"),
    }
    drop((busy, other_client));
}
