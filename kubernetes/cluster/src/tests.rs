//! Requests to a server on the loopback interface that answers as a test says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::credentials::Credentials;
use crate::retry::Retry;
use crate::server::{Access, Server};
use crate::{Client, ClusterError, Node, NodeWatch};

/// What the server does with one connection.
type Script = Vec<String>;

/// Serves each connection with its script: one answer for each request, then the end.
fn serve(scripts: Vec<Script>, credentials: Credentials) -> (Client, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (requests, received) = channel();
    std::thread::spawn(move || {
        for script in scripts {
            answer(&listener.accept().unwrap().0, &script, &requests);
        }
    });
    let host = "127.0.0.1".to_owned();
    let server = Server { certified_name: host.clone(), host, port, prefix: "/prefix".to_owned() };
    let namespace = "default".to_owned();
    let access = Access { server, authorities: Vec::new(), client: None, credentials, namespace };
    (Client::without_tls(access), received)
}

fn answer(stream: &TcpStream, script: &[String], requests: &Sender<String>) {
    let mut reader = BufReader::new(stream);
    for answer in script {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        requests.send(head + &String::from_utf8(body).unwrap()).unwrap();
        let mut stream = stream;
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

fn http(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

fn ok(body: &Value) -> String {
    http("200 OK", "", &body.to_string())
}

async fn apply(client: &mut Client) -> Result<Node, ClusterError> {
    let labels = BTreeMap::from([("a/b".to_owned(), "c".to_owned())]);
    client.apply_labels("node-1", "manager", &labels).await
}

#[tokio::test]
async fn labels_are_applied_with_the_name_of_their_manager() {
    let node = json!({"metadata": {"labels": {"a/b": "c"}}});
    let (mut client, requests) = serve(vec![vec![ok(&node)]], Credentials::Token("t".to_owned()));
    assert_eq!(apply(&mut client).await.unwrap().label("a/b"), Some("c"));
    let request = requests.recv().unwrap();
    let line = "PATCH /prefix/api/v1/nodes/node-1?fieldManager=manager&force=true HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    for part in ["content-type: application/apply-patch+yaml\r\n", "authorization: Bearer t\r\n"] {
        assert!(request.contains(part), "{part}: {request}");
    }
    let body = request.lines().last().unwrap();
    let expected = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node-1", "labels": {"a/b": "c"}}});
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
}

#[tokio::test]
async fn a_refusal_has_the_servers_reason_and_a_hint() {
    let status = |message: &str| json!({"kind": "Status", "message": message}).to_string();
    for (line, code, hint) in [
        ("401 Unauthorized", 401, "expired"),
        ("403 Forbidden", 403, "roles"),
        ("404 Not Found", 404, "--node-name"),
    ] {
        let answers = vec![vec![http(line, "", &status("the reason"))]];
        let (mut client, _requests) = serve(answers, Credentials::None);
        let error = apply(&mut client).await.unwrap_err();
        let text = error.to_string();
        let expected =
            format!("the API server refused PATCH /api/v1/nodes/node-1 with {code}: the reason");
        assert_eq!(text, expected);
        assert!(error.hint().is_some_and(|text| text.contains(hint)), "{error:?}");
    }
    let busy = http("429 Too Many Requests", "retry-after: 7\r\n", "slow down\n");
    let (mut client, _requests) = serve(vec![vec![busy]], Credentials::None);
    let error = apply(&mut client).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.to_string().ends_with("429: slow down"), "{error}");
}

async fn apply_feature(client: &mut Client) -> Result<(), ClusterError> {
    let node = Node::new(json!({"metadata": {"uid": "1-2"}}));
    let labels = BTreeMap::from([("a/b".to_owned(), "c".to_owned())]);
    client.apply_node_feature("node-1", "manager", &node, &labels).await
}

#[tokio::test]
async fn a_node_feature_belongs_to_its_node() {
    let (mut client, requests) = serve(vec![vec![ok(&json!({}))]], Credentials::None);
    apply_feature(&mut client).await.unwrap();
    let request = requests.recv().unwrap();
    let line = "PATCH /prefix/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/default/nodefeatures/\
                manager-node-1?fieldManager=manager&force=true HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    let body: Value = serde_json::from_str(request.lines().last().unwrap()).unwrap();
    assert_eq!(body["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"], "node-1");
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "1-2"}]);
    assert_eq!(body["metadata"]["ownerReferences"], owner);
    assert_eq!(body["spec"]["labels"], json!({"a/b": "c"}));
}

