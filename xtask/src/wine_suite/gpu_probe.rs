//! `gpu-probe` on a host of the test bed, whose `dxcore.dll` lists the adapters of an inventory.

use anyhow::{Result, ensure};

use super::programs::{Programs, output};
use super::test_case::TestCase;
use crate::workspace;

/// A host with two GPUs, and their LUIDs there.
const INVENTORY: &str = "fixtures/inventories/aws-t4-two.yaml";
const LUIDS: [&str; 2] = ["7048070", "7098126"];

pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase::new("gpu-probe: the allocated adapters are visible", |programs| {
            let allocated = LUIDS.join(",");
            let text = probe(programs, &allocated, 0)?;
            let listed = LUIDS.iter().all(|luid| text.contains(&format!(" T4, LUID {luid}, ")));
            ensure!(listed && text.contains("2 allocated, 2 visible"), "{text}");
            Ok(())
        }),
        TestCase::new("gpu-probe: an adapter that was not allocated is visible", |programs| {
            let text = probe(programs, LUIDS[0], 1)?;
            let extra = format!("LUID {} is visible, but was not allocated", LUIDS[1]);
            ensure!(text.contains(&extra), "{text}");
            Ok(())
        }),
    ]
}

/// What it prints about `DXCore` in a container that was `allocated` these adapters.
fn probe(programs: &Programs, allocated: &str, status: i32) -> Result<String> {
    programs.host.set(&workspace::root().join(INVENTORY))?;
    let mut command = programs.host.command(&workspace::windows_build("gpu-probe.exe"));
    command.args(["dxcore", "--expect"]).env("DIRECTX_VISIBLE_DEVICES", allocated);
    let result = output(&mut command)?;
    let text = String::from_utf8_lossy(&result.stdout).replace("\r\n", "\n");
    ensure!(result.status.code() == Some(status), "{}: {text}", result.status);
    Ok(text)
}
