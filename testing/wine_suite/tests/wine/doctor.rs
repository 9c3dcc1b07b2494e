//! `doctor` on a host that has devices but, being Wine, no container runtime.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::compare::compare;
use super::host::Host;
use super::inventories::check_host;
use super::output::{native, output, stdout, text};
use super::paths::{fixture, windows_build, windows_path};

/// The subjects on which an inventory has as much information as the host made from it.
const COMMON_SUBJECTS: [&str; 6] =
    ["windows", "hcs", "configuration", "runtime-files", "resources", "visibility"];

/// The report of the host equals the report of its inventory, subject by subject.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn the_report_equals_that_of_the_inventory() {
    let host = Host::take();
    for name in [
        "aws-t4-two",
        "made-up-two-vendors",
        "made-up-npu-beside-gpu",
        "made-up-wddm-and-mcdm",
        "made-up-devices-without-adapter",
        "made-up-remote-session",
    ] {
        let inventory = fixture(name);
        host.set(&inventory);
        let found = report(&host);
        let expected = text(&output(&mut native(PLUGIN, &["doctor"], &inventory)).stdout);
        for subject in COMMON_SUBJECTS {
            compare(name, &about(&expected, subject), &about(&found, subject));
        }
        // An inventory does not record why something could not be read.
        let devices = about(&found, "device");
        let devices = devices.lines().filter(|line| !line.contains("  adapter with LUID "));
        let devices: String = devices.flat_map(|line| [line, "\n"]).collect();
        compare(name, &about(&expected, "device"), &devices);
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn what_wine_lacks_is_reported() {
    let host = Host::of(&fixture("aws-t4-two"));
    let found = report(&host);
    for (subject, verdict, text) in [
        ("containerd", "problem", "no containerd found in the service `containerd`"),
        ("kubelet", "not checked", "no kubelet found in the service `kubelet`"),
        ("kubelet-directory", "problem", r"C:\var\lib\kubelet\device-plugins does not exist"),
        ("nvml", "warning", "nvml.dll is not where"),
    ] {
        expect_finding(&found, subject, verdict, text);
    }
    if !host.has_sockets() {
        expect_finding(&found, "kubelet-socket", "problem", "no AF_UNIX sockets");
    }
}

/// The functions and structures of NVML report the same as the inventory, which the double follows.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn the_licenses_that_nvml_reports_are_those_of_the_inventory() {
    let inventory = fixture("made-up-vgpu");
    let host = Host::of(&inventory);
    host.install_nvml(&[]);
    let expected = text(&output(&mut native(PLUGIN, &["doctor"], &inventory)).stdout);
    let expected = about(&expected, "license");
    assert!(expected.contains("the driver has no license for NVIDIA A10-24Q"), "{expected}");
    compare("made-up-vgpu", &expected, &about(&report(&host), "license"));
    for arguments in [&["record"][..], &["devices", "--output", "json"]] {
        check_host(&host, arguments, &inventory);
    }
}

