//! The daemon: a real process on real sockets, with the kubelet double.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use device_plugin::{KUBELET_SOCKET, Listener, Transport, UnixSockets};
use kubelet_double::{
    Faults, KubeletDouble, KubeletOptions, PodRequest, RegisterFault, ResourceView, StreamFault,
};
use tokio::time::{sleep, timeout};

use crate::harness::{outcome, program, recorded};
use crate::{reference, shutdown_request};

pub(crate) const DISPLAY: &str = "directx.microsoft.com/display";
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// The daemon on an inventory that a test may rewrite. It is killed when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    folder: tempfile::TempDir,
    /// What it has logged so far, if that is read.
    log: Arc<Mutex<String>>,
    log_reader: Option<JoinHandle<()>>,
}

impl Daemon {
    pub(crate) fn start(flags: &[&str]) -> Daemon {
        Daemon::start_with_stderr(flags, Stdio::piped()).with_log()
    }

    pub(crate) fn start_with_stderr(flags: &[&str], stderr: Stdio) -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("kubelet")).unwrap();
        Daemon::start_in(folder, flags, stderr)
    }

    /// Starts it in this folder, which has the folder `kubelet` and may have configuration files.
    pub(crate) fn start_in(folder: tempfile::TempDir, flags: &[&str], stderr: Stdio) -> Daemon {
        std::fs::copy(recorded("aws-t4-two.yaml"), folder.path().join("host.yaml")).unwrap();
        let mut command = program();
        shutdown_request::prepare(&mut command);
        let child = command
            .args(["serve", "--driver-model", "wddm", "--inventory"])
            .arg(folder.path().join("host.yaml"))
            .arg("--device-plugin-dir")
            .arg(folder.path().join("kubelet"))
            .args(flags)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        Daemon { child, folder, log: Arc::default(), log_reader: None }
    }

    /// Reads its log.
    pub(crate) fn with_log(mut self) -> Daemon {
        let stderr = self.child.stderr.take().unwrap();
        let log = Arc::clone(&self.log);
        self.log_reader = Some(std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                *log.lock().unwrap() += &(line.unwrap() + "\n");
            }
        }));
        self
    }

    pub(crate) fn kubelet(&self) -> KubeletDouble<UnixSockets> {
        KubeletDouble::start(UnixSockets, self.directory(), KubeletOptions::default()).unwrap()
    }

    pub(crate) fn directory(&self) -> std::path::PathBuf {
        self.folder.path().join("kubelet")
    }

    /// Replaces the inventory atomically, by a rename.
    pub(crate) fn rewrite(&self, change: impl Fn(String) -> String) {
        let path = self.folder.path().join("host.yaml");
        let text = change(std::fs::read_to_string(&path).unwrap());
        std::fs::write(path.with_extension("new"), text).unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    }

    /// Waits until a line of the log contains `text`, and returns the line.
    pub(crate) fn wait_for_line(&self, text: &str) -> String {
        self.wait_for_lines(text, 1)
    }

    /// Waits until this many lines of the log contain `text`, and returns the last of them.
    pub(crate) fn wait_for_lines(&self, text: &str, count: usize) -> String {
        let started = Instant::now();
        loop {
            let log = self.log.lock().unwrap().clone();
            if let Some(line) = log.lines().filter(|line| line.contains(text)).nth(count - 1) {
                return line.to_owned();
            }
            assert!(started.elapsed() < LIMIT, "{count} of `{text}`: {log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to shut down and returns its exit status and log.
    pub(crate) fn terminate(mut self) -> (Option<i32>, String) {
        let status = self.stop();
        self.log_reader.take().unwrap().join().unwrap();
        (status, std::mem::take(&mut self.log.lock().unwrap()))
    }

    /// Asks it to shut down and returns its exit status.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        shutdown_request::send(&self.child);
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < LIMIT, "the daemon does not exit");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a successful test it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn until(
    kubelet: &KubeletDouble<UnixSockets>,
    what: &str,
    condition: impl Fn(&[ResourceView]) -> bool,
) {
    let wait = tokio::time::timeout(LIMIT, kubelet.wait_for(condition));
    assert!(wait.await.is_ok(), "{what}: {:?}", kubelet.resources());
}

pub(crate) fn display(views: &[ResourceView]) -> Option<(usize, usize)> {
    views.iter().find(|v| v.name == DISPLAY).map(|v| (v.capacity, v.allocatable))
}

fn sockets(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("wddm-")).count()
}

#[tokio::test]
async fn it_registers_follows_its_host_and_shuts_down() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let daemon = Daemon::start(&[]);
    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;

    let admission = kubelet.admit(PodRequest::single("one", DISPLAY, 1)).await;
    assert_eq!(admission.unwrap().mounts.len(), 17);

    // A device with a problem code is unhealthy until the code is cleared.
    daemon.rewrite(|text| text.replacen("problemCode: 0", "problemCode: 43", 1));
    until(&kubelet, "unhealthy", |v| display(v) == Some((2, 1))).await;
    daemon.rewrite(|text| text.replace("problemCode: 43", "problemCode: 0"));
    until(&kubelet, "healthy again", |v| display(v) == Some((2, 2))).await;

    // An invalid file changes nothing; the next valid one counts.
    daemon.rewrite(|text| text + "\nnonsense: true\n");
    daemon.wait_for_line("nonsense");
    assert_eq!(display(&kubelet.resources()), Some((2, 2)));
    daemon.rewrite(|text| {
        let text = text.replace("\nnonsense: true\n", "");
        let second = text.rfind("- luid").unwrap();
        text[..second].to_owned()
    });
    // The second device is missing: unhealthy for the grace period.
    until(&kubelet, "missing", |v| display(v) == Some((2, 1))).await;

    assert_eq!(sockets(&daemon.directory()), 1);
    let directory = daemon.directory();
    let (status, log) = daemon.terminate();
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("cannot read adapters; keeping the current devices"), "{log}");
    assert!(log.contains("nonsense"), "{log}");
    assert!(log.contains("shutting down"), "{log}");
    assert!(!directory.exists() || sockets(&directory) == 0);
}

