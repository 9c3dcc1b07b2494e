//! The launcher's command line, and the events of its console.
//!
//! The console sends Ctrl+C and Ctrl+Break to the program itself, so the launcher only
//! survives them. A container runtime stops a container with a thread at `CtrlRoutine` in its
//! first process, which is the launcher. The launcher starts such a thread in the program.

use std::sync::OnceLock;
use std::time::Duration;

use windows::Win32::Foundation::{CloseHandle, HANDLE, TRUE};
use windows::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT, SetConsoleCtrlHandler,
};
use windows::Win32::System::Environment::GetCommandLineW;
use windows::Win32::System::Threading::{CreateRemoteThread, LPTHREAD_START_ROUTINE};
use windows::core::BOOL;

use crate::control_routine;

/// The command line of this process as it was given.
pub(crate) fn raw_command_line() -> Vec<u16> {
    // SAFETY: the function has no preconditions.
    let text = unsafe { GetCommandLineW() };
    // SAFETY: the text is null-terminated and never changes.
    unsafe { text.as_wide() }.to_vec()
}

/// The handle of the program that gets the events. It is never closed.
static PROGRAM: OnceLock<usize> = OnceLock::new();

/// Forwards console events to `program`, whose handle must stay open.
pub(crate) fn forward_events(program: HANDLE) -> windows::core::Result<()> {
    let _ = PROGRAM.set(program.0.expose_provenance());
    // SAFETY: the function stays loaded.
    unsafe { SetConsoleCtrlHandler(Some(on_event), true) }
}

unsafe extern "system" fn on_event(event: u32) -> BOOL {
    if event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT {
        return TRUE;
    }
    if event == CTRL_SHUTDOWN_EVENT
        && let Some(program) = PROGRAM.get()
    {
        let program = HANDLE(std::ptr::with_exposed_provenance_mut(*program));
        // The program may have ended already, or may not let others start threads in it.
        let _ = send(program, event);
    }
    // Windows ends this process when the handler returns. It should end with the program instead.
    loop {
        std::thread::sleep(Duration::from_mins(1));
    }
}

/// Lets an event end this process with 0; otherwise, Windows ends it with another code.
pub(crate) fn end_at_shutdown() {
    // SAFETY: the function stays loaded.
    let _ = unsafe { SetConsoleCtrlHandler(Some(on_end), true) };
}

/// Processes of session 0 receive the logoff of any user, and must keep running.
unsafe extern "system" fn on_end(event: u32) -> BOOL {
    if event != CTRL_LOGOFF_EVENT {
        std::process::exit(0);
    }
    TRUE
}

/// Sends an event as a container runtime does.
fn send(program: HANDLE, event: u32) -> windows::core::Result<()> {
    let Some(routine) = control_routine::address(program) else { return Ok(()) };
    // SAFETY: CtrlRoutine is a thread function, and this is its address in the program.
    let routine = unsafe { std::mem::transmute::<usize, LPTHREAD_START_ROUTINE>(routine) };
    let argument = std::ptr::without_provenance(event as usize);
    // SAFETY: the handle is open, and the routine takes the event as its pointer.
    let thread = unsafe { CreateRemoteThread(program, None, 0, routine, Some(argument), 0, None) }?;
    // SAFETY: the handle is open, and nothing else uses it.
    unsafe { CloseHandle(thread) }
}
