//! The Windows program and the kubelet's own device manager, built for Windows.
//!
//! `testing/kubernetes/devicemanager` contains the tests. Those that connect the two need `AF_UNIX`
//! sockets, which Wine 10 does not have. They run if the Wine in use has them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::host::Host;
use super::output::{output, stdout, text};
use super::paths::{root, windows_build, windows_path};

/// The test that needs no socket. Wine delivers no Ctrl-Break, so the plugin is killed.
const WITHOUT_SOCKETS: &str = "^TestPluginStopsWithoutAKubelet$/^killed$";

#[test]
#[ignore = "needs Wine and Go: cargo xtask test wine"]
fn the_kubelets_device_manager_drives_the_program() {
    let host = Host::take();
    let program = kubelet_program(&host.empty_folder("kubelet_suite"));
    let plugin = windows_path(&windows_build("directx-device-plugin.exe"));
    let mut tests = host.command(program);
    tests.current_dir(kubelet_suite()).env("DIRECTX_DEVICE_PLUGIN", plugin);
    tests.args(["-test.v", "-test.timeout=14m", "-test.run"]);
    if host.has_sockets() {
        tests.arg(".");
        for example in ["minimal", "health", "topology"] {
            let path = windows_path(&windows_build(&format!("examples/{example}.exe")));
            tests.env(format!("EXAMPLES_{}", example.to_uppercase()), path);
        }
    } else {
        tests.arg(WITHOUT_SOCKETS);
    }
    let result = output(&mut tests);
    let out = text(&[result.stdout, result.stderr].concat());
    assert!(result.status.success() && out.contains("--- PASS: "), "{out}");
}

/// The folder of the Go tests, which they must run in.
fn kubelet_suite() -> PathBuf {
    root().join("testing/kubernetes/devicemanager")
}

/// Builds the Go tests as a program for Windows.
fn kubelet_program(folder: &Path) -> PathBuf {
    let program = folder.join("kubelet-suite.exe");
    let mut go = Command::new("go");
    go.current_dir(kubelet_suite()).args(["test", "-c", "-vet=off", "-o"]).arg(&program).arg(".");
    stdout(go.env("GOOS", "windows").env("GOARCH", "amd64").env("CGO_ENABLED", "0"));
    program
}
