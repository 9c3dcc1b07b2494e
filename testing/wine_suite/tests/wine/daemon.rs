//! The daemon on a host that changes. Wine has no `AF_UNIX`, so the daemon cannot reach a kubelet.
//! The tests watch what it logs about its device set.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::host::Host;
use super::paths::{fixture, windows_build};

/// The limit for hangs: longer than the daemon takes to notice any change on a slow machine.
const LIMIT: Duration = Duration::from_mins(3);

const FIRST: &str = "7048070";
const SECOND: &str = "7098126";

/// Inventories with the first adapter, with both, and with both after a driver upgrade of the
/// second.
struct Inventories {
    first: PathBuf,
    both: PathBuf,
    upgraded: PathBuf,
}

impl Inventories {
    fn write(host: &Host) -> Inventories {
        let text = fs::read_to_string(fixture("aws-t4-two")).unwrap();
        let end = text.find("\n- luid: 7098126").expect("the fixture has the second adapter");
        Inventories {
            first: host.write("first.yaml", &text[..=end]),
            both: host.write("both.yaml", &text),
            upgraded: host.write("upgraded.yaml", text.replace(SECOND, "8000001")),
        }
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn arrival_removal_and_return_of_a_device() {
    let host = Host::take();
    let inventories = Inventories::write(&host);
    host.set(&inventories.first);
    let mut daemon = Daemon::serve(&host);
    daemon.expect_line(&["device is healthy", FIRST]);
    host.set(&inventories.both);
    daemon.expect_line(&["device is healthy", SECOND]);
    host.set(&inventories.first);
    daemon.expect_line(&["device is unhealthy", "1&E0"]);
    host.set(&inventories.upgraded);
    daemon.expect_line(&["device is healthy", "1&E0", "8000001"]);
    daemon.expect_running();
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_burst_of_changes() {
    let host = Host::take();
    let inventories = Inventories::write(&host);
    host.set(&inventories.both);
    let mut daemon = Daemon::serve(&host);
    daemon.expect_line(&["device is healthy", SECOND]);
    for _ in 0..20 {
        host.set_adapters(&inventories.first);
        host.set_adapters(&inventories.both);
    }
    host.set_adapters(&inventories.upgraded);
    host.set(&inventories.first);
    daemon.expect_line(&["device is unhealthy", "1&E0"]);
    host.set(&inventories.both);
    daemon.expect_line(&["device is healthy", SECOND]);
    daemon.expect_running();
}

/// hcsshim stops a `HostProcess` container in this way. The D3DKMT functions have loaded gdi32.dll
/// and user32.dll by then.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn stopped_as_containerd_does() {
    let host = Host::of(&fixture("aws-t4-two"));
    let mut daemon = Daemon::serve(&host);
    daemon.expect_line(&["starting"]);
    host.bed(&["send-shutdown", "directx-device-plugin.exe"]);
    daemon.expect_line(&["shutting down", "signal=\"shutdown\""]);
    assert!(daemon.child.wait().unwrap().success());
}

/// `made-up-vgpu` after the driver of the second GPU was started again, so that NVML is asked again.
fn with_restarted_driver(host: &Host) -> PathBuf {
    let text = fs::read_to_string(fixture("made-up-vgpu")).unwrap();
    host.write("restarted.yaml", text.replace("59002", "59003"))
}

/// What the daemon learns of NVML, it learns from a child: Windows would not remove a library that
/// the daemon has loaded.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_license_is_known_some_time_after_the_device_and_nvml_is_not_kept_loaded() {
    let host = Host::of(&fixture("made-up-vgpu"));
    host.install_nvml(&[]);
    for program in ["directx-device-plugin.exe", "device-plugin-wddm.exe"] {
        let mut command = host.lasting_command(windows_build(program));
        if program.starts_with("directx") {
            command.arg("serve");
        }
        let mut daemon = Daemon::start(&mut command);
        daemon.expect_line(&["device is healthy", "59001"]);
        daemon.expect_line(&["license of the driver", "licensed until 2026-12-01T10:00:00Z"]);
        host.remove_nvml();
        daemon.expect_running();
        drop(daemon);
        host.install_nvml(&[]);
    }
}

/// What was known before a failure is known after it, and the failure is over with NVML's fault.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_driver_whose_nvml_crashes_or_hangs_delays_no_device_and_ends_no_daemon() {
    let host = Host::of(&fixture("made-up-vgpu"));
    host.install_nvml(&[]);
    for (fault, failure) in [("crashes", "0xc0000005"), ("hangs", "not answered within 20 s")] {
        host.set(&fixture("made-up-vgpu"));
        host.set_nvml_fault(fault);
        let mut daemon = Daemon::serve(&host);
        daemon.expect_line(&["device is healthy", "59002"]);
        daemon.expect_line(&["NVML has failed", failure, "licenses are not checked", "nvidia-smi"]);
        host.set_nvml_fault("");
        host.set(&with_restarted_driver(&host));
        daemon.expect_line(&["license of the driver", "licensed until 2026-12-01T10:00:00Z"]);
        daemon.expect_running();
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn what_nvml_leaks_is_not_lost_to_the_daemon() {
    let host = Host::of(&fixture("made-up-vgpu"));
    host.install_nvml(&[]);
    host.set_nvml_fault("leaks");
    let mut daemon = Daemon::serve(&host);
    daemon.expect_line(&["license of the driver", "licensed until 2026-12-01T10:00:00Z"]);
    daemon.expect_running();
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // The double leaks 512 MiB.
    assert!(peak_kib < 400 << 10, "{peak_kib} KiB");
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_process_that_asks_nvml_ends_with_its_daemon() {
    let host = Host::of(&fixture("made-up-vgpu"));
    host.install_nvml(&[]);
    host.set_nvml_fault("hangs");
    let daemon = Daemon::serve(&host);
    wait_until(|| !host.processes_with("--report-nvml").is_empty());
    // It is killed.
    drop(daemon);
    wait_until(|| host.processes_with("--report-nvml").is_empty());
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "not in time");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A running daemon and the lines of its log. It is killed when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Daemon {
    fn serve(host: &Host) -> Daemon {
        Daemon::start(host.lasting_command(windows_build("directx-device-plugin.exe")).arg("serve"))
    }

    pub(crate) fn start(command: &mut Command) -> Daemon {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().expect("standard error is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Daemon { child, lines, seen: Vec::new() }
    }

    /// Waits for a log line that contains all of `words`.
    #[track_caller]
    pub(crate) fn expect_line(&mut self, words: &[&str]) {
        let end = Instant::now() + LIMIT;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            let found = words.iter().all(|word| line.contains(word));
            self.seen.push(line);
            if found {
                return;
            }
        }
        panic!("no log line contains {words:?}; the log is\n{}", self.seen.join("\n"))
    }

    #[track_caller]
    pub(crate) fn expect_running(&mut self) {
        let status = self.child.try_wait().unwrap();
        assert!(status.is_none(), "the daemon has exited; its log is\n{}", self.seen.join("\n"));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The call fails only if the daemon has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
