//! An API server with node objects, in the memory of a test: as much of it as a program needs that
//! reports on its own node, or cleans all nodes.
//!
//! A test changes a node or refuses requests, and reads which requests have arrived. Nothing uses
//! the network, so a test may pause the clock.

use std::collections::{BTreeMap, HashMap};
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

use crate::client::{Client, read_retry_after};

type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// The server. Each clone is the same one.
#[derive(Clone)]
pub struct TestServer(watch::Sender<State>);

/// The node of a server's client.
const NODE: &str = "node-1";

struct State {
    /// The objects by name.
    nodes: BTreeMap<&'static str, Value>,
    /// Whether `node-1` was deleted and not changed since.
    is_deleted: bool,
    version: u64,
    requests: Vec<TestRequest>,
    /// Status, reason, and what the method, the path or the body contains.
    refusal: Option<(u16, &'static str, &'static str)>,
    /// How often a request is refused whose method, path or query contains this part, with this
    /// status, and how many such requests have arrived.
    refused_each: Option<(u32, u16, &'static str, u32)>,
    /// The objects by name.
    events: HashMap<String, Value>,
    is_running: bool,
    /// How long each answer takes, if the method or path contains this.
    answer_time: (Duration, &'static str),
    /// How many times the watches were ended.
    ended_watches: u32,
    /// Whether a watch ends before its first event.
    ends_new_watches: bool,
}

/// A request that has arrived.
#[derive(Clone)]
pub struct TestRequest {
    /// Method and path, such as `PATCH /api/v1/nodes/node-1`.
    pub name: String,
    /// The query of the URL.
    pub query: String,
    /// The body; null if there is none.
    pub body: Value,
}

impl TestServer {
    /// A server that runs, with this object of `node-1`.
    #[must_use]
    pub fn new(node: Value) -> TestServer {
        let state = State {
            nodes: BTreeMap::from([(NODE, node)]),
            is_deleted: false,
            version: 0,
            requests: Vec::new(),
            refusal: None,
            refused_each: None,
            events: HashMap::new(),
            is_running: true,
            answer_time: (Duration::ZERO, ""),
            ended_watches: 0,
            ends_new_watches: false,
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
        let server = "https://127.0.0.1:1/".to_owned();
        Client { kube, server, node: NODE.to_owned(), program: "directx-feature-discovery" }
    }

    /// Changes the object of `node-1`, as another client does. If it was deleted, it is there again.
    pub fn change(&self, change: impl FnOnce(&mut Value)) {
        self.0.send_modify(|state| {
            state.is_deleted = false;
            state.change(NODE, change);
        });
    }

    /// Deletes the object of `node-1`.
    pub fn delete(&self) {
        self.0.send_modify(|state| {
            state.is_deleted = true;
            state.version += 1;
        });
    }

    /// Adds a node with this object.
    pub fn add(&self, name: &'static str, node: Value) {
        self.0.send_modify(|state| {
            state.nodes.insert(name, node);
            state.change(name, |_| {});
        });
    }

    /// The object of `node-1`.
    #[must_use]
    pub fn node(&self) -> Value {
        self.0.borrow().nodes[NODE].clone()
    }

    /// Refuses requests whose method, path or body contains `part` with this status and reason.
    pub fn refuse(&self, code: u16, reason: &'static str, part: &'static str) {
        self.0.send_modify(|state| state.refusal = Some((code, reason, part)));
    }

    /// Refuses each request of this number whose method, path or query contains `part`, with this
    /// status.
    pub fn refuse_each(&self, number: u32, code: u16, part: &'static str) {
        self.0.send_modify(|state| state.refused_each = Some((number, code, part, 0)));
    }

    /// Refuses no requests any more.
    pub fn accept(&self) {
        self.0.send_modify(|state| state.refusal = None);
    }

    /// Answers requests whose method or path contains `part` after this time.
    pub fn answer_after(&self, time: Duration, part: &'static str) {
        self.0.send_modify(|state| state.answer_time = (time, part));
    }

    /// Counts versions from this one on, as a server does whose storage was restored.
    pub fn set_version(&self, version: u64) {
        self.0.send_modify(|state| state.version = version);
    }

    /// Ends all watches, as a server does that shuts down after its grace period.
    pub fn end_watches(&self) {
        self.0.send_modify(|state| state.ended_watches += 1);
    }

    /// Ends each new watch before its first event, or no longer does that.
    pub fn end_new_watches(&self, ends: bool) {
        self.0.send_modify(|state| state.ends_new_watches = ends);
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
        let (answer_time, part) = self.0.borrow().answer_time;
        if request.name.contains(part) {
            tokio::time::sleep(answer_time).await;
        }
        let mut answer = (500, Value::Null);
        self.0.send_modify(|state| answer = state.answer(request));
        let body = match answer.0 {
            200 if is_watch => self.events(),
            _ => Full::from(answer.1.to_string()).map_err(|never| match never {}).boxed_unsync(),
        };
        let response = Response::builder().status(answer.0);
        let response = if [429, 503].contains(&answer.0) {
            response.header(RETRY_AFTER, "7")
        } else {
            response
        };
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
            if now.ended_watches != ended_watches || now.ends_new_watches {
                return None;
            }
            let kind = if now.is_deleted {
                "DELETED"
            } else if sent == 0 {
                "ADDED"
            } else {
                "MODIFIED"
            };
            let line = format!("{}\n", json!({"type": kind, "object": now.nodes[NODE]}));
            let is_running = now.is_running;
            let version = now.version;
            drop(now);
            let broken = || io::Error::from(io::ErrorKind::ConnectionReset);
            let event = if is_running { Ok(Bytes::from(line)) } else { Err(broken()) };
            Some((event, (state, version)))
        });
        StreamBody::new(events.map_ok(Frame::data)).boxed_unsync()
    }
}

impl State {
    fn change(&mut self, name: &'static str, change: impl FnOnce(&mut Value)) {
        let node = self.nodes.get_mut(name).expect("the test has added it");
        change(node);
        self.version += 1;
        node["metadata"]["name"] = name.into();
        node["metadata"]["resourceVersion"] = Value::from(self.version.to_string());
    }

