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

/// NVML is asked again after a minute. Nothing else reports that a license is lost.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_license_is_known_some_time_after_the_device_and_its_loss_within_a_minute() {
    let inventory = fixture("made-up-vgpu");
    let host = Host::of(&inventory);
    host.install_nvml(&[]);
    let mut daemon = Daemon::serve(&host);
    daemon.expect_line(&["device is healthy", "59001"]);
    daemon.expect_line(&["license of the driver", "licensed until 2026-12-01T10:00:00Z"]);
    let text = fs::read_to_string(&inventory).unwrap();
    let lost = "state: unlicensed\n";
    let text = text.replace("state: licensed\n      expires: 2026-12-01T10:00:00Z\n", lost);
    assert_eq!(text.matches(lost).count(), 2);
    host.set_adapters(&host.write("lost.yaml", text));
    daemon.expect_line(&["lost its license", "1E2B8A3"]);
    daemon.expect_running();
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_driver_whose_nvml_hangs_delays_no_device() {
    let host = Host::of(&fixture("made-up-vgpu"));
    host.install_nvml(&[]);
    let mut command = host.lasting_command(windows_build("directx-device-plugin.exe"));
    let mut daemon = Daemon::start(command.arg("serve").env("DXCORE_DOUBLE_NVML_HANGS", "1"));
    daemon.expect_line(&["device is healthy", "59002"]);
    daemon.expect_line(&["query has not been answered", "NVML", "licenses are not checked"]);
    daemon.expect_running();
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
