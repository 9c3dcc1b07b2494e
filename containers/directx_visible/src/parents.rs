//! Programs whose child processes `--check` compares: what they start is filtered by the filter
//! in them, not by the launcher.

use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use gpu_probe::Api;

use crate::arguments::LIST;
use crate::filter_file::system_folder;

/// A program that starts a child process.
pub(crate) struct Parent {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
}

/// The exit code of a child process that cannot list anything, but has run.
pub(crate) const RAN: i32 = 0x5A5A;

/// Programs that start `program` with the hidden option that lists the adapters, given the LUIDs
/// `known`. The last one starts another 32-bit program: a 32-bit process cannot filter a 64-bit one.
pub(crate) fn parents(program: &Path, known: &str) -> [Parent; 4] {
    let program = program.display().to_string();
    let list = format!("{LIST} {} {known}", Api::D3dkmt.name());
    let system = system_folder().unwrap_or_default();
    let cmd_32 = format!(r"{}\SysWOW64\cmd.exe", system.rsplit_once('\\').unwrap_or_default().0);
    let exit = format!("{cmd_32} /d /c exit {RAN}");
    let script = format!(
        "$start = New-Object Diagnostics.ProcessStartInfo '{}', '{list}'; \
         $start.UseShellExecute = $false; \
         $child = [Diagnostics.Process]::Start($start); \
         $child.WaitForExit(); exit $child.ExitCode",
        program.replace('\'', "''")
    );
    [
        Parent { name: "cmd.exe", command: cmd("cmd.exe", &format!("\"{program}\" {list}")) },
        Parent { name: "powershell.exe (.NET)", command: powershell("powershell.exe", &script) },
        Parent { name: "pwsh.exe (.NET)", command: powershell("pwsh.exe", &script) },
        Parent { name: "cmd.exe (32-bit)", command: cmd(&cmd_32, &exit) },
    ]
}

/// `/s` removes only the outer quotation marks.
fn cmd(file: &str, line: &str) -> Command {
    let mut command = Command::new(file);
    command.raw_arg(format!("/d /s /c \"{line}\""));
    command
}

fn powershell(file: &str, script: &str) -> Command {
    let mut command = Command::new(file);
    command.args(["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", script]);
    command
}
