//! Starts a program suspended, makes it load the filter, and waits for it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use visibility::{Payload, Unfiltered};
use visibility_filter::{NotFiltered, filter};
use windows::Win32::Foundation::{
    HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
};
use windows::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows::Win32::System::Threading::{
    CREATE_SUSPENDED, CreateProcessW, GetExitCodeProcess, INFINITE, PROCESS_INFORMATION,
    ResumeThread, STARTF_USESTDHANDLES, STARTUPINFOW, TerminateProcess, WaitForSingleObject,
};
use windows::core::PWSTR;

use crate::console::forward_events;
use crate::handle::Handle;

/// The exit code of a program that is ended before it runs.
const NOT_RUN: u32 = 1;

/// How much captured output is kept, in bytes.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// How long captured output may take to arrive after the program's end.
const GRACE: Duration = Duration::from_secs(2);

/// How often the reader of the output is asked whether it has ended.
const TICK: Duration = Duration::from_millis(1);

/// Where the program writes.
pub enum Output {
    /// Where this process does.
    Inherited,
    /// Into a pipe.
    Captured,
}

/// Why a program does not run.
#[derive(Debug)]
pub enum LaunchError {
    /// Windows does not start it.
    Start(io::Error),
    /// It would run unfiltered, and the payload does not allow that.
    NotFiltered(NotFiltered),
    /// Something else failed.
    System(io::Error),
}

impl From<windows::core::Error> for LaunchError {
    fn from(error: windows::core::Error) -> LaunchError {
        LaunchError::System(error.into())
    }
}

/// A running program.
pub struct Child {
    process: Handle,
    /// Ends the program and its children when this process ends, however it ends.
    job: Option<Handle>,
    /// Why the program is not filtered.
    pub not_filtered: Option<NotFiltered>,
    /// What the program writes, if it is captured.
    output: Option<File>,
}

impl Child {
    /// Waits until the program ends, and returns its exit code.
    pub fn wait(&self) -> io::Result<u32> {
        let code = self.wait_for(INFINITE)?;
        code.ok_or_else(|| io::Error::other("the wait ended before the program"))
    }

    /// Waits at most for `limit` until a program whose output is captured ends, and returns
    /// its exit code and what it wrote. `None`: it took longer, and was ended.
    pub fn finish(mut self, limit: Duration) -> io::Result<Option<(u32, String)>> {
        let reader = self.output.take().map(collect);
        let limit = u32::try_from(limit.as_millis()).unwrap_or(INFINITE);
        let code = self.wait_for(limit)?;
        if code.is_none() {
            // SAFETY: the handle is open. If this fails, the job ends the program.
            let _ = unsafe { TerminateProcess(self.process.0, NOT_RUN) };
        }
        // The program's children, which may keep the pipe open, end now.
        self.job = None;
        let text = reader.map(collected).unwrap_or_default();
        Ok(code.map(|code| (code, text)))
    }

    /// The exit code; `None` if the program has not ended after so many milliseconds.
    fn wait_for(&self, milliseconds: u32) -> io::Result<Option<u32>> {
        // SAFETY: the handle is open.
        match unsafe { WaitForSingleObject(self.process.0, milliseconds) } {
            WAIT_OBJECT_0 => {}
            WAIT_TIMEOUT => return Ok(None),
            _ => return Err(io::Error::last_os_error()),
        }
        let mut code = 0;
        // SAFETY: the handle is open, and the place is a local variable.
        unsafe { GetExitCodeProcess(self.process.0, &raw mut code) }?;
        Ok(Some(code))
    }
}

