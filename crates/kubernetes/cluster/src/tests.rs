//! Requests to a server in memory, and the access to one on the loopback interface.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::RETRY_AFTER;
use http_body_util::Full;
use serde_json::json;

use crate::client::read_retry_after;
use crate::node::PAGE;
use crate::{
    Access, AccessError, Client, Event, FailureKind, Node, NodeCondition, NodeWatch,
    ResourceExt as _, TestServer, WatchEvent, is_older,
};

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("a/b".to_owned(), "c".to_owned())])
}

fn node() -> Node {
    serde_json::from_value(json!({"metadata": {"name": "node-1", "uid": "1-2"}})).unwrap()
}

#[tokio::test]
async fn labels_are_applied_with_the_name_of_their_manager() {
    let server = TestServer::new(json!({}));
    let node = server.client().apply_labels(&labels()).await.unwrap();
    assert_eq!(node.metadata.labels, Some(labels()));
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!(request.name, "PATCH /api/v1/nodes/node-1");
    assert_eq!(request.query, "&force=true&fieldManager=directx-feature-discovery");
    let expected = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node-1", "labels": {"a/b": "c"}}});
    assert_eq!(request.body, expected);
}

#[tokio::test]
async fn a_label_is_tried_without_a_change() {
    let server = TestServer::new(json!({}));
    let before = server.node();
    server.client().try_label("a/b").await.unwrap();
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!(request.name, "PATCH /api/v1/nodes/node-1");
    assert_eq!(request.query, "&dryRun=All&fieldManager=directx-feature-discovery");
    assert_eq!(request.body, json!({"metadata": {"labels": {"a/b": ""}}}));
    assert_eq!(server.node(), before);
    for (code, reason, is_of_admission) in [
        (422, "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no", true),
        (400, "admission webhook \"a\" does not support dry run", true),
        (403, "User \"a\" cannot patch resource \"nodes\"", false),
    ] {
        server.refuse(code, reason, "");
        let error = server.client().try_label("a/b").await.unwrap_err();
        assert_eq!(error.is_of_admission(), is_of_admission, "{reason}");
    }
}

#[tokio::test]
async fn a_refusal_has_the_servers_reason_and_a_hint() {
    for (code, hint) in [(401, "expired"), (403, "roles"), (404, "--node-name")] {
        let server = TestServer::new(json!({}));
        server.refuse(code, "the reason", "");
        let error = server.client().apply_labels(&labels()).await.unwrap_err();
        let expected =
            format!("the API server refused to set the labels of the node with {code}: the reason");
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().is_some_and(|text| text.contains(hint)), "{error:?}");
        assert_eq!(error.retry_after(), None);
    }
    for (code, reason) in [(429, "slow down"), (503, "shutting down")] {
        let server = TestServer::new(json!({}));
        server.refuse(code, reason, "");
        let error = server.client().apply_labels(&labels()).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert!(error.to_string().ends_with(&format!("{code}: {reason}")), "{error}");
    }
}

#[tokio::test]
async fn an_overloaded_server_may_answer_with_plain_text() {
    let text = Full::<Bytes>::from("Too many requests, please try again later.\n");
    let response = Response::builder().status(429).header(RETRY_AFTER, "1").body(text).unwrap();
    let error = read_retry_after(response).await.unwrap_err();
    let Some(kube::Error::Api(status)) = error.downcast_ref() else { panic!("{error}") };
    assert_eq!(
        (status.code, &*status.message),
        (429, "Too many requests, please try again later.")
    );
    assert_eq!(status.details.as_ref().unwrap().retry_after_seconds, 1);
}

#[tokio::test]
async fn only_the_taint_with_the_key_is_removed_unless_it_has_moved() {
    let taint = |key: &str, effect: &str| json!({"key": key, "effect": effect});
    let own = taint("own", "NoSchedule");
    let more = taint("own", "NoExecute");
    let other = taint("other", "NoSchedule");
    let server = TestServer::new(json!({"spec": {"taints": [own, other, more]}}));
    let client = server.client();
    let node = client.node().await.unwrap();
    // Another client changes a label. That is not a conflict.
    server.change(|node| node["metadata"]["labels"]["a/b"] = "1".into());
    client.remove_taint(&node, "own").await.unwrap();
    assert_eq!(server.node()["spec"]["taints"], json!([other]));
    let error = client.remove_taint(&node, "own").await.unwrap_err();
    assert!(error.to_string().contains("with 422"), "{error}");
    assert_eq!(error.hint(), None);
    assert_eq!(server.node()["spec"]["taints"], json!([other]));
}

