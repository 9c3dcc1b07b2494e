//! Hosts that no inventory can describe: older ones, sick ones, ones that change
//! between two calls.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::Test;
use super::programs::{DEADLINE, Programs, here, output, stdout};
use super::round_trip::{agree, same_but_for_notes};
use crate::workspace;

/// The cases, by name.
pub(super) fn tests() -> Vec<Test> {
    vec![
        Test::new("host: without dxcore.dll", without_dxcore),
        Test::new("host: without branding and compute service", without_services),
        Test::new("host: with the compute service of older ones", older_service),
        Test::new("host: that knows no newer attributes", |p| older_host(p, "ignored")),
        Test::new("host: that refuses newer attributes", |p| older_host(p, "refused")),
        Test::new("adapter: gone after it was listed", |p| lost(p, "DXCORE_DOUBLE_GONE")),
        Test::new("adapter: that cannot be read", |p| lost(p, "DXCORE_DOUBLE_FAILING")),
        Test::new("adapter: whose driver is being replaced", |p| lost(p, "DXCORE_DOUBLE_UPDATING")),
        Test::new("driver key: missing", missing_driver_key),
        Test::new("driver key: wrong type between good values", wrong_type),
        Test::new("inventory: recorded, then used", recorded_then_used),
        Test::new("simulate: over memory", simulate),
    ]
}

const T4: &str = "fixtures/inventories/aws-t4-two.yaml";
const FIRST_T4: &str = "7048070";
const SECOND_T4: &str = "7098126";
const JSON: [&str; 3] = ["devices", "--output", "json"];

fn fixture(path: &str) -> PathBuf {
    workspace::root().join(path)
}

/// Windows Server 2019 and Nano Server: the message says which Windows is needed.
fn without_dxcore(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture(T4))?;
    programs.bed.install(&[])?;
    for arguments in [&["devices"][..], &["record"], &["serve"]] {
        let result = output(&mut programs.windows(arguments), DEADLINE)?;
        let text = String::from_utf8_lossy(&result.stderr);
        ensure!(result.status.code() == Some(1), "{arguments:?} ended with {}", result.status);
        ensure!(text.contains("dxcore.dll") && text.contains("Server 2022"), "it says {text}");
    }
    Ok(())
}

/// Without `winbrand.dll` the product comes from the registry; without
/// `computecore.dll` nothing is known of schemas, and that is all.
fn without_services(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture(T4))?;
    programs.bed.install(&["dxcore.dll"])?;
    let expected = stdout(&mut here(&["record"], &fixture(T4)))?;
    let expected = lines_but(&expected, "hcsSchemas:");
    let found = stdout(&mut programs.windows(&["record"]))?;
    same_but_for_notes(&expected, &lines_but(&found, "hcsSchemas:"))
}

/// A host that has `vmcompute.dll` alone, whose function takes one argument more.
fn older_service(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture(T4))?;
    programs.bed.install(&["dxcore.dll", "vmcompute.dll"])?;
    let expected = stdout(&mut here(&["record"], &fixture(T4)))?;
    same_but_for_notes(&expected, &stdout(&mut programs.windows(&["record"]))?)
}

/// A host older than the newer attributes: adapters are listed under those it knows.
fn older_host(programs: &Programs, mode: &str) -> Result<()> {
    let inventory = fixture("fixtures/inventories/generated/npu-beside-gpu.yaml");
    programs.bed.set(&inventory)?;
    // The neural processor, which is the last adapter, has none but newer attributes.
    let mut expected = stdout(&mut here(&["record"], &inventory))?;
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
    same_but_for_notes(&expected, &stdout(record.env("DXCORE_DOUBLE_NEWER_ATTRIBUTES", mode))?)
}

/// One of two adapters cannot be read: the other one is there, and the loss has a reason.
fn lost(programs: &Programs, mode: &str) -> Result<()> {
    programs.bed.set(&fixture(T4))?;
    let found = stdout(programs.windows(&JSON).env(mode, FIRST_T4))?;
    let (devices, skipped) = found.split_once("\"skipped\"").unwrap_or((&found, ""));
    ensure!(!devices.contains(FIRST_T4) && devices.contains(SECOND_T4), "it says {found}");
    ensure!(skipped.contains(FIRST_T4) && skipped.contains("reason"), "it says {found}");
    Ok(())
}

/// A device names a driver key that is not there: the loss has a reason, and the
/// other device is as it was.
fn missing_driver_key(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture(T4))?;
    let before = stdout(&mut programs.windows(&JSON))?;
    programs.bed.spoil(&["remove-driver-key", r"{4d36e968-e325-11ce-bfc1-08002be10318}\0004"])?;
    let result = output(&mut programs.windows(&JSON), DEADLINE)?;
    let (found, log) = (String::from_utf8(result.stdout)?, String::from_utf8(result.stderr)?);
    ensure!(result.status.success(), "it ended with {}: {log}", result.status);
    ensure!((found.clone() + &log).contains("0004"), "nothing tells of the key: {found}{log}");
    let second = |text: &str| text.find(SECOND_T4).map(|at| text[at..].to_owned());
    let (before, found) = (second(&before), second(&found));
    let device =
        |text: &Option<String>| Some(text.as_ref()?.split("\"skipped\"").next()?.to_owned());
    ensure!(device(&before) == device(&found), "the other device became {found:?}");
    Ok(())
}

/// A value of the wrong type between good ones is told, and hides nothing.
fn wrong_type(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture(T4))?;
    let key = r"{4d36e968-e325-11ce-bfc1-08002be10318}\0004\CopyToVmWhenNewer";
    programs.bed.spoil(&["put-dword", key, "02b"])?;
    let result = output(&mut programs.windows(&["record"]), DEADLINE)?;
    let log = String::from_utf8_lossy(&result.stderr);
    ensure!(log.contains("`02b`"), "nothing tells of the value: {log}");
    let expected = stdout(&mut here(&["record"], &fixture(T4)))?;
    same_but_for_notes(&expected, &String::from_utf8_lossy(&result.stdout).replace("\r\n", "\n"))
}

/// What one host records, another one can be tried with.
fn recorded_then_used(programs: &Programs) -> Result<()> {
    programs.bed.set(&fixture(T4))?;
    let recording = workspace::target_dir().join("wine/recorded.yaml");
    fs::write(&recording, stdout(&mut programs.windows(&["record"]))?)?;
    agree(programs, &JSON, Path::new(&recording))
}

/// The whole walk from adapters to what pods get: the same code gives the same, over
/// memory where the host has no `AF_UNIX`, which it says.
fn simulate(programs: &Programs) -> Result<()> {
    let arguments = ["simulate", "--output", "json"];
    let inventory = fixture(T4);
    let path = crate::wine::windows_path(&inventory);
    let found = stdout(programs.windows(&arguments).args(["--inventory", &path]))?;
    ensure!(found.contains("no AF_UNIX"), "it does not say how plugin and kubelet spoke: {found}");
    let expected = stdout(&mut here(&arguments, &inventory))?;
    // The note stands in the last list, which is empty here.
    let without_notes = |text: &str| text.rsplit_once("\"notes\"").map(|(rest, _)| rest.to_owned());
    same_but_for_notes(
        &without_notes(&expected).unwrap_or_default(),
        &without_notes(&found).unwrap_or_default(),
    )
}

fn lines_but(text: &str, start: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with(start)).collect();
    lines.join("\n")
}
