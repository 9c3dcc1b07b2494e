//! Files and sockets of the node that are not what the daemon expects.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use daemon_bed::FirstGpu;
use device_plugin::{Transport, UnixSockets};

use crate::child_command;
use crate::target::{Target, block_on};

/// Parts of the names of sockets.
const NAMES: [&str; 4] = ["", "\u{1b}[2J\u{1b}[31m", "\nwddm ok\r\u{7f}", "\u{202e}\u{2028}\u{85}"];

/// How long something stays in the place of the inventory.
const STAYS: Duration = Duration::from_millis(150);

/// Replaces the inventory by what cannot be one, and in the end by a host whose first GPU is
/// unhealthy.
pub(super) fn special_files(target: &Target) -> Result<u64> {
    let inventory = target.node.inventory();
    let mut count = 0;
    while target.goes_on(count) {
        make_fifo(&inventory)?;
        sleep(STAYS);
        remove(&inventory)?;
        fs::create_dir(&inventory)?;
        sleep(STAYS);
        remove(&inventory)?;
        symlink("/dev/zero", &inventory)?;
        sleep(STAYS);
        remove(&inventory)?;
        target.node.set_inventory(b"adapters: \x1b[31m{{{\0")?;
        sleep(STAYS);
        count += 1;
    }
    target.node.set_host(FirstGpu::Unhealthy)?;
    Ok(count)
}

/// Asks for the status while many sockets of others do not answer.
pub(super) fn silent_sockets(target: &Target) -> Result<u64> {
    block_on(async {
        let directory = target.node.directory();
        let mut silent = Vec::new();
        for number in 0..200 {
            let name = format!("silent-{number}{}.sock", NAMES[number % NAMES.len()]);
            silent.push(UnixSockets.bind(&directory.join(name))?);
        }
        let directory = directory.to_str().context("the temporary folder has no UTF-8 name")?;
        let arguments = ["status", "--device-plugin-dir", directory];
        let mut count = 0;
        while target.goes_on(count) {
            child_command::run(&target.program, &arguments)?;
            count += 1;
        }
        Ok(count)
    })
}

/// Creates a FIFO in the place of `path`.
fn make_fifo(path: &Path) -> Result<()> {
    remove(path)?;
    let status = Command::new("mkfifo").arg(path).status().context("cannot run `mkfifo`")?;
    ensure!(status.success(), "`mkfifo` failed");
    Ok(())
}

fn symlink(target: &str, link: &Path) -> Result<()> {
    let status = Command::new("ln").args(["-s", target]).arg(link).status();
    ensure!(status.context("cannot run `ln`")?.success(), "`ln` failed");
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir(path)?,
        Ok(_) => fs::remove_file(path)?,
        Err(_) => {}
    }
    Ok(())
}
