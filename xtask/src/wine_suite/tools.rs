//! The tools, and the discovery library by way of its clients in C++ and Go.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::Test;
use super::programs::{DEADLINE, Programs, output, same, stdout};
use crate::clients;
use crate::process::run;
use crate::wine::windows_path;
use crate::workspace::{own_build, root, windows_build};

const CLIENTS: [&str; 2] = ["test-device-discovery-cpp.exe", "test-device-discovery-go.exe"];

/// Builds what they need, and lists them.
pub(super) fn tests() -> Result<Vec<Test>> {
    let folder = clients::for_windows()?;
    run(crate::workspace::cargo().args(["build", "--quiet", "--package", "tools"]))?;
    let mut tests = Vec::new();
    for path in clients::inventories()? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (inventory, clients) = (path.clone(), folder.clone());
        tests.push(Test::new(format!("clients: {name}"), move |programs| {
            all_clients_agree(programs, &clients, &inventory)
        }));
        tests.push(Test::new(format!("tools: {name}"), move |p| tools_agree(p, &path)));
    }
    let clients = folder.clone();
    tests.push(Test::new("clients: without dxcore.dll", move |p| without_dxcore(p, &clients)));
    tests.push(Test::new("tools: without compute service", without_compute_service));
    tests.push(Test::new("tools: cmd takes the flags back", cmd_takes_flags_back));
    tests.push(Test::new("tools: --run passes the exit code on", move |p| {
        run_passes_on(p, &folder)
    }));
    Ok(tests)
}

/// A tool for Windows, on the bed.
fn windows(programs: &Programs, tool: &str, arguments: &[&str]) -> Command {
    let mut command = programs.bed.command(&windows_build(&format!("{tool}.exe")));
    command.args(arguments);
    command
}

/// The clients print what the tool prints, byte for byte, and that is what the tool
/// prints here of the same inventory.
fn all_clients_agree(programs: &Programs, folder: &Path, inventory: &Path) -> Result<()> {
    programs.bed.set(inventory)?;
    let tool = stdout(&mut windows(programs, "test-device-discovery", &[]))?;
    for client in CLIENTS {
        same(&tool, &stdout(&mut programs.bed.command(&folder.join(client)))?)?;
    }
    let here = stdout(&mut here("test-device-discovery", &[], inventory))?;
    same(&comparable(&here), &comparable(&tool))
}

/// What the other tools say of a host is what they say of its inventory.
fn tools_agree(programs: &Programs, inventory: &Path) -> Result<()> {
    programs.bed.set(inventory)?;
    for (tool, arguments) in [
        ("query-hcs-capabilities", &[][..]),
        ("query-hcs-capabilities", &["--output", "json"]),
        ("gen-device-mounts", &["--all", "--frontend", "crictl"]),
    ] {
        let expected = stdout(&mut here(tool, arguments, inventory))?;
        same(&expected, &stdout(&mut windows(programs, tool, arguments))?)?;
    }
    Ok(())
}

/// A tool for this machine, on `inventory`.
fn here(tool: &str, arguments: &[&str], inventory: &Path) -> Command {
    let mut command = Command::new(own_build(tool));
    command.args(arguments).arg("--inventory").arg(inventory);
    command
}

/// Less what Wine changes: the case of instance ids, and, as a live host has one list
/// for each attribute and none over all, the order of the devices.
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

/// Every client says why there are no devices, and fails.
fn without_dxcore(programs: &Programs, folder: &Path) -> Result<()> {
    programs.bed.install(&[])?;
    let tool = windows_build("test-device-discovery.exe");
    for client in CLIENTS.map(|client| folder.join(client)).iter().chain([&tool]) {
        let result = output(&mut programs.bed.command(client), DEADLINE)?;
        let text = String::from_utf8_lossy(&result.stderr);
        ensure!(result.status.code() == Some(1), "{} ended {}", client.display(), result.status);
        ensure!(text.contains("dxcore.dll") && text.contains("Server 2022"), "it says {text}");
    }
    Ok(())
}

fn without_compute_service(programs: &Programs) -> Result<()> {
    programs.bed.install(&["dxcore.dll"])?;
    let result = output(&mut windows(programs, "query-hcs-capabilities", &[]), DEADLINE)?;
    let text = String::from_utf8_lossy(&result.stderr);
    ensure!(result.status.code() == Some(1), "it ended with {}", result.status);
    ensure!(text.starts_with("error: this host has no Host Compute Service"), "it says {text}");
    Ok(())
}

/// The printed flags, in a command that cmd reads, reach a program as they were: here
/// `gen-device-mounts` itself, which prints every word that it is to hand on.
fn cmd_takes_flags_back(programs: &Programs) -> Result<()> {
    let inventory: PathBuf = root().join("fixtures/inventories/aws-t4-two.yaml");
    programs.bed.set(&inventory)?;
    let flags = stdout(&mut windows(programs, "gen-device-mounts", &["--all"]))?;
    let flags = flags.trim_end();
    let tool = windows_path(&windows_build("gen-device-mounts.exe"));
    let batch = crate::workspace::target_dir().join("wine/flags.bat");
    let line = format!("@\"{tool}\" --index 0 --runtime-mounts never --run -- {flags}\r\n");
    fs::write(&batch, line)?;
    let mut cmd = programs.bed.command(Path::new("cmd.exe"));
    let result = output(cmd.arg("/c").arg(windows_path(&batch)), DEADLINE)?;
    let text = String::from_utf8_lossy(&result.stderr);
    ensure!(text.lines().any(|line| line.trim_end().ends_with(flags)), "it says {text}");
    ensure!(text.contains("cannot run `ctr`"), "it says {text}");
    Ok(())
}

/// A front end is found beside the program, gets its words, and ends as it ends. The Go
/// client stands in for it: it takes no `run` and exits 2.
fn run_passes_on(programs: &Programs, folder: &Path) -> Result<()> {
    programs.bed.set(&root().join("fixtures/inventories/aws-t4-two.yaml"))?;
    let tool = folder.join("gen-device-mounts.exe");
    fs::copy(windows_build("gen-device-mounts.exe"), &tool)?;
    fs::copy(folder.join(CLIENTS[1]), folder.join("ctr.exe"))?;
    let words = ["--all", "--run", "image", "name"];
    let result = output(programs.bed.command(&tool).args(words), DEADLINE)?;
    let text = String::from_utf8_lossy(&result.stderr);
    ensure!(result.status.code() == Some(2), "it ended with {}: {text}", result.status);
    ensure!(text.starts_with("ctr \"run\" \"--rm\" \"--device\""), "it says {text}");
    ensure!(text.contains("unexpected argument `run`"), "it says {text}");
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
