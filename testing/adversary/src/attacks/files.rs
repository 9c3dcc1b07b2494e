//! Files and sockets of the node that are not what the daemon expects.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use daemon_bed::FirstGpu;
use kubelet::{Transport, UnixSockets};

use crate::child_command;
use crate::target::{Target, block_on};

/// How long a command may take. Reading a file has a limit of ten seconds.
const COMMAND: Duration = Duration::from_secs(25);

/// What a command may occupy, in MiB. A file may have 16 MiB.
const COMMAND_MIB: f64 = 256.0;

/// How long `status` may take beside silent sockets. It is to wait for two seconds.
const STATUS: Duration = Duration::from_secs(10);

/// Parts of the names of sockets.
const NAMES: [&str; 4] = ["", "\u{1b}[2J\u{1b}[31m", "\nwddm ok\r\u{7f}", "\u{202e}\u{2028}\u{85}"];

/// How long something stays in the place of the inventory.
const STAYS: Duration = Duration::from_millis(150);

/// Replaces the inventory by what cannot be one, and in the end by a host whose first GPU is
/// unhealthy.
pub(super) fn special_files(target: &Target) -> Result<u64> {
    let inventory = target.node.inventory();
    let mut count = 0;
    while target.goes_on() || count == 0 {
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

/// Writes the same inventory in place, in two parts.
pub(super) fn partial_writes(target: &Target) -> Result<u64> {
    let text = target.node.host_yaml(FirstGpu::Healthy)?;
    // Before an adapter, so that what is written first is a complete inventory.
    let middle = text.rmatch_indices("\n- ").next().context("no adapters")?.0 + 1;
    let mut count = 0;
    while target.goes_on() || count == 0 {
        let mut file = File::create(target.node.inventory())?;
        file.write_all(&text.as_bytes()[..middle])?;
        file.flush()?;
        sleep(Duration::from_millis(50));
        file.write_all(&text.as_bytes()[middle..])?;
        drop(file);
        sleep(STAYS);
        count += 1;
    }
    Ok(count)
}

/// Runs commands with files that are not what they should be.
pub(super) fn commands(target: &Target) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let [fifo, bomb] = ["fifo", "bomb.yaml"].map(|name| folder.path().join(name));
    make_fifo(&fifo)?;
    fs::write(&bomb, format!("{{{}", "a,".repeat(7_000_000)))?;
    let mut count = 0;
    while target.goes_on() || count == 0 {
        for file in [&fifo, &bomb, folder.path(), Path::new("/dev/zero")] {
            let file = file.to_str().context("the temporary folder has no UTF-8 name")?;
            let good = target.node.inventory();
            let good = good.to_str().context("the temporary folder has no UTF-8 name")?;
            for arguments in [
                &["devices", "--inventory", file][..],
                &["simulate", "--inventory", good, "--config", file],
            ] {
                let accepted =
                    child_command::run(&target.program, arguments, COMMAND, COMMAND_MIB)?;
                ensure!(!accepted, "`{}` succeeded", arguments.join(" "));
                count += 1;
            }
        }
    }
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
        while target.goes_on() || count == 0 {
            child_command::run(&target.program, &arguments, STATUS, COMMAND_MIB)?;
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
