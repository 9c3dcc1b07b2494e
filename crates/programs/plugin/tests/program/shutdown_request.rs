//! Asks a process to shut down: SIGTERM on Unix, Ctrl-Break on Windows.

use std::process::{Child, Command};

/// Starts the process of `command` so that only it gets the request.
#[cfg(windows)]
pub(crate) fn prepare(command: &mut Command) {
    use std::os::windows::process::CommandExt as _;
    /// `CREATE_NEW_PROCESS_GROUP` of `winbase.h`.
    const NEW_PROCESS_GROUP: u32 = 0x200;
    command.creation_flags(NEW_PROCESS_GROUP);
}

#[cfg(unix)]
pub(crate) fn prepare(_: &mut Command) {}

/// Sends the request to a process that was started with [`prepare`].
#[cfg(windows)]
#[allow(unsafe_code, reason = "calls kernel32.dll")]
pub(crate) fn send(child: &Child) {
    /// `CTRL_BREAK_EVENT` of `wincon.h`. New process groups ignore Ctrl-C.
    const CTRL_BREAK: u32 = 1;
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GenerateConsoleCtrlEvent(event: u32, process_group: u32) -> i32;
    }
    // SAFETY: takes two numbers and no pointers.
    let sent = unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK, child.id()) };
    assert!(sent != 0, "cannot send Ctrl-Break: {}", std::io::Error::last_os_error());
}

#[cfg(unix)]
pub(crate) fn send(child: &Child) {
    signal(child, "TERM");
}

#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    // The `kill` of the shell: minimal systems have no program of that name.
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}
