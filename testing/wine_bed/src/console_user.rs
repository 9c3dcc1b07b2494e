//! A program in a console, and who presses Ctrl+C there.
#![allow(unsafe_code, reason = "functions of the console")]

use std::io::{BufRead as _, BufReader};
use std::os::windows::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use windows::Win32::Foundation::TRUE;
use windows::Win32::System::Console::{
    CTRL_C_EVENT, GenerateConsoleCtrlEvent, SetConsoleCtrlHandler,
};
use windows::Win32::System::Threading::CREATE_NO_WINDOW;
use windows::core::BOOL;

/// The longest wait for an event.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where the handler of events reports Ctrl+C.
static INTERRUPTED: Mutex<Option<Sender<()>>> = Mutex::new(None);

/// Runs a program in a separate console.
pub(crate) fn run_in_console(program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    let status = command.args(arguments).creation_flags(CREATE_NO_WINDOW.0).status()?;
    ensure!(status.success(), "{program} failed with {status}");
    Ok(())
}

/// Runs a program of this console, sends Ctrl+C when it has printed a line, and prints its
/// exit code.
pub(crate) fn interrupt(program: &str, arguments: &[&str]) -> Result<()> {
    handle_events()?;
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("the output is piped")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    ensure!(line.trim() == "ready", "{program} printed `{}`", line.trim());
    // SAFETY: the function has no preconditions; 0 means every process of the console.
    unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) }?;
    println!("code {}", child.wait()?.code().context("Windows has no signals")?);
    Ok(())
}

/// Prints `ready`, waits for Ctrl+C, and exits with 9.
pub(crate) fn wait_for_interrupt() -> Result<()> {
    let (sender, events) = mpsc::channel();
    *INTERRUPTED.lock().expect("nobody panics with the lock") = Some(sender);
    handle_events()?;
    println!("ready");
    if events.recv_timeout(PATIENCE).is_err() {
        bail!("no Ctrl+C");
    }
    std::process::exit(9)
}

/// Lets this process survive Ctrl+C.
fn handle_events() -> Result<()> {
    unsafe extern "system" fn on_event(event: u32) -> BOOL {
        let sender = INTERRUPTED.lock().ok().and_then(|sender| sender.clone());
        if event == CTRL_C_EVENT
            && let Some(sender) = sender
        {
            let _ = sender.send(());
        }
        TRUE
    }
    // SAFETY: the function stays loaded.
    Ok(unsafe { SetConsoleCtrlHandler(Some(on_event), true) }?)
}
