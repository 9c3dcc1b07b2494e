//! Programs whose child processes `--check` compares. The filter in these programs filters the
//! child processes, not the launcher.

use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use gpu_probe::Api;

use crate::arguments::LIST;
use crate::filter_file::system_folder;

/// The exit code of a child process that cannot list anything, but has run.
pub(crate) const RAN: i32 = 0x5A5A;

/// The names and commands of programs that start `program`, which then lists the adapters, given
/// the LUIDs `known`. The last one starts another 32-bit program, because a 32-bit process cannot
/// filter a 64-bit one.
pub(crate) fn parents(program: &Path, known: &str) -> [(&'static str, Command); 4] {
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
        ("cmd.exe", cmd("cmd.exe", &format!("\"{program}\" {list}"))),
        ("powershell.exe (.NET)", powershell("powershell.exe", &script)),
        ("pwsh.exe (.NET)", powershell("pwsh.exe", &script)),
        ("cmd.exe (32-bit)", cmd(&cmd_32, &exit)),
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
