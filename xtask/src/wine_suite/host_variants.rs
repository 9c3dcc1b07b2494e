//! Hosts that no inventory can describe: older ones, faulty ones, and ones that change
//! between two calls.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::programs::{Programs, compare, native, output, stdout};
use super::round_trip::{check_host, compare_without_notes};
use super::test_case::TestCase;
use crate::workspace;

/// The tests, by name.
pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase::new("host: no dxcore.dll", without_dxcore),
        TestCase::new("host: inside a container", inside_a_container),
        TestCase::new("host: no branding library and no compute service", without_services),
        TestCase::new("host: compute service of older versions", older_service),
        TestCase::new("host: ignores newer attributes", |p| older_host(p, "ignored")),
        TestCase::new("host: rejects newer attributes", |p| older_host(p, "refused")),
        TestCase::new("adapter: removed after it was listed", |p| {
            one_adapter_skipped(p, "DXCORE_DOUBLE_GONE")
        }),
        TestCase::new("adapter: unreadable", |p| one_adapter_skipped(p, "DXCORE_DOUBLE_FAILING")),
        TestCase::new("adapter: driver update in progress", |p| {
            one_adapter_skipped(p, "DXCORE_DOUBLE_UPDATING")
        }),
        TestCase::new("driver key: missing", missing_driver_key),
        TestCase::new("driver key: one value of the wrong type", wrong_type),
        TestCase::new("inventory: recorded, then used", recorded_then_used),
        TestCase::new("simulate: as on this machine", simulate),
    ]
}

const T4: &str = "fixtures/inventories/aws-t4-two.yaml";
const FIRST_T4: &str = "7048070";
const SECOND_T4: &str = "7098126";
const JSON: [&str; 3] = ["devices", "--output", "json"];

fn fixture(path: &str) -> PathBuf {
    workspace::root().join(path)
}

/// Windows Server 2019: the graphics kernel lists the adapters. Wine's lists those of the
/// devices, but does not report of which kind they are. What is recorded reads back as the same
/// devices.
fn without_dxcore(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture(T4))?;
    programs.host.install(&[])?;
    let found = stdout(&mut programs.windows(&JSON))?;
    for luid in [FIRST_T4, SECOND_T4] {
        ensure!(found.contains(luid), "the kernel does not list adapter {luid}: {found}");
    }
    let inventory = workspace::target_dir().join("wine/recorded-without-dxcore.yaml");
    fs::write(&inventory, stdout(&mut programs.windows(&["record"]))?)?;
    let devices = |text: &str| text.split("\"skipped\"").next().map(str::to_owned);
    let expected = stdout(&mut native(&JSON, &inventory))?;
    compare_without_notes(
        &devices(&expected).unwrap_or_default(),
        &devices(&found).unwrap_or_default(),
    )
}

/// The registry of a container says that it is one. Then no runtime files are known, and what
/// is recorded says why.
fn inside_a_container(programs: &Programs) -> Result<()> {
    let text =
        fs::read_to_string(fixture(T4))?.replacen("host:\n", "host:\n  container: true\n", 1);
    let inventory = workspace::target_dir().join("wine/container.yaml");
    fs::write(&inventory, text)?;
    check_host(programs, &JSON, &inventory)?;
    let recorded = stdout(&mut programs.windows(&["record"]))?;
    ensure!(recorded.contains("  container: true"), "the container is not recorded: {recorded}");
    ensure!(!recorded.contains("CopyToVm"), "runtime files are recorded: {recorded}");
    Ok(())
}

/// Without `winbrand.dll` the product name comes from the registry. Without
/// `computecore.dll` only the HCS schemas are missing.
fn without_services(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture(T4))?;
    programs.host.install(&["dxcore.dll"])?;
    let expected = stdout(&mut native(&["record"], &fixture(T4)))?;
    let expected = lines_without(&expected, "hcsSchemas:");
    let found = stdout(&mut programs.windows(&["record"]))?;
    compare_without_notes(&expected, &lines_without(&found, "hcsSchemas:"))
}

/// A host with only `vmcompute.dll`, whose function has one more parameter.
fn older_service(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture(T4))?;
    programs.host.install(&["dxcore.dll", "vmcompute.dll"])?;
    let expected = stdout(&mut native(&["record"], &fixture(T4)))?;
    compare_without_notes(&expected, &stdout(&mut programs.windows(&["record"]))?)
}

