//! `doctor` on a host that has devices but, being Wine, no container runtime.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::device_manager::has_sockets;
use super::programs::{Programs, compare, native, output, stdout};
use super::test_case::TestCase;
use crate::wine::windows_path;
use crate::workspace;

/// The cases, by name.
pub(super) fn tests() -> Vec<TestCase> {
    let mut tests: Vec<TestCase> = ["aws-t4-two", "made-up-two-vendors", "made-up-npu-beside-gpu"]
        .map(|name| {
            TestCase::new(format!("doctor: {name}"), move |p| host_matches_inventory(p, name))
        })
        .into();
    tests.push(TestCase::new("doctor: reports what Wine lacks", what_wine_lacks));
    tests.push(TestCase::new("doctor: judges a recorded node like the node", |programs| {
        recorded_node(programs, &["dxcore.dll", "computecore.dll"])
    }));
    tests.push(TestCase::new(
        "doctor: judges a recorded node without compute service",
        |programs| recorded_node(programs, &["dxcore.dll"]),
    ));
    tests.push(TestCase::new("doctor: no dxcore.dll and no compute service", bare_host));
    tests
        .push(TestCase::new("doctor: finds programs through their services", programs_of_services));
    tests
}

/// The subjects on which an inventory has as much information as the host made from it.
const COMMON_SUBJECTS: [&str; 6] =
    ["windows", "hcs", "configuration", "runtime-files", "resources", "visibility"];

/// The report of the host equals the report of its inventory, subject by subject.
fn host_matches_inventory(programs: &Programs, name: &str) -> Result<()> {
    let inventory = fixture(name);
    programs.host.set(&inventory)?;
    let found = report(programs)?;
    let expected = text(&output(&mut native(&["doctor"], &inventory))?.stdout);
    for subject in COMMON_SUBJECTS {
        compare(&about(&expected, subject), &about(&found, subject))?;
    }
    // An inventory does not record why something could not be read.
    let devices = about(&found, "device");
    let devices = devices.lines().filter(|line| !line.contains("  adapter with LUID "));
    compare(&about(&expected, "device"), &devices.flat_map(|line| [line, "\n"]).collect::<String>())
}

fn what_wine_lacks(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture("aws-t4-two"))?;
    let found = report(programs)?;
    for (subject, verdict, text) in [
        ("containerd", "problem", "no containerd found in the service `containerd`"),
        ("kubelet", "not checked", "no kubelet found in the service `kubelet`"),
        ("kubelet-directory", "problem", r"C:\var\lib\kubelet\device-plugins does not exist"),
        ("nvml", "warning", "nvml.dll is not where"),
    ] {
        expect_finding(&found, subject, verdict, text)?;
    }
    if !has_sockets(programs)? {
        expect_finding(&found, "kubelet-socket", "problem", "no AF_UNIX sockets")?;
    }
    Ok(())
}

/// The report of a host with these libraries equals the report of the inventory that `record`
/// writes on it, in every subject about the software of the node.
fn recorded_node(programs: &Programs, libraries: &[&str]) -> Result<()> {
    programs.host.set(&fixture("aws-t4-two"))?;
    programs.host.install(libraries)?;
    let inventory = workspace::target_dir().join("wine").join("recorded-node.yaml");
    let recorded = stdout(&mut programs.windows(&["record"]))?;
    ensure!(recorded.contains("\nnode:\n"), "no software of the node in {recorded}");
    fs::write(&inventory, recorded)?;
    let found = text(&output(&mut native(&["doctor"], &inventory))?.stdout);
    let expected = report(programs)?;
    for subject in ["hcs", "containerd", "kubelet", "nvml"] {
        let lines = about(&expected, subject);
        ensure!(!lines.is_empty(), "doctor does not report {subject}");
        compare(&lines, &about(&found, subject))?;
    }
    Ok(())
}

fn bare_host(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture("aws-t4-two"))?;
    programs.host.install(&[])?;
    let found = report(programs)?;
    expect_finding(&found, "hcs", "problem", "no Host Compute Service")?;
    // Wine's graphics kernel does not report of which kind its adapter is.
    expect_finding(&found, "device", "problem", "Windows lists no DirectX device")?;
    expect_finding(&found, "resources", "problem", "no device of this host")
}

/// containerd is a service itself, and the kubelet runs in a service wrapper. Both are our
/// own program under another name, whose version is too old for either.
fn programs_of_services(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture("aws-t4-two"))?;
    let folder = workspace::target_dir().join("wine").join("odd place");
    fs::create_dir_all(&folder)?;
    let program = |name: &str| -> Result<String> {
        let path = folder.join(name);
        fs::copy(workspace::windows_build("directx-device-plugin.exe"), &path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(windows_path(&path))
    };
    let (containerd, kubelet) = (program("containerd.exe")?, program("kubelet.exe")?);
    let key = |name: &str| format!(r"HKLM\SYSTEM\CurrentControlSet\Services\{name}");
    let add = |key: &str, value: &str, data: &str| {
        registry(programs, &["add", key, "/v", value, "/d", data, "/f"])
    };
    add(&key("containerd"), "ImagePath", &format!("\"{containerd}\" --run-service"))?;
    add(&key("kubelet"), "ImagePath", r"C:\k\nssm.exe")?;
    add(&key(r"kubelet\Parameters"), "Application", &kubelet)?;
    let found = report(programs);
    for name in ["containerd", "kubelet"] {
        registry(programs, &["delete", &key(name), "/f"])?;
    }
    let found = found?;
    let version = env!("CARGO_PKG_VERSION");
    expect_finding(
        &found,
        "containerd",
        "problem",
        &format!("containerd {version} ({containerd})"),
    )?;
    expect_finding(&found, "kubelet", "problem", &format!("kubelet {version} ({kubelet})"))
}

/// Runs `reg.exe`.
fn registry(programs: &Programs, words: &[&str]) -> Result<()> {
    let result = output(programs.host.command(Path::new("reg")).args(words))?;
    ensure!(result.status.success(), "reg {words:?} failed: {}", text(&result.stdout));
    Ok(())
}

fn fixture(name: &str) -> PathBuf {
    workspace::root().join("fixtures/inventories").join(format!("{name}.yaml"))
}

/// The report of the host. The exit code is 1, because Wine always has problems.
fn report(programs: &Programs) -> Result<String> {
    let result = output(&mut programs.windows(&["doctor"]))?;
    let (status, log) = (result.status, text(&result.stderr));
    ensure!(status.code() == Some(1), "doctor exited with {status}: {log}");
    Ok(text(&result.stdout))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}

/// The lines about a subject without their hints: the verdict comes first, then the subject.
fn about(report: &str, subject: &str) -> String {
    let is_about = |line: &&str| {
        let rest = line.get("not checked  ".len()..).unwrap_or_default();
        !line.starts_with(' ') && rest.split_whitespace().next() == Some(subject)
    };
    report.lines().filter(is_about).flat_map(|line| [line, "\n"]).collect()
}

fn expect_finding(report: &str, subject: &str, verdict: &str, text: &str) -> Result<()> {
    let lines = about(report, subject);
    let matches = lines.starts_with(&format!("{verdict:<11}  ")) && lines.contains(text);
    ensure!(matches, "expected `{verdict} {subject} … {text}`, found\n{lines}");
    Ok(())
}
