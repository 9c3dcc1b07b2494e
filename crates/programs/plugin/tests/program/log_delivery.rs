//! The daemon while its log lines cannot be written, and its log file.

use std::fs::OpenOptions;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::process::{ChildStderr, Stdio};
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
    let admission = kubelet.admit(PodRequest::single("one", DISPLAY, 1)).await;
    assert!(admission.is_ok(), "{admission:?}");
    kubelet
}

/// A pipe without room for a line. Its reader gets these bytes before any line.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&vec![b' '; PIPE_BYTES]).unwrap();
    (reader, writer)
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
    let (mut reader, pipe) = full_pipe();
    let mut daemon = Daemon::start_with_stderr(&[], pipe.into());
    let _kubelet = check_that_it_serves(&daemon).await;
    assert_eq!(daemon.stop(), Some(0));
    let mut log = Vec::new();
    reader.read_to_end(&mut log).unwrap();
    assert_eq!(log.len(), PIPE_BYTES, "{}", String::from_utf8_lossy(&log));
}

#[tokio::test]
async fn the_lines_are_written_once_the_log_is_read_again() {
    let (reader, pipe) = full_pipe();
    let mut daemon = Daemon::start_with_stderr(&[], pipe.into());
    let _kubelet = check_that_it_serves(&daemon).await;
    let reader = std::thread::spawn(move || std::io::read_to_string(reader).unwrap());
    assert_eq!(daemon.stop(), Some(0));
    let log = reader.join().unwrap();
    // Lines from before and after the reader began to read.
    for line in ["registered with kubelet", "shutting down"] {
        assert!(log.contains(line), "{log}");
    }
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