#[test]
fn it_obeys_a_shutdown_request_at_its_first_log_line() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let mut daemon = Daemon::start(&[]);
    daemon.wait_for_line("configuration");
    assert_eq!(daemon.stop(), Some(0));
}

#[tokio::test]
async fn it_registers_again_after_every_kind_of_kubelet_restart() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let daemon = Daemon::start(&[]);
    let mut kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    for _ in 0..2 {
        kubelet.restart().await.unwrap();
        until(&kubelet, "registered after a restart", |v| display(v) == Some((2, 2))).await;
    }
    kubelet.kill();
    kubelet.start_again().unwrap();
    until(&kubelet, "registered after a crash", |v| display(v) == Some((2, 2))).await;
    kubelet.stop().await;
    // At once: the daemon creates sockets again in a directory that is being emptied.
    let removed = daemon.directory().with_extension("removed");
    std::fs::rename(daemon.directory(), &removed).unwrap();
    std::fs::remove_dir_all(removed).unwrap();
    kubelet.start_again().unwrap();
    until(&kubelet, "registered after the directory was replaced", |v| display(v) == Some((2, 2)))
        .await;
    let (status, log) = daemon.terminate();
    assert_eq!(status, Some(0), "{log}");
}

/// Kubelets that refuse, hang, end streams, restart and close connections, one after the other.
#[tokio::test]
async fn kubelets_that_misbehave_do_not_keep_it_from_the_next_one() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let daemon = Daemon::start(&[]);
    let mut kubelet = daemon.kubelet();
    let register = [
        RegisterFault::Refuse("no".to_owned()),
        RegisterFault::Refuse("no\n".repeat(100_000)),
        RegisterFault::RefuseAfterDial("no".to_owned()),
        RegisterFault::Hang,
    ];
    let stream =
        [StreamFault::DropAfter(Duration::ZERO), StreamFault::NeverRead, StreamFault::NeverOpen];
    let register = register.map(|register| Faults { register, ..Faults::default() });
    let stream = stream.map(|stream| Faults { stream, ..Faults::default() });
    for faults in register.into_iter().chain(stream) {
        kubelet.kill();
        kubelet.set_faults(faults);
        kubelet.start_again().unwrap();
        // The daemon meets a new kubelet within 0.3 seconds.
        sleep(Duration::from_millis(600)).await;
    }
    kubelet.set_faults(Faults::default());
    for _ in 0..20 {
        kubelet.restart().await.unwrap();
    }
    kubelet.stop().await;
    close_connections(&daemon.directory()).await;

    let kubelet = daemon.kubelet();
    until(&kubelet, "registered", |v| display(v) == Some((2, 2))).await;
    kubelet.admit(PodRequest::single("one", DISPLAY, 1)).await.unwrap();
    #[cfg(target_os = "linux")]
    assert!(peak_memory_kib(daemon.child.id()) < 128 * 1024);
    let (status, log) = daemon.terminate();
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("registration failed; retrying"), "{log}");
    assert!(log.len() < 64 * 1024, "{log}");
}

