//! A registry that fails in a given way, and records the manifests that it accepts.
//!
//! It says that it has every blob, so that a client goes on to push manifests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The registry accepts no upload: 403.
    Denied,
    /// The registry has no space for blobs: 500.
    Uploads,
    /// It accepts this many manifests and answers 500 to the next.
    ManifestsAfter(usize),
    /// It accepts this many manifests and closes the connection at the next.
    ConnectionAfter(usize),
}

pub(super) struct FaultyRegistry {
    pub(super) address: String,
    accepted: Arc<Mutex<Vec<String>>>,
}

impl FaultyRegistry {
    /// Starts it in a thread that lasts until this process ends.
    pub(super) fn start(fault: Fault) -> Result<FaultyRegistry> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let state = State { fault, accepted: Arc::clone(&accepted) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                thread::spawn(move || {
                    // An error means that the client went away.
                    let _ = state.serve(stream);
                });
            }
        });
        Ok(FaultyRegistry { address, accepted })
    }

    /// The manifests that were pushed and accepted, by what they were pushed as.
    pub(super) fn accepted_manifests(&self) -> Vec<String> {
        self.accepted.lock().map(|accepted| accepted.clone()).unwrap_or_default()
    }
}

#[derive(Clone)]
struct State {
    fault: Fault,
    accepted: Arc<Mutex<Vec<String>>>,
}

/// What is sent back: a status line with headers, or nothing and the connection ends.
type Response = Option<String>;

impl State {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        loop {
            let Some((method, path)) = read_request(&mut reader)? else { return Ok(()) };
            match self.respond(&method, &path) {
                Some(response) => writer.write_all(response.as_bytes())?,
                None => return Ok(()),
            }
        }
    }

    fn respond(&self, method: &str, path: &str) -> Response {
        let status = |line: &str| Some(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n"));
        let is_upload = path.contains("/blobs/uploads");
        match method {
            "GET" if path == "/v2/" => status("200 OK"),
            "HEAD" if path.contains("/blobs/") && self.fault != Fault::Uploads => status("200 OK"),
            "POST" if is_upload && self.fault == Fault::Denied => Some(denied()),
            "POST" if is_upload => status("500 Internal Server Error"),
            "PUT" if path.contains("/manifests/") => self.put_manifest(path),
            _ => status("404 Not Found"),
        }
    }

    fn put_manifest(&self, path: &str) -> Response {
        let mut accepted = self.accepted.lock().ok()?;
        match self.fault {
            Fault::Denied => return Some(denied()),
            Fault::ConnectionAfter(count) if accepted.len() >= count => return None,
            Fault::ManifestsAfter(count) if accepted.len() >= count => {
                return Some(
                    "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".into(),
                );
            }
            _ => {}
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        accepted.push(name.to_owned());
        Some("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".into())
    }
}

fn denied() -> String {
    let body = r#"{"errors":[{"code":"DENIED","message":"requested access is denied"}]}"#;
    let length = body.len();
    format!(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// The method and the path of the next request, whose body is skipped; `None` at the end
/// of the connection.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, String)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let mut words = first.split_whitespace().map(str::to_owned);
    Ok(words.next().zip(words.next()))
}
