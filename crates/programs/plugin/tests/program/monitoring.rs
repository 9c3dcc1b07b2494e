//! `--listen`: metrics and probes of a real daemon.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use kubelet_double::PodRequest;

use crate::daemon::{DISPLAY, Daemon, LIMIT, display, until};
use crate::harness::{outcome, program};

/// An endpoint of pod resources that does not exist.
const NO_ENDPOINT: &str =
    if cfg!(windows) { r"\\.\pipe\no-kubelet" } else { "/nowhere/kubelet.sock" };

/// The status and the body of a page.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// The address that the daemon logs.
pub(crate) fn address(daemon: &Daemon) -> SocketAddr {
    let line = daemon.wait_for_line("serving /metrics");
    let (_, address) = line.split_once("address=").unwrap();
    address.trim().parse().unwrap()
}

/// Waits until a page has this status and contains `part`.
pub(crate) fn until_page(address: SocketAddr, path: &str, status: u16, part: &str) -> String {
    let began = Instant::now();
    loop {
        let (found, text) = get(address, path);
        if found == status && text.contains(part) {
            return text;
        }
        assert!(began.elapsed() < LIMIT, "{path}: {found} {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
pub(crate) fn assert_has(text: &str, series: &str) {
    assert!(text.lines().any(|line| line == series), "no `{series}` in:\n{text}");
}

#[tokio::test]
async fn probes_and_metrics_follow_the_kubelet() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let daemon = Daemon::start(&["--listen", "127.0.0.1:0"]);
    let address = address(&daemon);
    assert_eq!(until_page(address, "/healthz", 200, ""), "ok\n");
    let text = until_page(address, "/readyz", 503, "waiting for the kubelet");
    assert!(text.starts_with("not ready\n"), "{text}");
    let (status, text) = get(address, "/");
    assert_eq!((status, text.matches("<a href=").count()), (200, 3), "{text}");
    for link in text.split("href=\"").skip(1) {
        let path = format!("/{}", link.split('"').next().unwrap());
        assert!(get(address, &path).0 != 404, "{path}");
    }
    assert_eq!(get(address, "/metric").0, 404);

    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    assert!(kubelet.admit(PodRequest::single("one", DISPLAY, 1)).await.is_ok());
    let text = until_page(address, "/readyz", 200, "");
    assert!(text.starts_with("ready\n"), "{text}");
    let (status, text) = get(address, "/metrics");
    assert_eq!(status, 200);
    let resource = format!("resource=\"{DISPLAY}\"");
    assert_has(&text, &format!("directx_device_plugin_allocations_total{{{resource}}} 1"));
    assert_has(&text, &format!("directx_device_plugin_resource_ready{{{resource}}} 1.0"));
    // A kubelet that starts deletes the sockets, so the cause may be that one.
    let cause = format!("directx_device_plugin_registrations_total{{{resource},cause=");
    let is_registration = |line: &str| line.starts_with(&cause) && !line.ends_with(" 0");
    assert!(text.lines().any(is_registration), "{text}");
    assert_has(&text, "directx_device_plugin_discovery_duration_seconds_count 1");
    assert_eq!(text.matches("\ndirectx_device_healthy{").count(), 2, "{text}");
}

#[tokio::test]
async fn devices_are_served_while_the_port_is_in_use() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    // No other program takes a port of this address meanwhile.
    let taken = TcpListener::bind("127.9.4.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mut daemon = Daemon::start(&["--listen", &address.to_string()]);
    let kubelet = daemon.kubelet();
    let line = daemon.wait_for_line("cannot listen for metrics and probes");
    assert!(line.contains(&address.to_string()) && line.contains("hint="), "{line}");
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    drop(taken);
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(began.elapsed() < LIMIT, "the daemon does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    until_page(address, "/healthz", 200, "ok");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn an_address_that_is_none_is_wrong_usage() {
    let output = program().args(["serve", "--listen", "localhost:9400"]).output().unwrap();
    let (status, _, err) = outcome(&output);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("localhost:9400") && err.contains("such as `127.0.0.1:9400`"), "{err}");
}

/// The first line of a log file that contains `text`.
fn logged(log: &Path, text: &str) -> String {
    let began = Instant::now();
    loop {
        let lines = std::fs::read_to_string(log).unwrap_or_default();
        if let Some(line) =
            lines.split_inclusive('\n').find(|l| l.contains(text) && l.ends_with('\n'))
        {
            return line.trim_end().to_owned();
        }
        assert!(began.elapsed() < LIMIT, "no `{text}` in:\n{lines}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Without the kubelet's pods, metrics lack pods, and nothing else.
#[tokio::test]
async fn a_missing_endpoint_of_pods_is_counted_and_reported() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let daemon = Daemon::start(&[
        "--listen",
        "127.0.0.1:0",
        "--pod-resources",
        NO_ENDPOINT,
        "--log-file",
        log.to_str().unwrap(),
    ]);
    let line = logged(&log, "serving /metrics");
    let address = line.split_once("address=").unwrap().1.parse().unwrap();
    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    let (status, text) = get(address, "/metrics");
    assert_eq!(status, 200);
    let line = logged(&log, "pod attribution is unavailable");
    assert!(line.contains("INFO") && line.contains("hint="), "{line}");
    assert!(line.contains(&format!("`{NO_ENDPOINT}` does not exist")), "{line}");
    let labels = "source=\"pod_resources\",reason=\"missing\"";
    assert_has(&text, &format!("directx_device_plugin_reading_failures_total{{{labels}}} 1"));
}