/// Listens as the kubelet, and closes the first connections at once.
async fn close_connections(directory: &Path) {
    let socket = directory.join(KUBELET_SOCKET);
    let _ = std::fs::remove_file(&socket);
    let mut listener = UnixSockets.bind(&socket).unwrap();
    for _ in 0..3 {
        drop(timeout(LIMIT, listener.accept()).await.unwrap().unwrap());
    }
    drop(listener);
    let _ = std::fs::remove_file(&socket);
}

#[cfg(target_os = "linux")]
fn peak_memory_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_missing_directory_is_named_with_what_to_do() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let daemon = Daemon::start_in(tempfile::tempdir().unwrap(), &[], Stdio::piped()).with_log();
    let line = daemon.wait_for_line("cannot listen on plugin socket");
    let missing = daemon.directory().display().to_string();
    assert!(line.contains(&format!("directory `{missing}` does not exist")), "{line}");
    assert!(line.contains("start kubelet, which creates its device plugin directory"), "{line}");
}

#[test]
fn it_does_not_start_with_an_invalid_inventory_or_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.yaml");
    std::fs::write(&bad, "nonsense: 1\n").unwrap();
    let t4 = recorded("aws-t4-two.yaml");
    let bad = bad.as_os_str();
    for arguments in [
        ["serve".as_ref(), "--inventory".as_ref(), bad, "--log-level".as_ref(), "error".as_ref()],
        ["serve".as_ref(), "--inventory".as_ref(), t4.as_os_str(), "--config".as_ref(), bad],
    ] {
        let (status, _, err) = outcome(&program().args(arguments).output().unwrap());
        assert_eq!(status, Some(2), "{err}");
        assert!(err.contains("bad.yaml:1"), "{err}");
    }
}

pub(crate) fn status(directory: &Path) -> (Option<i32>, serde_json::Value) {
    let mut command = program();
    command.args(["status", "--output", "json", "--device-plugin-dir"]).arg(directory);
    let (status, out, err) = outcome(&command.output().unwrap());
    (status, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
}

/// The answer to a liveness probe.
fn is_live(directory: &Path) -> bool {
    let mut command = program();
    command.args(["status", "--live", "--device-plugin-dir"]).arg(directory);
    command.output().unwrap().status.success()
}

/// Ready means that a kubelet received the device list, not that a process runs.
#[tokio::test]
async fn status_reports_whether_a_kubelet_received_the_list() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let daemon = Daemon::start(&[]);
    let directory = daemon.directory();
    let until = |ready: bool, expected: &'static str| {
        let directory = directory.clone();
        tokio::task::spawn_blocking(move || {
            let started = Instant::now();
            loop {
                let (status, report) = status(&directory);
                assert_eq!(status, Some(i32::from(report["ready"] != true)));
                if report["live"] == true {
                    assert!(is_live(&directory), "a daemon that waits is not restarted: {report}");
                }
                let state = report["resources"][0]["state"].as_str().unwrap_or_default();
                if report["ready"] == ready && state.contains(expected) {
                    return report;
                }
                assert!(started.elapsed() < LIMIT, "{report}");
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    let report = until(false, "waiting").await.unwrap();
    assert_eq!(report["resources"][0]["name"], DISPLAY);
    let mut kubelet = daemon.kubelet();
    let report = until(true, "received the device list").await.unwrap();
    reference::assert_described("status", &[report]);
    kubelet.stop().await;
    let report = until(false, "waiting").await.unwrap();
    let error = report["resources"][0]["lastError"].as_str().unwrap();
    assert!(!error.is_empty(), "{report}");
    daemon.terminate();
    let folder = tempfile::tempdir().unwrap();
    let (code, report) = status(folder.path());
    assert_eq!((code, &report["ready"]), (Some(1), &serde_json::json!(false)));
}

/// A process that listens and does not answer is reported as busy. The tests of `device_plugin`
/// show that many of them do not delay the answer.
#[tokio::test]
async fn status_distinguishes_a_busy_daemon_from_an_absent_one() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("wddm-0.sock");
    let silent = UnixSockets.bind(&socket).unwrap();
    let (code, report) = status(folder.path());
    let busy = serde_json::json!([socket.display().to_string()]);
    assert_eq!((code, &report["busySockets"]), (Some(1), &busy));
    assert!(!is_live(folder.path()), "a daemon that hangs is restarted");
    drop(silent);
    // A process that another test starts holds the listener until its `exec`.
    let started = Instant::now();
    while status(folder.path()).1["busySockets"] != serde_json::json!([]) {
        assert!(started.elapsed() < LIMIT, "busy");
    }
    assert_eq!(status(folder.path()).0, Some(1));
}