/// The licenses that `devices` prints, and its warnings.
fn licenses(command: &mut Command) -> (Vec<String>, String) {
    let output = output(command);
    let lines = text(&output.stdout);
    let lines = lines.lines().filter_map(|line| line.trim().strip_prefix("License"));
    (lines.map(|line| line.trim().to_owned()).collect(), text(&output.stderr))
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn an_earlier_nvml_reports_less() {
    const NEWEST: &str = "nvmlDeviceGetGridLicensableFeatures_v4";
    const EARLIER: &str = "nvmlDeviceGetGridLicensableFeatures_v3";
    let host = Host::of(&fixture("made-up-vgpu"));
    for (missing, expected) in [
        (&[][..], &["licensed until 2026-12-01T10:00:00Z", "unlicensed"][..]),
        (&[NEWEST], &["licensed", "unlicensed"]),
        (&[NEWEST, EARLIER], &[]),
        (&["nvmlDeviceGetPciInfo_v3"], &[]),
    ] {
        host.install_nvml(missing);
        let (found, warnings) = licenses(&mut host.plugin(&["devices"]));
        assert_eq!(found, expected, "{missing:?}");
        assert!(!warnings.contains("warning:"), "{warnings}");
    }
}

/// NVML runs in a child process, which alone has the fault.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_faulty_nvml_reports_what_it_can_and_no_program_fails() {
    let both = ["licensed until 2026-12-01T10:00:00Z", "unlicensed"];
    let host = Host::of(&fixture("made-up-vgpu"));
    host.install_nvml(&[]);
    for (fault, expected, failure) in [
        ("needs-flags", &both[..], None),
        ("prints", &both, None),
        ("leaks", &both, None),
        ("loses-first-gpu", &both[1..], None),
        ("crashes", &[], Some("ended without an answer: exit code: 0xc0000005")),
        ("hangs", &[], Some("NVML has not answered within 20 s")),
    ] {
        host.set_nvml_fault(fault);
        let (found, warnings) = licenses(&mut host.plugin(&["devices"]));
        assert_eq!(found, expected, "{fault}");
        let failures = warnings.lines().filter(|line| {
            line.contains("the license of its driver is not known: ")
                && failure.is_some_and(|failure| line.contains(failure))
        });
        let count = if failure.is_some() { 2 } else { 0 };
        assert_eq!(failures.count(), count, "{fault}: {warnings}");
        assert_eq!(warnings.matches("warning:").count(), count, "{fault}: {warnings}");
    }
}