#[tokio::test]
async fn without_node_feature_discovery_the_hint_is_to_install_it() {
    let answers = vec![vec![http("404 Not Found", "", "404 page not found\n")]];
    let (mut client, _requests) = serve(answers, Credentials::None);
    let error = apply_feature(&mut client).await.unwrap_err();
    assert!(error.hint().is_some_and(|text| text.contains("--node-feature")), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    let answer = || vec![ok(&json!({}))];
    let (mut client, requests) = serve(vec![answer(), answer()], Credentials::None);
    apply(&mut client).await.unwrap();
    // The server has closed the connection now, or does so during the next request.
    apply(&mut client).await.unwrap();
    assert_eq!(requests.iter().take(2).count(), 2);
}

#[tokio::test]
async fn a_replaced_token_is_used_by_the_next_request() {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("token");
    let answers = vec![vec![ok(&json!({})), ok(&json!({}))]];
    let (mut client, requests) = serve(answers, Credentials::File(file.clone()));
    let missing = apply(&mut client).await.unwrap_err();
    assert!(missing.to_string().contains("cannot read the token"), "{missing}");
    for token in ["first", "second"] {
        std::fs::write(&file, format!("{token}\n")).unwrap();
        apply(&mut client).await.unwrap();
        let expected = format!("authorization: Bearer {token}\r\n");
        let request = requests.recv().unwrap();
        assert!(request.contains(&expected), "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_an_error_after_a_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (mut client, _) = serve(Vec::new(), Credentials::None);
    client.redirect(port);
    let error = apply(&mut client).await.unwrap_err();
    assert!(error.to_string().contains("has not answered"), "{error}");
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn a_server_that_does_not_run_is_an_error_with_its_address() {
    // Bound and not listening, so that no other program gets the port.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let port = socket.local_addr().unwrap().as_socket().unwrap().port();
    let (mut client, _) = serve(Vec::new(), Credentials::None);
    client.redirect(port);
    let error = apply(&mut client).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("https://127.0.0.1:{port}")), "{text}");
}

fn event(kind: &str, version: u32) -> String {
    let object = json!({"metadata": {"resourceVersion": version.to_string()}});
    format!("{}\n", json!({"type": kind, "object": object}))
}

/// An answer in pieces that do not end where lines end.
fn chunked(text: &str) -> String {
    let (start, rest) = text.split_at(text.len() / 3);
    let (middle, end) = rest.split_at(1);
    let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    [head.to_owned(), chunk(start), chunk(middle), chunk(end), "0\r\n\r\n".to_owned()].concat()
}

#[tokio::test]
async fn a_watch_returns_every_change_and_begins_again_at_its_end() {
    let first = chunked(&[event("ADDED", 1), event("MODIFIED", 2), event("DELETED", 3)].concat());
    let expired = json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}});
    let second = chunked(&format!("{}{expired}\n", event("ADDED", 4)));
    let (client, requests) = serve(vec![vec![first], vec![second]], Credentials::None);
    let mut watch = NodeWatch::new("node-1");
    watch.pauses = Retry::from_limit(Duration::ZERO);
    let mut versions = Vec::new();
    let error = loop {
        match watch.next(&client).await {
            Ok(node) => {
                versions.push(node.map(|node| node.0["metadata"]["resourceVersion"].clone()));
            }
            Err(error) => break error,
        }
    };
    let version = |number: &str| Some(Value::from(number));
    assert_eq!(versions, [version("1"), version("2"), None, version("4")]);
    assert!(error.to_string().ends_with("410: too old"), "{error}");
    let request = requests.recv().unwrap();
    assert!(request.contains("&fieldSelector=metadata.name%3Dnode-1 HTTP/1.1"), "{request}");
}
