//! The tools, and the discovery library through its C++ and Go clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::programs::{Programs, compare, output, stdout};
use super::test_case::TestCase;
use crate::clients::{self, GO_CLIENT, WINDOWS_CLIENTS};
use crate::process::run;
use crate::wine::windows_path;
use crate::workspace::{native_build, root, windows_build};

/// Builds the tools and the clients, and returns the tests.
pub(super) fn tests() -> Result<Vec<TestCase>> {
    let folder = clients::for_windows()?;
    run(crate::workspace::cargo().args(["build", "--quiet", "--package", "tools"]))?;
    let mut tests = Vec::new();
    for path in clients::inventories()? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (inventory, clients) = (path.clone(), folder.clone());
        tests.push(TestCase::new(format!("clients: {name}"), move |programs| {
            clients_match_tool(programs, &clients, &inventory)
        }));
        tests.push(TestCase::new(format!("tools: {name}"), move |p| {
            tools_match_inventory(p, &path)
        }));
    }
    let clients = folder.clone();
    tests.push(TestCase::new("clients: no dxcore.dll", move |p| without_dxcore(p, &clients)));
    tests.push(TestCase::new("tools: no compute service", without_compute_service));
    tests.push(TestCase::new("tools: cmd.exe passes printed flags unchanged", cmd_passes_flags));
    tests.push(TestCase::new("tools: --run returns the exit code of its program", move |p| {
        run_returns_exit_code(p, &folder)
    }));
    Ok(tests)
}

/// A tool for Windows, on the simulated host.
fn windows(programs: &Programs, tool: &str, arguments: &[&str]) -> Command {
    let mut command = programs.host.command(&windows_build(&format!("{tool}.exe")));
    command.args(arguments);
    command
}

/// The clients print the same bytes as the tool. The tool prints the same on this machine
/// for the same inventory.
fn clients_match_tool(programs: &Programs, folder: &Path, inventory: &Path) -> Result<()> {
    programs.host.set(inventory)?;
    let tool = stdout(&mut windows(programs, "test-device-discovery", &[]))?;
    for client in WINDOWS_CLIENTS {
        compare(&tool, &stdout(&mut programs.host.command(&folder.join(client)))?)?;
    }
    let expected = stdout(&mut native("test-device-discovery", &[], inventory))?;
    compare(&comparable(&expected), &comparable(&tool))
}

/// The other tools print the same on a host and for its inventory.
fn tools_match_inventory(programs: &Programs, inventory: &Path) -> Result<()> {
    programs.host.set(inventory)?;
    for (tool, arguments) in [
        ("query-hcs-capabilities", &[][..]),
        ("query-hcs-capabilities", &["--output", "json"]),
        ("gen-device-mounts", &["--all", "--frontend", "crictl"]),
    ] {
        let expected = stdout(&mut native(tool, arguments, inventory))?;
        compare(&expected, &stdout(&mut windows(programs, tool, arguments))?)?;
    }
    Ok(())
}

/// A tool for this machine, with `inventory`.
fn native(tool: &str, arguments: &[&str], inventory: &Path) -> Command {
    let mut command = Command::new(native_build(tool));
    command.args(arguments).arg("--inventory").arg(inventory);
    command
}

/// The text without what Wine changes: the case of instance ids, and the order of the
/// devices, because a live host has a list for each attribute but none of all.
fn comparable(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let is_id = line.starts_with("PnP Hardware ID:");
        if is_id { line.to_uppercase() } else { line.to_owned() }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut devices: Vec<&str> = text
        .split("[Device ")
        .map(|part| part.split_once(" details]").map_or(part, |p| p.1).trim_end())
        .collect();
    devices[1..].sort_unstable();
    devices.join("[Device details]")
}

/// Every client prints the devices that the graphics kernel lists.
fn without_dxcore(programs: &Programs, folder: &Path) -> Result<()> {
    programs.host.install(&[])?;
    let tool = stdout(&mut windows(programs, "test-device-discovery", &[]))?;
    ensure!(tool.contains("Discovered "), "the output is {tool}");
    for client in WINDOWS_CLIENTS {
        compare(&tool, &stdout(&mut programs.host.command(&folder.join(client)))?)?;
    }
    Ok(())
}

fn without_compute_service(programs: &Programs) -> Result<()> {
    programs.host.install(&["dxcore.dll"])?;
    let result = output(&mut windows(programs, "query-hcs-capabilities", &[]))?;
    let text = String::from_utf8_lossy(&result.stderr);
    ensure!(result.status.code() == Some(1), "the tool exited with {}", result.status);
    ensure!(
        text.starts_with("error: this host has no Host Compute Service"),
        "the output is {text}"
    );
    Ok(())
}

/// Flags that `gen-device-mounts` prints reach a program unchanged through `cmd.exe`. The
/// program is `gen-device-mounts` itself, which prints all words that it passes on.
fn cmd_passes_flags(programs: &Programs) -> Result<()> {
    let inventory: PathBuf = root().join("fixtures/inventories/aws-t4-two.yaml");
    programs.host.set(&inventory)?;
    let flags = stdout(&mut windows(programs, "gen-device-mounts", &["--all"]))?;
    let flags = flags.trim_end();
    let tool = windows_path(&windows_build("gen-device-mounts.exe"));
    let batch = crate::workspace::target_dir().join("wine/flags.bat");
    let line = format!("@\"{tool}\" --index 0 --runtime-mounts never --run -- {flags}\r\n");
    fs::write(&batch, line)?;
    let mut cmd = programs.host.command(Path::new("cmd.exe"));
    let result = output(cmd.arg("/c").arg(windows_path(&batch)))?;
    let text = String::from_utf8_lossy(&result.stderr);
    ensure!(text.lines().any(|line| line.trim_end().ends_with(flags)), "the output is {text}");
    ensure!(text.contains("cannot run `ctr`"), "the output is {text}");
    Ok(())
}

/// `--run` finds a container client in its own folder, passes the arguments on and returns
/// the exit code. The Go client stands in for `ctr`: it rejects `run` and exits 2.
fn run_returns_exit_code(programs: &Programs, folder: &Path) -> Result<()> {
    programs.host.set(&root().join("fixtures/inventories/aws-t4-two.yaml"))?;
    let tool = folder.join("gen-device-mounts.exe");
    fs::copy(windows_build("gen-device-mounts.exe"), &tool)?;
    fs::copy(folder.join(GO_CLIENT), folder.join("ctr.exe"))?;
    let words = ["--all", "--run", "image", "name"];
    let result = output(programs.host.command(&tool).args(words))?;
    let text = String::from_utf8_lossy(&result.stderr);
    ensure!(result.status.code() == Some(2), "the tool exited with {}: {text}", result.status);
    ensure!(text.starts_with("ctr \"run\" \"--rm\" \"--device\""), "the output is {text}");
    ensure!(text.contains("unexpected argument `run`"), "the output is {text}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_order_of_devices_and_the_case_of_ids_may_differ() {
        let one = "Discovered\n[Device 0 details]\na\n[Device 1 details]\nb";
        let other = "Discovered\n[Device 0 details]\nb\n[Device 1 details]\na";
        assert_eq!(comparable(&format!("{one}\n")), comparable(&format!("{other}\n")));
        assert_eq!(comparable("PnP Hardware ID: a"), comparable("PnP Hardware ID: A"));
        assert_ne!(comparable(one), comparable(&one.replace('b', "c")));
    }
}
