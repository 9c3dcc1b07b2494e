//! Reads adapters that a double of `DXCore` simulates (see `source/tests.rs`).
//!
//! The double has one inventory for each process, so the tests run in a process of their own.
//! Without the double, on real Windows, the simulated adapters do not exist.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use devices::{EngineKind, EngineTelemetry, MemoryUse};

use super::*;

/// Names the inventory in the process that reads it.
const CHILD: &str = "WIN32_TESTS_TELEMETRY";
const INVENTORY: &str = "DXCORE_DOUBLE_INVENTORY";

const BUSY: Luid = Luid(81);
const OLDER: Luid = Luid(-82);
const REMOVED: Luid = Luid(83);
const UNKNOWN: Luid = Luid(i64::MAX);

fn set_adapters(file: &Path, luids: &[Luid]) {
    let mut text = String::from("schema: directx-inventory/v1\nadapters:");
    for luid in luids {
        write!(
            text,
            "\n- luid: {luid}\n  attributes: [d3d12-graphics]\n  hardware: true\n  hardwareId: \
             {{vendor: 0x10DE, device: 0x1EB8}}\n  driverDescription: GPU\n  \
             dedicatedMemoryMiB: 15360"
        )
        .unwrap();
    }
    std::fs::write(file, text + "\n").unwrap();
}

fn read(reader: &mut TelemetryReader) -> Vec<Result<Telemetry, String>> {
    let luids = [BUSY, OLDER, REMOVED, UNKNOWN];
    let read = reader.read(&luids);
    assert!(read.iter().map(|(luid, _)| *luid).eq(luids));
    read.into_iter().map(|(_, result)| result.map_err(|error| error.to_string())).collect()
}

#[test]
fn values_come_from_dxcore_and_a_missing_adapter_is_an_error() {
    if let Some(file) = std::env::var_os(CHILD) {
        return read_simulated_host(Path::new(&file));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.yaml");
    set_adapters(&file, &[BUSY, OLDER, REMOVED]);
    let name =
        "telemetry::reader::tests::values_come_from_dxcore_and_a_missing_adapter_is_an_error";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env(CHILD, &file);
    if std::env::var_os(INVENTORY).is_some() {
        child.env(INVENTORY, &file).env("DXCORE_DOUBLE_GONE", REMOVED.to_string()).env(
            "DXCORE_DOUBLE_STATES",
            "81:engines=1500000+20,dedicated=3145728,shared=4096,celsius=61.5,\
             engine-hertz=1590000000,memory-hertz=5000000000",
        );
    }
    let output = child.output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn read_simulated_host(file: &Path) {
    let mut reader = TelemetryReader::default();
    let first = read(&mut reader);
    if std::env::var_os(INVENTORY).is_none() {
        assert!(first.iter().all(Result::is_err), "{first:?}");
        return;
    }
    let engine = |index, micros| EngineTelemetry {
        index,
        kind: EngineKind::Other,
        name: None,
        running_time: Duration::from_micros(micros),
    };
    let busy = Telemetry {
        engines: vec![engine(0, 1_500_000), engine(1, 20)],
        dedicated: Some(MemoryUse { used_bytes: 3 << 20, budget_bytes: Some(15360 << 20) }),
        shared: Some(MemoryUse { used_bytes: 4096, budget_bytes: None }),
        temperature_celsius: Some(61.5),
        engine_hertz: Some(1_590_000_000),
        memory_hertz: Some(5_000_000_000),
        ..Telemetry::default()
    };
    assert_eq!(first[..2], [Ok(busy), Ok(Telemetry::default())]);
    assert_eq!(first[2], Err("the adapter was removed".to_owned()));
    let unknown = first[3].as_ref().unwrap_err();
    assert!(unknown.starts_with("cannot open the adapter with DXCore: "), "{unknown}");
    assert_eq!(read(&mut reader), first, "the adapters that are kept");

    set_adapters(file, &[OLDER]);
    let without = read(&mut reader);
    assert!(without[0].is_err() && without[1].is_ok(), "{without:?}");
}