/// A host older than the newer attributes lists adapters under those it knows.
fn older_host(programs: &Programs, mode: &str) -> Result<()> {
    let inventory = fixture("fixtures/inventories/generated/npu-beside-gpu.yaml");
    programs.host.set(&inventory)?;
    // The neural processor, which is the last adapter, has only newer attributes.
    let mut expected = stdout(&mut native(&["record"], &inventory))?;
    for newer in [
        ", d3d12-generic-ml",
        ", d3d12-generic-media",
        ", gpu",
        ", compute-accelerator",
        ", media-accelerator",
    ] {
        expected = expected.replace(newer, "");
    }
    expected.truncate(expected.find("- luid: 90002").unwrap_or(expected.len()));
    let mut record = programs.windows(&["record"]);
    compare_without_notes(&expected, &stdout(record.env("DXCORE_DOUBLE_NEWER_ATTRIBUTES", mode))?)
}

/// If one of two adapters cannot be read, the other one is listed and a reason is printed.
fn one_adapter_skipped(programs: &Programs, mode: &str) -> Result<()> {
    programs.host.set(&fixture(T4))?;
    let found = stdout(programs.windows(&JSON).env(mode, FIRST_T4))?;
    let (devices, skipped) = found.split_once("\"skipped\"").unwrap_or((&found, ""));
    ensure!(!devices.contains(FIRST_T4) && devices.contains(SECOND_T4), "the output is {found}");
    ensure!(skipped.contains(FIRST_T4) && skipped.contains("reason"), "the output is {found}");
    Ok(())
}

/// If a device names a driver key that does not exist, a reason is printed and the other
/// device does not change.
fn missing_driver_key(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture(T4))?;
    let before = stdout(&mut programs.windows(&JSON))?;
    programs
        .host
        .inject_fault(&["remove-driver-key", r"{4d36e968-e325-11ce-bfc1-08002be10318}\0004"])?;
    let result = output(&mut programs.windows(&JSON))?;
    let (found, log) = (String::from_utf8(result.stdout)?, String::from_utf8(result.stderr)?);
    ensure!(result.status.success(), "devices exited with {}: {log}", result.status);
    ensure!((found.clone() + &log).contains("0004"), "the key is not mentioned: {found}{log}");
    let second = |text: &str| text.find(SECOND_T4).map(|at| text[at..].to_owned());
    let (before, found) = (second(&before), second(&found));
    let device =
        |text: &Option<String>| Some(text.as_ref()?.split("\"skipped\"").next()?.to_owned());
    ensure!(device(&before) == device(&found), "the other device changed to {found:?}");
    Ok(())
}

/// A value of the wrong type is reported, and the values around it are read.
fn wrong_type(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture(T4))?;
    let key = r"{4d36e968-e325-11ce-bfc1-08002be10318}\0004\CopyToVmWhenNewer";
    programs.host.inject_fault(&["put-dword", key, "02b"])?;
    let result = output(&mut programs.windows(&["record"]))?;
    let log = String::from_utf8_lossy(&result.stderr);
    ensure!(log.contains("`02b`"), "the value is not mentioned: {log}");
    let expected = stdout(&mut native(&["record"], &fixture(T4)))?;
    compare_without_notes(&expected, &String::from_utf8_lossy(&result.stdout).replace("\r\n", "\n"))
}

/// An inventory that `record` writes under Wine can be used.
fn recorded_then_used(programs: &Programs) -> Result<()> {
    programs.host.set(&fixture(T4))?;
    let inventory = workspace::target_dir().join("wine/recorded.yaml");
    fs::write(&inventory, stdout(&mut programs.windows(&["record"]))?)?;
    check_host(programs, &JSON, Path::new(&inventory))
}

/// `simulate` predicts the same under Wine.
fn simulate(programs: &Programs) -> Result<()> {
    let arguments = ["simulate", "--output", "json"];
    let inventory = fixture(T4);
    let path = crate::wine::windows_path(&inventory);
    let found = stdout(programs.windows(&arguments).args(["--inventory", &path]))?;
    compare(&stdout(&mut native(&arguments, &inventory))?, &found)
}

fn lines_without(text: &str, start: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with(start)).collect();
    lines.join("\n")
}
