//! The doctor on a host that has devices and, being Wine, nothing to run containers with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::Test;
use super::programs::{DEADLINE, Programs, here, output, same};
use crate::wine::windows_path;
use crate::workspace;

/// The cases, by name.
pub(super) fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = ["aws-t4-two", "made-up-two-vendors", "made-up-npu-beside-gpu"]
        .map(|name| Test::new(format!("doctor: {name}"), move |p| same_as_here(p, name)))
        .into();
    tests.push(Test::new("doctor: what Wine lacks", what_wine_lacks));
    tests.push(Test::new("doctor: without dxcore.dll and compute service", bare_host));
    tests.push(Test::new("doctor: finds programs by their services", by_service));
    tests
}

/// What an inventory tells as well as the host that was made of it.
const TOLD_BY_BOTH: [&str; 6] =
    ["windows", "hcs", "configuration", "runtime-files", "resources", "visibility"];

/// What this host should be told, by subject; the dates are those of the bed.
fn same_as_here(programs: &Programs, name: &str) -> Result<()> {
    let inventory = fixture(name);
    programs.bed.set(&inventory)?;
    let found = report(programs)?;
    let expected = text(&output(&mut here(&["doctor"], &inventory), DEADLINE)?.stdout);
    for subject in TOLD_BY_BOTH {
        same(&about(&expected, subject), &about(&found, subject))?;
    }
    let dated = about(&expected, "device")
        .replace("driver version and date not known", "driver of 2023-02-14, version not known")
        .replace(", date not known", " of 2023-02-14");
    // An inventory does not tell why something could not be read.
    let devices = about(&found, "device");
    let devices = devices.lines().filter(|line| !line.contains("  adapter with LUID "));
    same(&dated, &devices.flat_map(|line| [line, "\n"]).collect::<String>())
}

fn what_wine_lacks(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture("aws-t4-two"))?;
    let found = report(programs)?;
    for (subject, verdict, says) in [
        ("containerd", "problem", "no containerd found in the service `containerd`"),
        ("kubelet", "not checked", "no kubelet found in the service `kubelet`"),
        ("kubelet-directory", "problem", r"C:\var\lib\kubelet\device-plugins does not exist"),
        ("kubelet-socket", "problem", "no AF_UNIX sockets"),
        ("nvml", "warning", "nvml.dll is not where"),
    ] {
        tells(&found, subject, verdict, says)?;
    }
    Ok(())
}

fn bare_host(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture("aws-t4-two"))?;
    programs.bed.install(&[])?;
    let found = report(programs)?;
    tells(&found, "hcs", "problem", "no Host Compute Service")?;
    tells(&found, "device", "problem", "dxcore.dll")?;
    for subject in ["runtime-files", "resources", "visibility", "nvml"] {
        tells(&found, subject, "not checked", "could not be read")?;
    }
    Ok(())
}

/// containerd as a service of its own, the kubelet under a wrapper. Both are this
/// project's program under another name, which has too old a version for either.
fn by_service(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture("aws-t4-two"))?;
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
    tells(&found, "containerd", "problem", &format!("containerd {version} ({containerd})"))?;
    tells(&found, "kubelet", "problem", &format!("kubelet {version} ({kubelet})"))
}

/// Runs Windows' own program for the registry.
fn registry(programs: &Programs, words: &[&str]) -> Result<()> {
    let result = output(programs.bed.command(Path::new("reg")).args(words), DEADLINE)?;
    ensure!(result.status.success(), "reg {words:?} says {}", text(&result.stdout));
    Ok(())
}

fn fixture(name: &str) -> PathBuf {
    workspace::root().join("fixtures/inventories").join(format!("{name}.yaml"))
}

/// The report of the host. It ends with 1: there are always problems here.
fn report(programs: &Programs) -> Result<String> {
    let result = output(&mut programs.windows(&["doctor"]), DEADLINE)?;
    let (status, log) = (result.status, text(&result.stderr));
    ensure!(status.code() == Some(1), "doctor ended with {status}: {log}");
    Ok(text(&result.stdout))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}

/// The lines about a subject, advice left out: the verdict comes first, then the subject.
fn about(report: &str, subject: &str) -> String {
    let is_about = |line: &&str| {
        let rest = line.get("not checked  ".len()..).unwrap_or_default();
        !line.starts_with(' ') && rest.split_whitespace().next() == Some(subject)
    };
    report.lines().filter(is_about).flat_map(|line| [line, "\n"]).collect()
}

fn tells(report: &str, subject: &str, verdict: &str, says: &str) -> Result<()> {
    let lines = about(report, subject);
    let told = lines.starts_with(&format!("{verdict:<11}  ")) && lines.contains(says);
    ensure!(told, "about {subject} it should tell `{verdict} … {says}`, and says\n{lines}");
    Ok(())
}
