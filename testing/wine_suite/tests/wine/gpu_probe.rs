//! `gpu-probe` on a host of the test bed, whose `dxcore.dll` lists the adapters of an inventory.

use super::host::Host;
use super::output::{output, text};
use super::paths::{fixture, windows_build};

const LUIDS: [&str; 2] = ["7048070", "7098126"];

#[test]
#[ignore = "needs Wine: cargo xtask test wine"]
fn visible_adapters_are_compared_with_the_allocated_ones() {
    let host = Host::of(&fixture("aws-t4-two"));
    let probe = |allocated: &str, status: i32| {
        let mut command = host.command(windows_build("gpu-probe.exe"));
        command.args(["dxcore", "--expect"]).env("DIRECTX_VISIBLE_DEVICES", allocated);
        let result = output(&mut command);
        let text = text(&result.stdout);
        assert_eq!(result.status.code(), Some(status), "{text}");
        text
    };
    let equal = probe(&LUIDS.join(","), 0);
    assert!(LUIDS.iter().all(|luid| equal.contains(&format!(" T4, LUID {luid}, "))), "{equal}");
    assert!(equal.contains("2 allocated, 2 visible"), "{equal}");
    let extra = format!("LUID {} is visible, but was not allocated", LUIDS[1]);
    let different = probe(LUIDS[0], 1);
    assert!(different.contains(&extra), "{different}");
}