/// Each program of the daemon is the child that asks NVML.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn every_program_of_the_daemon_asks_nvml_before_it_reads_arguments() {
    let host = Host::of(&fixture("made-up-vgpu"));
    for program in ["directx-device-plugin", "device-plugin-wddm", "device-plugin-mcdm"] {
        let answer = |folder: &str| {
            let mut child = host.command(windows_build(&format!("{program}.exe")));
            // A variable with which the program would not start.
            child.env("DIRECTX_DEVICE_PLUGIN_LOG_LEVEL", "bad").args(["--report-nvml", folder]);
            stdout(&mut child).trim().to_owned()
        };
        host.install_nvml(&[]);
        // A library is loaded only from a driver store or from System32.
        let found = answer(r"C:\windows");
        assert!(found.starts_with(r#"nvml-answer:{"Ok":[{"address":{"#), "{found}");
        assert_eq!(found.matches("GPU-5900").count(), 2, "{found}");
        host.install(&["dxcore.dll"]);
        let absent = answer("");
        assert!(absent.starts_with(r#"nvml-answer:{"Err":""#), "{absent}");
    }
}

/// The report of a host, with and without a compute service, equals the report of the inventory
/// that `record` writes on it, in every subject about the software of the node.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_recorded_node_is_judged_like_the_node() {
    let host = Host::of(&fixture("aws-t4-two"));
    for libraries in [&["dxcore.dll", "vmcompute.dll"][..], &["dxcore.dll"]] {
        host.install(libraries);
        let recorded = stdout(&mut host.plugin(&["record"]));
        assert!(recorded.contains("\nnode:\n"), "no software of the node in {recorded}");
        let inventory = host.write("recorded-node.yaml", recorded);
        let found = text(&output(&mut native(PLUGIN, &["doctor"], &inventory)).stdout);
        let expected = report(&host);
        for subject in ["hcs", "containerd", "kubelet", "nvml"] {
            let lines = about(&expected, subject);
            assert!(!lines.is_empty(), "doctor does not report {subject}");
            compare("recorded node", &lines, &about(&found, subject));
        }
    }
}

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn no_dxcore_and_no_compute_service() {
    let host = Host::of(&fixture("aws-t4-two"));
    host.install(&[]);
    let found = report(&host);
    expect_finding(&found, "hcs", "problem", "no Host Compute Service");
    // Wine's graphics kernel does not report the kind of its adapter.
    expect_finding(&found, "device", "problem", "Windows lists no DirectX device");
    expect_finding(&found, "resources", "problem", "no device of this host");
}

/// containerd is a service itself, and the kubelet runs in a service wrapper. Both are our own
/// program under another name, whose version is too old for either.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn programs_are_found_through_their_services() {
    let host = Host::of(&fixture("aws-t4-two"));
    let folder = host.empty_folder("odd place");
    let program = |name: &str| {
        let path = folder.join(name);
        fs::copy(windows_build("directx-device-plugin.exe"), &path).unwrap();
        windows_path(&path)
    };
    let containerd = program("containerd.exe");
    let kubelet = program("kubelet.exe");
    let key = |name: &str| format!(r"HKLM\SYSTEM\CurrentControlSet\Services\{name}");
    let registry = |words: &[&str]| stdout(host.command("reg").args(words));
    let add = |key: &str, value: &str, data: &str| {
        registry(&["add", key, "/v", value, "/d", data, "/f"]);
    };
    add(&key("containerd"), "ImagePath", &format!("\"{containerd}\" --run-service"));
    add(&key("kubelet"), "ImagePath", r"C:\k\nssm.exe");
    add(&key(r"kubelet\Parameters"), "Application", &kubelet);
    let found = output(&mut host.plugin(&["doctor"]));
    for name in ["containerd", "kubelet"] {
        registry(&["delete", &key(name), "/f"]);
    }
    let found = text(&found.stdout);
    let version = env!("CARGO_PKG_VERSION");
    for (name, path) in [("containerd", containerd), ("kubelet", kubelet)] {
        expect_finding(&found, name, "problem", &format!("{name} {version} ({path})"));
    }
}

/// Wine makes access rights from those of Linux.
#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn a_default_configuration_that_others_may_change_is_ignored() {
    let host = Host::of(&fixture("aws-t4-two"));
    let folder = host.drive_c().join("etc/directx-device-plugins");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("wddm.yaml"), "multitenancy: 3").unwrap();
    let reports = [0o755, 0o777].map(|mode| {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        report(&host)
    });
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    expect_finding(&reports[0], "configuration", "ok", "multitenancy = 3");
    let ignored = r"wddm.yaml` is ignored: Everyone (S-1-1-0) may change `C:\etc\directx-device-plugins`; run `icacls";
    expect_finding(&reports[1], "configuration", "ok", "every value is a default");
    assert!(about(&reports[1], "configuration").contains(ignored), "{}", reports[1]);
}

const PLUGIN: &str = "directx-device-plugin";

/// The report of the host. The exit code is 1, because Wine always has problems.
fn report(host: &Host) -> String {
    let result = output(&mut host.plugin(&["doctor"]));
    assert_eq!(result.status.code(), Some(1), "{}", text(&result.stderr));
    text(&result.stdout)
}

/// The lines about a subject without their hints: the verdict comes first, then the subject. Of a
/// line about several that were not checked, only the reason.
fn about(report: &str, subject: &str) -> String {
    let mut lines = String::new();
    for line in report.lines().filter(|line| !line.starts_with(' ')) {
        if let Some((subjects, reason)) =
            line.strip_prefix("not checked  ").and_then(|rest| rest.split_once(": "))
        {
            if subjects.split(", ").any(|one| one == subject) {
                lines.extend(["not checked  ", subject, ": ", reason, "\n"]);
            }
            continue;
        }
        let rest = line.get("not checked  ".len()..).unwrap_or_default();
        if rest.split_whitespace().next() == Some(subject) {
            lines.extend([line, "\n"]);
        }
    }
    lines
}

#[track_caller]
fn expect_finding(report: &str, subject: &str, verdict: &str, text: &str) {
    let lines = about(report, subject);
    let matches = lines.starts_with(&format!("{verdict:<11}  ")) && lines.contains(text);
    assert!(matches, "expected `{verdict} {subject} … {text}`, found\n{lines}");
}