/// Of two applies, the second would remove what the first has set.
#[tokio::test]
async fn conditions_are_applied_together_and_keep_the_time_of_their_transition() {
    let before = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-22T08:30:00Z"});
    let conditions = [before("Ready"), before("A"), before("B")];
    let server = TestServer::new(json!({"status": {"conditions": conditions}}));
    let client = server.client();
    let condition = |kind: &str, status: &str| NodeCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        ..NodeCondition::default()
    };
    let before = client.node().await.unwrap();
    let both = [condition("A", "True"), condition("B", "False")];
    let after = client.apply_conditions(&before, &both).await.unwrap();
    assert_eq!(server.requests().len(), 2);
    let times = |node: &Node, kind| {
        crate::condition(node, kind).unwrap().last_transition_time.clone().unwrap()
    };
    assert_eq!(times(&after, "A"), times(&before, "A"));
    assert!(times(&after, "B") > times(&before, "B"));
    let node = client.remove_conditions(&["A", "B"]).await.unwrap();
    assert_eq!(node.status.unwrap().conditions.unwrap().len(), 1);
}

#[test]
fn an_older_version_of_another_object_is_not_older() {
    let node = |uid: &str, version: &str| -> Node {
        serde_json::from_value(json!({"metadata": {"uid": uid, "resourceVersion": version}}))
            .unwrap()
    };
    assert!(is_older(&node("a", "9"), &node("a", "10")));
    assert!(!is_older(&node("a", "10"), &node("a", "9")));
    assert!(!is_older(&node("b", "9"), &node("a", "10")));
}

#[tokio::test]
async fn all_nodes_are_listed_page_by_page() {
    let server = TestServer::new(json!({}));
    for number in 2..=PAGE + 1 {
        server.add(format!("node-{number}").leak(), json!({}));
    }
    let client = server.client();
    let (first, token) = client.nodes_page(None).await.unwrap();
    let (second, end) = client.nodes_page(token.as_deref()).await.unwrap();
    assert_eq!((first.len(), second.len(), end), (PAGE as usize, 1, None));
    let names: HashSet<_> = first.iter().chain(&second).map(Node::name_any).collect();
    assert_eq!(names.len(), PAGE as usize + 1);
    assert_eq!(server.requests().len(), 2);
    server.refuse_each(1, 410, "continue=");
    let error = client.nodes_page(token.as_deref()).await.unwrap_err();
    assert_eq!((error.kind(), error.next_page()), (FailureKind::Refused(410), token));
}

fn event(note: &str, count: i32) -> Event {
    let note = note.to_owned();
    Event { reason: "Reason", action: "Discover", is_warning: true, note, count }
}

