//! The daemon while its log lines cannot be written, and its log file.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{ChildStderr, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use device_plugin::UnixSockets;
use kubelet_double::{KubeletDouble, PodRequest};

use crate::daemon::{DISPLAY, Daemon, LIMIT, display, until};
use crate::harness::{outcome, program};

/// The capacity of a pipe on Linux (`pipe(7)`).
const PIPE_BYTES: usize = 64 * 1024;

/// Registers with a new kubelet, allocates, and registers again after a restart.
async fn check_that_it_serves(daemon: &Daemon) -> KubeletDouble<UnixSockets> {
    let mut kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    kubelet.restart().await.unwrap();
    until(&kubelet, "registered after a restart", |v| display(v) == Some((2, 2))).await;
    admit(&mut kubelet).await;
    kubelet
}

async fn admit(kubelet: &mut KubeletDouble<UnixSockets>) {
    let admission = kubelet.admit(PodRequest::single("one", DISPLAY, 1)).await;
    assert!(admission.is_ok(), "{admission:?}");
    kubelet.terminate_pod("one");
}

/// Makes the daemon log several times what a pipe holds.
async fn fill_the_pipe(kubelet: &mut KubeletDouble<UnixSockets>) {
    for _ in 0..40 {
        for _ in 0..10 {
            admit(kubelet).await;
        }
        kubelet.restart().await.unwrap();
        until(kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    }
}

fn stderr(daemon: &mut Daemon) -> ChildStderr {
    daemon.child.stderr.take().unwrap()
}

#[tokio::test]
async fn it_serves_and_exits_with_0_when_the_reader_of_the_log_is_closed() {
    let mut daemon = Daemon::start_with_stderr(&[], Stdio::piped());
    drop(stderr(&mut daemon));
    let _kubelet = check_that_it_serves(&daemon).await;
    assert_eq!(daemon.stop(), Some(0));
}

#[tokio::test]
async fn it_serves_and_exits_with_0_when_the_disk_of_the_log_is_full() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut daemon = Daemon::start_with_stderr(&["--log-level", "trace"], full.into());
    let _kubelet = check_that_it_serves(&daemon).await;
    assert_eq!(daemon.stop(), Some(0));
}

#[tokio::test]
async fn it_serves_and_exits_with_0_when_nothing_reads_the_log() {
    let mut daemon = Daemon::start_with_stderr(&["--log-level", "trace"], Stdio::piped());
    let mut stderr = stderr(&mut daemon);
    let mut kubelet = check_that_it_serves(&daemon).await;
    fill_the_pipe(&mut kubelet).await;
    assert_eq!(daemon.stop(), Some(0));
    let mut log = Vec::new();
    stderr.read_to_end(&mut log).unwrap();
    // Less than one line of room was left, so the pipe was full.
    assert!(log.len() > PIPE_BYTES - 4096, "{}", log.len());
}

#[tokio::test]
async fn the_last_lines_are_written_once_the_log_is_read_again() {
    let flags = ["--log-level", "trace", "--log-format", "json"];
    let mut daemon = Daemon::start_with_stderr(&flags, Stdio::piped());
    let stderr = stderr(&mut daemon);
    let mut kubelet = check_that_it_serves(&daemon).await;
    fill_the_pipe(&mut kubelet).await;
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut bytes = 0;
        for line in BufReader::new(stderr).lines() {
            let line = line.unwrap();
            bytes += line.len();
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            let _ = sender.send(line["message"].as_str().unwrap_or_default().to_owned());
        }
        bytes
    });
    // Until the queue is written; while it is full, new lines are dropped.
    while lines.recv_timeout(Duration::from_secs(1)).is_ok() {}
    assert_eq!(daemon.stop(), Some(0));
    let bytes = reader.join().unwrap();
    assert!(bytes > 2 * PIPE_BYTES, "{bytes}");
    assert!(lines.try_iter().any(|message| message == "shutting down"));
}

#[test]
fn a_failed_command_exits_when_the_reader_of_its_error_is_closed() {
    for arguments in [&["devices"][..], &["serve"]] {
        let mut command = program();
        command.args(arguments).args(["--inventory", "missing.yaml", "--log-level", "trace"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < LIMIT, "the command does not exit");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(child.wait().unwrap().code(), Some(2), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_log_file_has_every_line_and_why_the_daemon_failed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("new").join("plugin.log");
    let flags = ["--log-file", log.to_str().unwrap()];
    let mut daemon = Daemon::start_with_stderr(&flags, Stdio::piped());
    let mut stderr = stderr(&mut daemon);
    drop(check_that_it_serves(&daemon).await);
    assert_eq!(daemon.stop(), Some(0));
    let mut printed = String::new();
    stderr.read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("registered with kubelet") && text.contains("shutting down"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");

    let mut command = program();
    command.args(["serve", "--inventory", "missing.yaml"]).args(flags);
    let (status, _, err) = outcome(&command.output().unwrap());
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("missing.yaml"), "{err}");
    assert!(text.contains("the daemon failed error=") && text.contains("missing.yaml"), "{text}");
}

#[test]
fn a_log_file_that_cannot_be_opened_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["serve", "--log-file"]).arg(folder.path());
    let (status, _, err) = outcome(&command.output().unwrap());
    assert_eq!(status, Some(2), "{err}");
    let path = folder.path().display();
    assert!(err.contains(&format!("cannot open the log file `{path}`")), "{err}");
    assert!(err.contains("hint: "), "{err}");
}