    fn answer(&mut self, request: TestRequest) -> (u16, Value) {
        let TestRequest { name, body, query } = request.clone();
        self.requests.push(request);
        let is_refused = |part: &str| name.contains(part) || body.to_string().contains(part);
        if let Some((code, reason, _)) = self.refusal.filter(|(.., part)| is_refused(part)) {
            return status(code, reason);
        }
        if let Some((number, code, part, count)) = &mut self.refused_each
            && (name.contains(*part) || query.contains(*part))
        {
            *count += 1;
            if count.is_multiple_of(*number) {
                let (code, mut answer) = status(*code, "busy");
                if code == 410 {
                    // The rest of the list as it is now.
                    answer["metadata"]["continue"] = parameter(&query, "continue").into();
                }
                return (code, answer);
            }
        }
        let (method, path) = name.split_once(' ').unwrap_or_default();
        if let Some(nodes) = path.strip_prefix("/api/v1/nodes") {
            let name = nodes.trim_start_matches('/').trim_end_matches("/status");
            return self.answer_about_nodes(method, name, &query, &body);
        }
        match path.rsplit_once("/events") {
            Some((_, object)) => self.answer_about_event(method, object.trim_matches('/'), body),
            None => (200, json!({"apiVersion": "v1", "kind": "Other", "metadata": {}})),
        }
    }

    fn answer_about_nodes(
        &mut self,
        method: &str,
        name: &str,
        query: &str,
        body: &Value,
    ) -> (u16, Value) {
        if name.is_empty() {
            return self.list(query);
        }
        let node = self.nodes.get_key_value(name).filter(|_| name != NODE || !self.is_deleted);
        let Some((&name, node)) = node else {
            return status(404, "no such node");
        };
        if method == "PATCH" {
            let mut changed = node.clone();
            if !patch(&mut changed, body, query.contains("force=true")) {
                return status(422, "the server rejected our request");
            }
            if query.contains("dryRun=All") {
                return (200, changed);
            }
            self.change(name, |node| *node = changed);
        }
        (200, self.nodes[name].clone())
    }