#[tokio::test]
async fn an_event_that_repeats_is_one_object_with_a_count_also_after_a_restart() {
    let server = TestServer::new(json!({}));
    server.client().report(&node(), &event("it is hot", 1)).await.unwrap();
    let [created] = &server.requests()[..] else { panic!("one request") };
    let body = &created.body;
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_eq!(created.name, format!("POST {path}"));
    assert_eq!(body["series"], json!(null));
    assert_eq!((&body["note"], &body["type"]), (&json!("it is hot"), &json!("Warning")));
    assert_eq!(
        (&body["regarding"]["kind"], &body["regarding"]["uid"]),
        (&json!("Node"), &json!("1-2"))
    );
    // The name must be the same in every release.
    let name = "node-1.f18edc4ecb4e456f";
    assert_eq!(body["metadata"]["name"], name);
    for (count, total) in [(1, 2), (3, 5)] {
        server.client().report(&node(), &event("it is hot", count)).await.unwrap();
        let [_, _, repeated] = &server.requests()[..] else { panic!("three requests") };
        assert_eq!(repeated.name, format!("PATCH {path}/{name}"));
        let keys: Vec<&String> = repeated.body.as_object().unwrap().keys().collect();
        assert_eq!(
            (keys, &repeated.body["series"]["count"]),
            (vec![&"series".to_owned()], &json!(total))
        );
    }
    // Another note is another object: a note cannot change.
    server.client().report(&node(), &event("it is cold", 2)).await.unwrap();
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!(
        (&request.body["note"], &request.body["series"]["count"]),
        (&json!("it is cold"), &json!(2))
    );
    let long = "é".repeat(600);
    server.client().report(&node(), &event(&long, 1)).await.unwrap();
    assert_eq!(server.requests()[0].body["note"], long[..1024]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_an_error_after_a_limit() {
    let server = TestServer::new(json!({}));
    server.answer_after(Duration::from_hours(1), "");
    let error = server.client().apply_labels(&labels()).await.unwrap_err();
    assert!(error.to_string().contains("within 30 s"), "{error}");
    assert!(error.hint().is_some());
}

/// An authority that has signed nothing.
const AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUF7CccIlOfnul6fOncDAgztOPHlswCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjIyMzAwMTNaGA8yMTI2MTAyOTIzMDAx
M1owDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPTd
oEA1Rhyrogv416Jli9pfpEXuQZbFQPxnQhmBWGImC5K6CjBzbfUnXBwkPKPhbeDc
4y+K4iJMhQblJsSRqiqjUzBRMB0GA1UdDgQWBBSQAnJqmMNMKE3krQjZsEyrFmIJ
wTAfBgNVHSMEGDAWgBSQAnJqmMNMKE3krQjZsEyrFmIJwTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIA+5Jqp8Nf9At+0KfqABGgcD8lCGdW0prPvo
xcsEIc7KAiEAkoJNZaeVYAYF8lsFwHJuzbcxOYnh01QFe9kxunje9C4=
-----END CERTIFICATE-----
";

/// A pod with these files of its account, and an API server at this port.
fn pod(root: &Path, files: &[(&str, &str)], port: u16) -> Result<Client, AccessError> {
    let folder = root.join("var/run/secrets/kubernetes.io/serviceaccount");
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let access = Access::of_pod(|name| match name {
        "KUBERNETES_SERVICE_HOST" => Some("127.0.0.1".to_owned()),
        "KUBERNETES_SERVICE_PORT" => Some(port.to_string()),
        _ => Some(root.display().to_string()),
    });
    Client::new(access?, "program", "node-1")
}

const ACCOUNT: [(&str, &str); 3] =
    [("ca.crt", AUTHORITY), ("token", "t"), ("namespace", "kube-system\n")];

#[tokio::test]
async fn a_server_without_tls_is_an_error_with_its_address() {
    let root = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let client = pod(root.path(), &ACCOUNT, port).unwrap();
    assert_eq!(client.kube.default_namespace(), "kube-system");
    let error = client.apply_labels(&labels()).await.unwrap_err();
    let expected = format!("cannot reach the API server https://127.0.0.1:{port}/");
    assert_eq!(error.to_string(), expected);
    assert!(error.hint().is_some_and(|hint| hint.contains("is running")), "{error:?}");
}

#[tokio::test]
async fn an_account_that_cannot_be_used_is_an_error_with_its_folder() {
    for (index, (missing, _)) in ACCOUNT.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        let mut files = ACCOUNT.to_vec();
        files.remove(index);
        let error = pod(root.path(), &files, 1).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("serviceaccount"), "without {missing}: {text}");
        assert!(error.hint().contains("automountServiceAccountToken"), "{error:?}");
    }
    let error = Access::of_pod(|_| None).err().unwrap();
    assert!(error.to_string().starts_with("KUBERNETES_SERVICE_HOST is not set"), "{error}");
}

#[tokio::test]
async fn a_watch_returns_the_node_and_each_change_and_begins_again_after_its_end() {
    let server = TestServer::new(json!({"metadata": {"labels": {"a/b": "1"}}}));
    let client = server.client();
    let mut watch = NodeWatch::default();
    for value in ["1", "2", "2"] {
        let Some(WatchEvent::Added(node) | WatchEvent::Modified(node)) =
            watch.next(&client).await.unwrap()
        else {
            panic!("no node")
        };
        assert_eq!(node.metadata.labels.unwrap()["a/b"], value);
        server.change(|node| node["metadata"]["labels"]["a/b"] = "2".into());
    }
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!(request.name, "GET /api/v1/nodes");
    assert!(request.query.contains("&fieldSelector=metadata.name%3Dnode-1"), "{}", request.query);
    server.end_watches();
    while watch.next(&client).await.unwrap().is_some() {}
    assert!(matches!(watch.next(&client).await, Ok(Some(WatchEvent::Added(_)))));
    server.run(false);
    let error = watch.next(&client).await.err().unwrap();
    assert!(error.to_string().contains("cannot reach the API server"), "{error}");
}