/// Reads a pipe on a thread: a program never waits for its reader, and a program that cannot
/// be ended does not hold this process.
fn collect(mut pipe: File) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error still counts.
        let _ = (&mut pipe).take(OUTPUT_LIMIT).read_to_end(&mut bytes);
        let _ = io::copy(&mut pipe, &mut io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// What the thread has read. It ends with the program, and is joined then: under Wine, a process
/// that exits while one of its threads ends sometimes has the exit code 0.
fn collected(reader: JoinHandle<String>) -> String {
    let end = Instant::now() + GRACE;
    while !reader.is_finished() {
        if Instant::now() > end {
            return String::new();
        }
        thread::sleep(TICK);
    }
    // A panic would have been printed.
    reader.join().unwrap_or_default()
}

/// Starts the program of a raw `command_line` with the filter of `payload`; unfiltered if
/// there is none.
pub fn launch(
    command_line: &[u16],
    payload: Option<&Payload>,
    output: &Output,
) -> Result<Child, LaunchError> {
    let pipe = match output {
        Output::Inherited => None,
        Output::Captured => Some(Pipe::new().map_err(LaunchError::System)?),
    };
    let (process, thread) = start(command_line, pipe.as_ref().map(|pipe| &pipe.write))?;
    let job = new_job(&process);
    if pipe.is_none() {
        forward_events(process.0)?;
    }
    let not_filtered = match payload.map(|payload| filter(process.0.0, payload)) {
        Some(Err(why)) if payload.is_some_and(|p| p.unfiltered() == Unfiltered::Refuse) => {
            // SAFETY: the process has not run yet. If this fails, the job ends it.
            let _ = unsafe { TerminateProcess(process.0, NOT_RUN) };
            return Err(LaunchError::NotFiltered(why));
        }
        result => result.and_then(Result::err),
    };
    // SAFETY: the handle is that of the program's only thread.
    if unsafe { ResumeThread(thread.0) } == u32::MAX {
        return Err(LaunchError::System(io::Error::last_os_error()));
    }
    Ok(Child { process, job, not_filtered, output: pipe.map(|pipe| pipe.read) })
}

/// Starts a program without running it.
fn start(
    command_line: &[u16],
    output: Option<&OwnedHandle>,
) -> Result<(Handle, Handle), LaunchError> {
    let standard = |id| {
        // SAFETY: the function has no preconditions. Without the handle the program gets none.
        unsafe { GetStdHandle(id) }.unwrap_or_default()
    };
    let output = output.map(|handle| HANDLE(handle.as_raw_handle()));
    let startup = STARTUPINFOW {
        cb: u32::try_from(size_of::<STARTUPINFOW>()).unwrap_or_default(),
        dwFlags: STARTF_USESTDHANDLES,
        hStdInput: standard(STD_INPUT_HANDLE),
        hStdOutput: output.unwrap_or_else(|| standard(STD_OUTPUT_HANDLE)),
        hStdError: standard(STD_ERROR_HANDLE),
        ..STARTUPINFOW::default()
    };
    let mut text: Vec<u16> = command_line.iter().copied().chain([0]).collect();
    let mut information = PROCESS_INFORMATION::default();
    // SAFETY: the command line is null-terminated and may be changed; the structures live
    // until the call returns.
    let started = unsafe {
        CreateProcessW(
            None,
            Some(PWSTR(text.as_mut_ptr())),
            None,
            None,
            true,
            CREATE_SUSPENDED,
            None,
            None,
            &raw const startup,
            &raw mut information,
        )
    };
    started.map_err(|error| LaunchError::Start(error.into()))?;
    Ok((Handle(information.hProcess), Handle(information.hThread)))
}

/// A job that ends `process` and its children with this process. A process that may not be
/// in a further job runs without one.
fn new_job(process: &Handle) -> Option<Handle> {
    // SAFETY: a job without a name and with default access.
    let job = Handle(unsafe { CreateJobObjectW(None, None) }.ok()?);
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let size = u32::try_from(size_of_val(&limits)).ok()?;
    let class = JobObjectExtendedLimitInformation;
    // SAFETY: the structure is that of the class, and has this size.
    unsafe { SetInformationJobObject(job.0, class, (&raw const limits).cast(), size) }.ok()?;
    // SAFETY: both handles are open.
    unsafe { AssignProcessToJobObject(job.0, process.0) }.ok()?;
    Some(job)
}

/// A pipe whose write end the program inherits.
struct Pipe {
    read: File,
    write: OwnedHandle,
}

impl Pipe {
    fn new() -> io::Result<Pipe> {
        let (read, write) = io::pipe()?;
        let write = OwnedHandle::from(write);
        let handle = HANDLE(write.as_raw_handle());
        // SAFETY: the handle is open.
        unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT.0, HANDLE_FLAG_INHERIT) }?;
        Ok(Pipe { read: File::from(OwnedHandle::from(read)), write })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(command: &str, limit: Duration) -> Option<(u32, String)> {
        let command: Vec<u16> = command.encode_utf16().collect();
        launch(&command, None, &Output::Captured).unwrap().finish(limit).unwrap()
    }

    #[test]
    fn captured_output_ends_with_the_program() {
        let ended = finished("cmd.exe /c echo text& exit 7", Duration::from_secs(60));
        assert_eq!(ended, Some((7, "text\r\n".to_owned())));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let forever = "cmd.exe /c for /l %i in (0,0,1) do @rem";
        assert_eq!(finished(forever, Duration::from_millis(300)), None);
    }
}
