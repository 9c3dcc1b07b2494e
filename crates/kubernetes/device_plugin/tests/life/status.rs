//! Queries of the plugin's status.

use std::path::PathBuf;
use std::time::Duration;

use device_plugin::Transport;
use device_plugin::status::{Phase, StatusError, query_all};
use device_plugin::v1beta1::Empty;
use http::uri::PathAndQuery;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::{Code, Request};
use tonic_prost::ProstCodec;

use crate::plugin::{Caller, DIRECTORY, GPU, sockets};
use crate::service::serving;

fn path(name: &str) -> PathBuf {
    PathBuf::from(DIRECTORY).join(name)
}

/// The plugin answers, although nobody accepts connections or answers on the other sockets.
#[tokio::test(start_paused = true)]
async fn all_sockets_are_queried_at_the_same_time() {
    let (node, _devices, _plugin, _caller) = serving().await;
    let mut silent = Vec::new();
    let mut queried = Vec::new();
    for n in 0..200 {
        queried.push(path(&format!("silent-{n}.sock")));
        silent.push(node.host.bind(&queried[n]).unwrap());
    }
    queried.push(path("absent.sock"));
    queried.push(path("stale.sock"));
    drop(node.host.bind(&path("stale.sock")).unwrap());
    queried.push(sockets(&node.host).into_iter().find(|s| !queried.contains(s)).unwrap());
    let started = Instant::now();
    let mut answers = query_all(&node.host, &queried).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let report = answers.pop().unwrap().unwrap();
    assert_eq!(
        (report.resources[0].name.as_str(), report.resources[0].phase()),
        (GPU, Phase::WaitingForKubelet)
    );
    for absent in [answers.pop(), answers.pop()] {
        assert!(matches!(absent, Some(Err(StatusError::Absent(_)))), "{absent:?}");
    }
    assert_eq!(answers.len(), 200);
    assert!(answers.iter().all(|answer| matches!(answer, Err(StatusError::Busy))), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn the_status_says_why_the_devices_are_not_known() {
    let (node, devices, _plugin, _caller) = serving().await;
    *devices.pending.lock().unwrap() = Some("the host is being read".to_owned());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answers = query_all(&node.host, &sockets(&node.host)).await;
    let [Ok(report)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(report.resources[0].pending, "the host is being read");
}

/// Programs of earlier versions call a service of another name.
#[tokio::test(start_paused = true)]
async fn an_unknown_call_is_refused_with_its_reason() {
    let (node, _devices, _plugin, _caller) = serving().await;
    let stream = node.host.connect(&sockets(&node.host)[0]).await.unwrap();
    let mut client = Grpc::new(device_plugin::connection::connect(stream).await.unwrap());
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/status.v1.Status/Get");
    let codec = ProstCodec::<Empty, Empty>::default();
    let refused = client.unary(Request::new(Empty {}), path, codec).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains("different versions"), "{refused}");
}

/// Clients that keep streams open occupy all connections of a socket.
#[tokio::test(start_paused = true)]
async fn a_socket_without_free_connections_is_busy_and_not_absent() {
    let (node, devices, _plugin, _caller) = serving().await;
    let socket = sockets(&node.host);
    let mut held = Vec::new();
    for _ in 0..20 {
        let caller = Caller::connect(&node.host, &socket[0]).await;
        held.push(tokio::spawn(async move {
            let mut caller = caller;
            let _stream = caller.plugin.list_and_watch(Empty {}).await;
            std::future::pending::<()>().await;
        }));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(devices.streams(), 3);
    let answers = query_all(&node.host, &socket).await;
    assert!(matches!(answers[..], [Err(StatusError::Busy)]), "{answers:?}");
    held.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answers = query_all(&node.host, &socket).await;
    assert!(matches!(answers[..], [Ok(_)]), "{answers:?}");
}
