//! Starts a program suspended, makes it load the filter, and waits for it.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::process::Child;

use visibility_filter::{NotFiltered, Payload, filter, resume};
use windows::Win32::Foundation::{HANDLE, WAIT_OBJECT_0};
use windows::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
};
use windows::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows::Win32::System::Threading::{
    CREATE_SUSPENDED, CreateProcessW, GetExitCodeProcess, INFINITE, PROCESS_INFORMATION,
    STARTF_USESTDHANDLES, STARTUPINFOW, TerminateProcess, WaitForSingleObject,
};
use windows::core::PWSTR;

use crate::console::forward_events;

/// The exit code of a program that the launcher ends before it runs.
const NOT_RUN: u32 = 1;

/// The size of a `STARTUPINFOW`, in the type of its field.
#[expect(clippy::cast_possible_truncation, reason = "it has about 100 bytes")]
const STARTUP_SIZE: u32 = size_of::<STARTUPINFOW>() as u32;

/// Why a program does not run.
#[derive(Debug)]
pub(crate) enum LaunchError {
    /// Windows does not start the program.
    Start(io::Error),
    /// The program would run unfiltered, and the payload does not allow that.
    NotFiltered(NotFiltered),
    /// Something else failed.
    System(io::Error),
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> LaunchError {
        LaunchError::System(error)
    }
}

/// Runs the program of a raw `command_line` with the filter of `payload`, unfiltered if there is
/// none, and returns its exit code. `not_filtered` is called with the reason if it runs unfiltered
/// in spite of a payload.
pub(crate) fn launch(
    command_line: &[u16],
    payload: Option<&Payload>,
    not_filtered: fn(NotFiltered),
) -> Result<u32, LaunchError> {
    let owned = start(command_line)?;
    let process = HANDLE(owned.as_raw_handle());
    // The job ends the program and its children when this process ends, even if it is terminated.
    let _job = new_job(process);
    forward_events(process).map_err(io::Error::from)?;
    if let Some(payload) = payload
        && let Err(why) = filter(process.0, payload)
    {
        if payload.is_required() {
            // SAFETY: the process has not run yet. If this fails, the job ends it.
            let _ = unsafe { TerminateProcess(process, NOT_RUN) };
            return Err(LaunchError::NotFiltered(why));
        }
        not_filtered(why);
    }
    resume(process.0).map_err(status_error)?;
    // SAFETY: the handle is open.
    if unsafe { WaitForSingleObject(process, INFINITE) } != WAIT_OBJECT_0 {
        return Err(io::Error::last_os_error().into());
    }
    let mut code = 0;
    // SAFETY: the handle is open, and the place is a local variable.
    unsafe { GetExitCodeProcess(process, &raw mut code) }.map_err(io::Error::from)?;
    Ok(code)
}

/// Makes a `child`, which was started suspended, load the filter of `payload`, and lets it run.
pub(crate) fn run(child: &Child, payload: Option<&Payload>) -> Result<(), LaunchError> {
    let process = child.as_raw_handle();
    if let Some(payload) = payload {
        filter(process, payload).map_err(LaunchError::NotFiltered)?;
    }
    resume(process).map_err(status_error)
}

fn status_error(status: i32) -> LaunchError {
    LaunchError::System(io::Error::other(format!("NTSTATUS {status:08X}")))
}

/// Starts a program without running it.
fn start(command_line: &[u16]) -> Result<OwnedHandle, LaunchError> {
    let startup = STARTUPINFOW {
        cb: STARTUP_SIZE,
        dwFlags: STARTF_USESTDHANDLES,
        hStdInput: standard_handle(STD_INPUT_HANDLE),
        hStdOutput: standard_handle(STD_OUTPUT_HANDLE),
        hStdError: standard_handle(STD_ERROR_HANDLE),
        ..STARTUPINFOW::default()
    };
    let mut text: Vec<u16> = command_line.iter().copied().chain([0]).collect();
    let command = Some(PWSTR(text.as_mut_ptr()));
    let mut information = PROCESS_INFORMATION::default();
    // SAFETY: the command line is null-terminated and may be changed; the structures live
    // until the call returns.
    let started = unsafe {
        let startup = &raw const startup;
        let information = &raw mut information;
        let flags = CREATE_SUSPENDED;
        CreateProcessW(None, command, None, None, true, flags, None, None, startup, information)
    };
    started.map_err(|error| LaunchError::Start(error.into()))?;
    let [process, _thread] = [information.hProcess, information.hThread].map(|handle| {
        // SAFETY: the handle is open, and nothing else owns it.
        unsafe { OwnedHandle::from_raw_handle(handle.0) }
    });
    Ok(process)
}

/// A standard handle of this process, for the program. Without one, the program gets none.
fn standard_handle(id: STD_HANDLE) -> HANDLE {
    // SAFETY: the function has no preconditions.
    unsafe { GetStdHandle(id) }.unwrap_or_default()
}

/// A job that ends `process` and its children with this process. A process that may not be
/// in a further job runs without one.
fn new_job(process: HANDLE) -> Option<OwnedHandle> {
    // SAFETY: a job without a name and with default access.
    let job = unsafe { CreateJobObjectW(None, None) }.ok()?;
    // SAFETY: the handle is open, and nothing else owns it.
    let owned = unsafe { OwnedHandle::from_raw_handle(job.0) };
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let size = u32::try_from(size_of_val(&limits)).ok()?;
    let class = JobObjectExtendedLimitInformation;
    // SAFETY: the class has this structure, which has this size.
    unsafe { SetInformationJobObject(job, class, (&raw const limits).cast(), size) }.ok()?;
    // SAFETY: both handles are open.
    unsafe { AssignProcessToJobObject(job, process) }.ok()?;
    Some(owned)
}
