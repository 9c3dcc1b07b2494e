//! An API server with one node object, in the memory of a test: as much of it as a program needs
//! that reports on its own node.
//!
//! A test changes the node or refuses requests, and reads which requests have arrived. Nothing uses
//! the network, so a test may pause the clock.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{TryStreamExt, unfold};
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::{BoxError, ServiceExt, service_fn};

use crate::Client;
use crate::client::read_retry_after;

type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// The server. Each clone is the same one.
#[derive(Clone)]
pub struct TestServer(watch::Sender<State>);

struct State {
    node: Value,
    version: u64,
    requests: Vec<TestRequest>,
    /// Status, reason, and what the method or path contains.
    refusal: Option<(u16, &'static str, &'static str)>,
    /// By name.
    events: HashMap<String, Value>,
    is_running: bool,
    /// How long each answer takes.
    answer_time: Duration,
    /// How many times the watches were ended.
    ended_watches: u32,
}

/// A request that has arrived.
pub struct TestRequest {
    /// Method and path, such as `PATCH /api/v1/nodes/node-1`.
    pub name: String,
    /// The query of the URL.
    pub query: String,
    /// The body; null if there is none.
    pub body: Value,
}

impl TestServer {
    /// A server that runs, with this node object.
    #[must_use]
    pub fn new(node: Value) -> TestServer {
        let state = State {
            node,
            version: 0,
            requests: Vec::new(),
            refusal: None,
            events: HashMap::new(),
            is_running: true,
            answer_time: Duration::ZERO,
            ended_watches: 0,
        };
        let server = TestServer(watch::Sender::new(state));
        server.change(|_| {});
        server
    }

    /// A client of the server.
    #[must_use]
    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request| server.clone().answer(request));
        let kube = kube::Client::new(service.and_then(read_retry_after), "default");
        let (server, node) = ("https://127.0.0.1:1/".to_owned(), "node-1".to_owned());
        Client { kube, server, node, program: "directx-feature-discovery" }
    }

    /// Changes the node object, as another client does.
    pub fn change(&self, change: impl FnOnce(&mut Value)) {
        self.0.send_modify(|state| state.change(change));
    }

    /// The node object.
    #[must_use]
    pub fn node(&self) -> Value {
        self.0.borrow().node.clone()
    }

    /// Refuses requests whose method or path contains `part` with this status and reason.
    pub fn refuse(&self, code: u16, reason: &'static str, part: &'static str) {
        self.0.send_modify(|state| state.refusal = Some((code, reason, part)));
    }

    /// Refuses no requests any more.
    pub fn accept(&self) {
        self.0.send_modify(|state| state.refusal = None);
    }

    /// Answers each request after this time.
    pub fn answer_after(&self, time: Duration) {
        self.0.send_modify(|state| state.answer_time = time);
    }

    /// Ends all watches, as a server does that shuts down after its grace period.
    pub fn end_watches(&self) {
        self.0.send_modify(|state| state.ended_watches += 1);
    }

    /// Breaks all connections and accepts none, or runs again.
    pub fn run(&self, is_running: bool) {
        self.0.send_modify(|state| state.is_running = is_running);
    }

    /// The requests since the last call of this function.
    #[must_use]
    pub fn requests(&self) -> Vec<TestRequest> {
        let mut requests = Vec::new();
        self.0.send_modify(|state| requests = std::mem::take(&mut state.requests));
        requests
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        let mut state = self.0.subscribe();
        tokio::select! {
            biased;
            _ = state.wait_for(|state| !state.is_running) => {
                Err(io::Error::from(io::ErrorKind::ConnectionRefused).into())
            }
            answer = self.running_answer(request) => answer,
        }
    }

    async fn running_answer(&self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        let (head, body) = request.into_parts();
        let body = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
        let request = TestRequest {
            name: format!("{} {}", head.method, head.uri.path()),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body,
        };
        let is_watch = request.query.contains("watch=true");
        let answer_time = self.0.borrow().answer_time;
        tokio::time::sleep(answer_time).await;
        let mut answer = (500, Value::Null);
        self.0.send_modify(|state| answer = state.answer(request));
        let body = match answer.0 {
            200 if is_watch => self.events(),
            _ => Full::from(answer.1.to_string()).map_err(|never| match never {}).boxed_unsync(),
        };
        let response = Response::builder().status(answer.0);
        let response = if answer.0 == 429 { response.header(RETRY_AFTER, "7") } else { response };
        Ok(response.body(body)?)
    }

    /// The node object and each change until the watches are ended.
    fn events(&self) -> Answer {
        let state = self.0.subscribe();
        let ended_watches = state.borrow().ended_watches;
        let events = unfold((state, 0), move |(mut state, sent)| async move {
            let is_due = |state: &State| {
                !state.is_running || state.ended_watches != ended_watches || state.version != sent
            };
            let now = state.wait_for(is_due).await.ok()?;
            if now.ended_watches != ended_watches {
                return None;
            }
            let kind = if sent == 0 { "ADDED" } else { "MODIFIED" };
            let line = format!("{}\n", json!({"type": kind, "object": now.node}));
            let (is_running, version) = (now.is_running, now.version);
            drop(now);
            let broken = || io::Error::from(io::ErrorKind::ConnectionReset);
            let event = if is_running { Ok(Bytes::from(line)) } else { Err(broken()) };
            Some((event, (state, version)))
        });
        StreamBody::new(events.map_ok(Frame::data)).boxed_unsync()
    }
}