    /// As many nodes as the query wants, after the one that it names.
    fn list(&self, query: &str) -> (u16, Value) {
        let after = parameter(query, "continue");
        let limit = parameter(query, "limit").parse().unwrap_or(usize::MAX);
        let names: Vec<&str> = self.nodes.keys().copied().filter(|name| *name > after).collect();
        let page = &names[..names.len().min(limit)];
        let next = page.last().filter(|_| names.len() > limit);
        let items: Value = page.iter().map(|name| self.nodes[name].clone()).collect();
        (200, json!({"metadata": {"continue": next}, "items": items}))
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

fn parameter<'a>(query: &'a str, name: &str) -> &'a str {
    let mut parts = query.split('&').filter_map(|part| part.split_once('='));
    parts.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}

fn status(code: u16, message: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "message": message, "code": code}))
}

/// Makes a change of a node: a JSON patch of taints, or what a program applies of labels and
/// conditions. Whether it is possible.
fn patch(node: &mut Value, body: &Value, is_applied: bool) -> bool {
    if let Some(steps) = body.as_array() {
        return steps.iter().all(|step| json_patch_step(node, step));
    }
    match body["status"]["conditions"].as_array() {
        Some(changed) if is_applied => apply_conditions(node, changed),
        Some(changed) => change_conditions(node, changed),
        None if is_applied => apply_labels(&mut node["metadata"], &body["metadata"]["labels"]),
        None => {}
    }
    true
}

/// Sets or removes these conditions.
fn change_conditions(node: &mut Value, changed: &[Value]) {
    let mut conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in changed {
        conditions.retain(|other| other["type"] != condition["type"]);
        conditions.extend(Some(condition.clone()).filter(|c| c["$patch"].is_null()));
    }
    node["status"]["conditions"] = conditions.into();
}

/// Replaces the conditions that were applied before.
fn apply_conditions(node: &mut Value, applied: &[Value]) {
    let fields = node["status"]["applied"].as_array().cloned().unwrap_or_default();
    let removed: Vec<Value> =
        fields.iter().map(|kind| json!({"type": kind, "$patch": "delete"})).collect();
    change_conditions(node, &removed);
    change_conditions(node, applied);
    node["status"]["applied"] = applied.iter().map(|condition| condition["type"].clone()).collect();
}

/// Replaces the labels that were applied before.
fn apply_labels(metadata: &mut Value, applied: &Value) {
    let before = metadata.pointer("/managedFields/0/fieldsV1/f:metadata/f:labels");
    let before = before.cloned().unwrap_or_default();
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    labels.retain(|name, _| before.get(format!("f:{name}")).is_none());
    let applied = applied.as_object().cloned().unwrap_or_default();
    let fields: Value = applied.keys().map(|name| (format!("f:{name}"), json!({}))).collect();
    labels.extend(applied);
    metadata["labels"] = labels.into();
    metadata["managedFields"] = json!([{
        "manager": "directx-feature-discovery", "operation": "Apply",
        "fieldsV1": {"f:metadata": {"f:labels": fields}},
    }]);
}

/// A test of a value, or the removal of an element.
fn json_patch_step(node: &mut Value, step: &Value) -> bool {
    let path = step["path"].as_str().unwrap_or_default();
    let (list, position) = path.rsplit_once('/').unwrap_or_default();
    match node.pointer_mut(list).and_then(Value::as_array_mut).zip(position.parse().ok()) {
        Some((list, position)) if step["op"] == "remove" && list.len() > position => {
            list.remove(position);
            true
        }
        _ => step["op"] == "test" && node.pointer(path) == Some(&step["value"]),
    }
}
