//! Well-behaved, slow and hostile clients over real connections.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http_endpoint::{Limits, ListenAddress, Page, Pages, Request, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(20);

/// A small page, and one that no socket buffer holds.
struct TestPages;

impl Pages for TestPages {
    async fn page(&self, request: Request) -> Option<Page> {
        match request.path.as_str() {
            "/small" => Some(Page::text(StatusCode::OK, request.accept)),
            "/large" => Some(Page::text(StatusCode::OK, "x".repeat(64 << 20))),
            _ => None,
        }
    }
}

fn start(limits: Limits) -> SocketAddr {
    let listener = "127.0.0.1:0".parse::<ListenAddress>().unwrap().bind().unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { serve(listener, Arc::new(TestPages), limits).await.map(drop) });
    address
}

/// Sends `bytes` and returns everything until the server closes the connection.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    rest(&mut stream).await
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is reset has ended, too.
    let _ = timeout(LIMIT, stream.read_to_end(&mut text)).await.expect("the connection stays open");
    String::from_utf8_lossy(&text).into_owned()
}

async fn get(address: SocketAddr, path: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: a/b\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes()).await
}

#[tokio::test]
async fn pages_are_served() {
    let address = start(Limits::default());
    let response = get(address, "/small?a=b").await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\na/b"), "{response}");
    assert!(get(address, "/nothing").await.starts_with("HTTP/1.1 404 "));
    let head = exchange(address, b"HEAD /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let head = head.await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn other_methods_and_bad_requests_are_refused() {
    let address = start(Limits::default());
    let post = exchange(address, b"POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    let post = post.await;
    assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
    assert!(post.contains("allow: GET, HEAD\r\n"), "{post}");
    assert!(exchange(address, b"\x16\x03\x01\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    let huge = format!("GET /small HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let huge = exchange(address, huge.as_bytes());
    assert!(!huge.await.contains(" 200 "));
    assert!(get(address, "/small").await.contains(" 200 "));
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_request_is_disconnected() {
    let limits = Limits { header_time: Duration::from_millis(50), ..Limits::default() };
    let address = start(limits);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /small HT").await.unwrap();
    assert!(!rest(&mut stream).await.contains(" 200 "));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let (use_time, linger) = (Duration::from_millis(100), Duration::from_millis(100));
    let address = start(Limits { use_time, linger, ..Limits::default() });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let read = rest(&mut stream).await.len();
    assert!(read < 64 << 20, "the server has sent all {read} bytes");
}

#[tokio::test]
async fn a_connection_is_used_for_several_requests_and_not_for_ever() {
    let address = start(Limits { use_time: Duration::from_secs(1), ..Limits::default() });
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(b"GET /small HTTP/1.1\r\nHost: x\r\nAccept: zz\r\n\r\n").await.unwrap();
        let mut text = String::new();
        while !text.ends_with("\r\n\r\nzz") {
            let mut byte = [0];
            timeout(LIMIT, stream.read_exact(&mut byte)).await.unwrap().unwrap();
            text.push(char::from(byte[0]));
        }
    }
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn the_oldest_connection_makes_room_for_a_new_one() {
    let address = start(Limits { connections: 2, ..Limits::default() });
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(get(address, "/small").await.contains(" 200 "));
    for mut stream in silent.drain(..18) {
        assert_eq!(rest(&mut stream).await, "");
    }
}
