//! An API server with one node object, in the memory of a test: as much of it as a program needs
//! that reports on its own node.
//!
//! A test changes the node or refuses requests, and reads which requests have arrived. Nothing uses
//! the network, so a test may pause the clock.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;

use crate::Client;
use crate::credentials::Credentials;
use crate::server::{Access, Server};

/// How many bytes one side may send before the other reads.
const BUFFER: usize = 64 * 1024;

/// The server. Each clone is the same one.
#[derive(Clone)]
pub struct TestServer(watch::Sender<State>);

struct State {
    node: Value,
    version: u64,
    /// Method and path of each request, without the query.
    requests: Vec<String>,
    refusal: Option<(u16, &'static str)>,
    is_running: bool,
    /// How long each answer takes.
    answer_time: Duration,
    /// How many times the watches were ended.
    ended_watches: u32,
}

struct Request {
    method: String,
    path: String,
    body: Value,
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
        let host = "127.0.0.1".to_owned();
        let access = Access {
            server: Server { certified_name: host.clone(), host, port: 1, prefix: String::new() },
            authorities: Vec::new(),
            client: None,
            credentials: Credentials::None,
            namespace: "default".to_owned(),
        };
        Client::in_memory(access, Arc::new(move || server.connect()))
    }

    /// Changes the node object, as somebody else does.
    pub fn change(&self, change: impl FnOnce(&mut Value)) {
        self.0.send_modify(|state| state.change(change));
    }

    /// The node object.
    #[must_use]
    pub fn node(&self) -> Value {
        self.0.borrow().node.clone()
    }

    /// Refuses every request with this status and reason, or with `None` no longer.
    pub fn refuse(&self, refusal: Option<(u16, &'static str)>) {
        self.0.send_modify(|state| state.refusal = refusal);
    }

    /// Answers each request after this time.
    pub fn answer_after(&self, time: Duration) {
        self.0.send_modify(|state| state.answer_time = time);
    }

    /// Ends all watches, as a server does that shuts down after its grace time.
    pub fn end_watches(&self) {
        self.0.send_modify(|state| state.ended_watches += 1);
    }

    /// Breaks all connections and accepts none.
    pub fn kill(&self) {
        self.0.send_modify(|state| state.is_running = false);
    }

    /// Runs again after [`kill`](TestServer::kill).
    pub fn start(&self) {
        self.0.send_modify(|state| state.is_running = true);
    }

    /// The requests since the last call of this function, such as `PATCH /api/v1/nodes/node-1`.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let mut requests = Vec::new();
        self.0.send_if_modified(|state| {
            requests = std::mem::take(&mut state.requests);
            false
        });
        requests
    }

    fn connect(&self) -> io::Result<DuplexStream> {
        if !self.0.borrow().is_running {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = duplex(BUFFER);
        let (server, mut state) = (self.clone(), self.0.subscribe());
        tokio::spawn(async move {
            tokio::select! {
                _ = server.serve(ours) => {}
                _ = state.wait_for(|state| !state.is_running) => {}
            }
        });
        Ok(theirs)
    }

    /// Serves one connection until it ends.
    async fn serve(&self, mut io: DuplexStream) -> io::Result<()> {
        loop {
            let request = read_request(&mut io).await?;
            let answer_time = self.0.borrow().answer_time;
            tokio::time::sleep(answer_time).await;
            let mut answer = (500, Value::Null);
            self.0.send_modify(|state| answer = state.answer(&request));
            if answer.0 == 200 && request.path.contains("watch=true") {
                self.watch(&mut io).await?;
                continue;
            }
            let body = answer.1.to_string();
            let (code, length) = (answer.0, body.len());
            let text = format!("HTTP/1.1 {code} x\r\ncontent-length: {length}\r\n\r\n{body}");
            io.write_all(text.as_bytes()).await?;
        }
    }

    /// Sends the node object and each change until the watches are ended.
    async fn watch(&self, io: &mut DuplexStream) -> io::Result<()> {
        let mut state = self.0.subscribe();
        let ended_watches = state.borrow().ended_watches;
        io.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
        let mut sent = 0;
        loop {
            let (version, node, is_ended) = {
                let now = state.borrow_and_update();
                (now.version, now.node.clone(), now.ended_watches != ended_watches)
            };
            if is_ended {
                return io.write_all(b"0\r\n\r\n").await;
            }
            if version != sent {
                let kind = if sent == 0 { "ADDED" } else { "MODIFIED" };
                let line = format!("{}\n", json!({"type": kind, "object": node}));
                let chunk = format!("{:x}\r\n{line}\r\n", line.len());
                io.write_all(chunk.as_bytes()).await?;
                sent = version;
            }
            state.changed().await.map_err(io::Error::other)?;
        }
    }
}

impl State {
    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.node);
        self.version += 1;
        self.node["metadata"]["resourceVersion"] = Value::from(self.version.to_string());
    }

    fn answer(&mut self, request: &Request) -> (u16, Value) {
        let Request { method, path, body } = request;
        let path = path.split('?').next().unwrap_or_default();
        self.requests.push(format!("{method} {path}"));
        if let Some((code, message)) = self.refusal {
            return (code, json!({"kind": "Status", "message": message}));
        }
        let version = &body["metadata"]["resourceVersion"];
        if version.is_string() && *version != self.node["metadata"]["resourceVersion"] {
            return (409, json!({"kind": "Status", "message": "the object has been modified"}));
        }
        if method == "PATCH" && path.starts_with("/api/v1/nodes/") {
            let body = body.clone();
            self.change(|node| patch(node, body));
            return (200, self.node.clone());
        }
        (200, json!({}))
    }
}

/// The parts of an object that programs apply replace those of the node.
fn patch(node: &mut Value, mut body: Value) {
    if let Some(conditions) = body["status"]["conditions"].as_array() {
        let kinds: Vec<&Value> = conditions.iter().map(|condition| &condition["type"]).collect();
        let others = node["status"]["conditions"].as_array().into_iter().flatten();
        let others = others.filter(|other| !kinds.contains(&&other["type"])).cloned();
        let all: Vec<Value> = others.chain(conditions.iter().cloned()).collect();
        node["status"]["conditions"] = all.into();
    }
    if body["spec"]["taints"].is_array() {
        node["spec"]["taints"] = body["spec"]["taints"].take();
    }
    if let Some(labels) = body["metadata"]["labels"].as_object() {
        let fields = labels.keys().map(|name| (format!("f:{name}"), json!({}))).collect();
        let fields = Value::Object(fields);
        for (name, value) in labels {
            node["metadata"]["labels"][name] = value.clone();
        }
        node["metadata"]["managedFields"] = json!([{
            "manager": "directx-feature-discovery", "operation": "Apply",
            "fieldsV1": {"f:metadata": {"f:labels": fields}},
        }]);
    }
}

/// The next request; an error at the end of the connection.
async fn read_request(io: &mut DuplexStream) -> io::Result<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lengths = head.lines().filter_map(|line| line.strip_prefix("content-length: "));
    let length = lengths.find_map(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    io.read_exact(&mut body).await?;
    let mut words = head.split(' ').map(str::to_owned);
    let mut word = || words.next().unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Request { method: word(), path: word(), body })
}
