//! Well-behaved, slow and hostile clients over real connections.

use std::net::SocketAddr;
use std::sync::mpsc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::monitoring::address;

/// Ends a test that hangs.
const LIMIT: Duration = Duration::from_mins(2);

/// The size of a page that no socket buffer holds.
const LARGE: usize = 64 << 20;

/// The content of the large page.
struct Large(Vec<u8>, mpsc::Sender<()>);

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        // The tests without a large page have no receiver.
        let _ = self.1.send(());
    }
}

fn start() -> SocketAddr {
    start_with(LIMIT, mpsc::channel().0)
}

/// Serves a small page, and a large one: `dropped` learns when the server no longer has it.
fn start_with(lifetime: Duration, dropped: mpsc::Sender<()>) -> SocketAddr {
    let listener = address::bind(address::parse("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let answer: Answer = Arc::new(move |request| {
        let body = match request.uri().path() {
            "/small" => Bytes::from_static(b"small"),
            _ => Bytes::from_owner(Large(vec![b'x'; LARGE], dropped.clone())),
        };
        Box::pin(std::future::ready(page(StatusCode::OK, "text/plain", body)))
    });
    tokio::spawn(async move { serve(listener, lifetime, &answer).await.map(drop) });
    address
}

/// Sends `bytes` and returns everything until the server closes the connection.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may refuse a long request before it is complete.
    let _ = stream.write_all(bytes).await;
    rest(&mut stream).await
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is reset has ended, too.
    let _ = timeout(LIMIT, stream.read_to_end(&mut text)).await.expect("the connection stays open");
    String::from_utf8_lossy(&text).into_owned()
}

async fn get(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes()).await
}

#[tokio::test]
async fn pages_are_served() {
    let address = start();
    let response = get(address, "/small?a=b").await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\nsmall"), "{response}");
    let head = exchange(address, b"HEAD /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let head = head.await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let address = start();
    assert!(exchange(address, b"\x16\x03\x01\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    let huge = format!("GET /small HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let huge = exchange(address, huge.as_bytes());
    assert!(!huge.await.contains(" 200 "));
    assert!(get(address, "/small").await.contains(" 200 "));
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_request_is_disconnected() {
    let address = start_with(Duration::from_millis(50), mpsc::channel().0);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /small HT").await.unwrap();
    assert!(!rest(&mut stream).await.contains(" 200 "));
}

#[tokio::test]
#[cfg_attr(windows, ignore = "Wine buffers what a client does not read, of any length")]
async fn a_client_that_does_not_read_is_disconnected() {
    let (dropped, is_dropped) = mpsc::channel();
    let address = start_with(Duration::from_secs(1), dropped);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let given_up = async {
        while is_dropped.try_recv().is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LIMIT, given_up).await.expect("the connection stays open");
    let read = rest(&mut stream).await.len();
    assert!(read < LARGE, "the server has sent all {read} bytes");
}

#[tokio::test]
async fn the_oldest_connection_makes_room_for_a_new_one() {
    let address = start();
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS + 8 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(get(address, "/small").await.contains(" 200 "));
    for mut stream in silent.drain(..9) {
        assert_eq!(rest(&mut stream).await, "");
    }
}