impl State {
    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.node);
        self.version += 1;
        self.node["metadata"]["name"] = "node-1".into();
        self.node["metadata"]["resourceVersion"] = Value::from(self.version.to_string());
    }

    fn answer(&mut self, request: TestRequest) -> (u16, Value) {
        let (name, body) = (request.name.clone(), request.body.clone());
        self.requests.push(request);
        if let Some((code, reason, _)) = self.refusal.filter(|(.., part)| name.contains(part)) {
            return status(code, reason);
        }
        let version = &body["metadata"]["resourceVersion"];
        if version.is_string() && *version != self.node["metadata"]["resourceVersion"] {
            return status(409, "the object has been modified");
        }
        let (method, path) = name.split_once(' ').unwrap_or_default();
        if method == "PATCH" && path.starts_with("/api/v1/nodes/") {
            self.change(|node| patch(node, body));
            return (200, self.node.clone());
        }
        match path.rsplit_once("/events") {
            Some((_, object)) => self.answer_about_event(method, object.trim_matches('/'), body),
            None => (200, json!({"apiVersion": "v1", "kind": "Other", "metadata": {}})),
        }
    }

    fn answer_about_event(&mut self, method: &str, name: &str, mut body: Value) -> (u16, Value) {
        let name = body["metadata"]["name"].as_str().unwrap_or(name).to_owned();
        match (method, self.events.get_mut(&name)) {
            ("POST", Some(_)) => status(409, "the object exists already"),
            ("POST", None) => {
                self.events.insert(name, body.clone());
                (200, body)
            }
            (_, None) => status(404, "no such Event"),
            (_, Some(event)) => {
                if method == "PATCH" {
                    event["series"] = body["series"].take();
                }
                (200, event.clone())
            }
        }
    }
}

fn status(code: u16, message: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "message": message, "code": code}))
}

/// The parts of an object that programs apply replace those of the node.
fn patch(node: &mut Value, mut body: Value) {
    for (part, key) in [("status", "conditions"), ("spec", "taints"), ("metadata", "labels")] {
        if !body[part][key].is_null() {
            node[part][key] = body[part][key].take();
        }
    }
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let fields: Value = labels.map(|(name, _)| (format!("f:{name}"), json!({}))).collect();
    node["metadata"]["managedFields"] = json!([{
        "manager": "directx-feature-discovery", "operation": "Apply",
        "fieldsV1": {"f:metadata": {"f:labels": fields}},
    }]);
}
