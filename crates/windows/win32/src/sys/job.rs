//! Job objects: the jobs of containers, and the one that ends child processes with this process.
#![allow(unsafe_code, reason = "calls ntdll.dll and kernel32.dll")]

use std::ffi::c_void;
use std::io;
use std::sync::{Mutex, PoisonError};

use windows::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows::Win32::Foundation::{
    CloseHandle, ERROR_MORE_DATA, HANDLE, OBJ_CASE_INSENSITIVE, UNICODE_STRING,
};
use windows::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_PROCESS_ID_LIST, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicProcessIdList, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject,
};
use windows::Win32::System::Threading::GetCurrentProcess;
use windows::core::PWSTR;

use super::library::{Library, os_error, status_error};

/// The names of a container's job, without the container's ID: of a container with process
/// isolation (its silo), and of a `HostProcess` container, whose job hcsshim creates in session 0.
const JOBS: [&str; 2] = [r"\Container_", r"\BaseNamedObjects\JobContainer_"];

/// The right to read information about a job (`JOB_OBJECT_QUERY`, winnt.h).
const JOB_OBJECT_QUERY: u32 = 4;

const STATUS_OBJECT_NAME_NOT_FOUND: i32 = 0xC000_0034_u32.cast_signed();
const STATUS_ACCESS_DENIED: i32 = 0xC000_0022_u32.cast_signed();

/// `NtOpenJobObject`: handle, access, name. Only this function opens a name outside of the
/// session's namespace.
type OpenJob = unsafe extern "system" fn(*mut HANDLE, u32, *const OBJECT_ATTRIBUTES) -> i32;

/// The IDs of the processes of a container, at most `limit`.
///
/// # Errors
/// `NotFound` if no such container runs; `PermissionDenied` if this process may not read its job.
pub(crate) fn process_ids_of_container(id: &str, limit: usize) -> io::Result<Vec<u32>> {
    let mut job = Err(io::ErrorKind::NotFound.into());
    for prefix in JOBS {
        job = Job::open(&format!("{prefix}{id}"));
        if !matches!(&job, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            break;
        }
    }
    job?.process_ids(limit)
}

/// Puts this process into a job that ends all of its processes when it is closed: when this process
/// ends, however that happens. Child processes are in the job from their first moment. A child that
/// was put into a job only after its start would outlive a process that ends in between.
pub(crate) fn end_children_with_this_process() -> io::Result<()> {
    static JOB: Mutex<Option<Job>> = Mutex::new(None);
    let mut job = JOB.lock().unwrap_or_else(PoisonError::into_inner);
    if job.is_none() {
        *job = Some(Job::ending_this_process()?);
    }
    Ok(())
}

/// An open job.
struct Job(HANDLE);

// SAFETY: any thread may use the handle of a job.
unsafe impl Send for Job {}

impl Job {
    /// A new job with this process in it. Closing it ends this process.
    fn ending_this_process() -> io::Result<Job> {
        // SAFETY: a job without a name and with default access.
        let job = Job(unsafe { CreateJobObjectW(None, None) }.map_err(|error| os_error(&error))?);
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let size = u32::try_from(size_of_val(&limits)).expect("a small structure");
        let class = JobObjectExtendedLimitInformation;
        // SAFETY: the class has this structure, which has this size.
        unsafe { SetInformationJobObject(job.0, class, (&raw const limits).cast(), size) }
            .map_err(|error| os_error(&error))?;
        // SAFETY: the function has no preconditions, and the handle that it returns is valid.
        unsafe { AssignProcessToJobObject(job.0, GetCurrentProcess()) }
            .map_err(|error| os_error(&error))?;
        Ok(job)
    }

    /// Opens a job by its full name in the object manager's namespace.
    fn open(name: &str) -> io::Result<Job> {
        let ntdll = Library::system("ntdll.dll")?;
        // SAFETY: the type is the one that hcsshim and phnt (ntpsapi.h) declare.
        let open: OpenJob = unsafe { ntdll.function(c"NtOpenJobObject") }?;
        let mut name: Vec<u16> = name.encode_utf16().collect();
        let bytes = u16::try_from(2 * name.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let name = UNICODE_STRING {
            Length: bytes,
            MaximumLength: bytes,
            Buffer: PWSTR(name.as_mut_ptr()),
        };
        let attributes = OBJECT_ATTRIBUTES {
            Length: u32::try_from(size_of::<OBJECT_ATTRIBUTES>()).expect("a small structure"),
            ObjectName: &raw const name,
            Attributes: OBJ_CASE_INSENSITIVE,
            ..OBJECT_ATTRIBUTES::default()
        };
        let mut job = HANDLE::default();
        // SAFETY: `job` is writable, and the attributes and the name outlive the call.
        match unsafe { open(&raw mut job, JOB_OBJECT_QUERY, &raw const attributes) } {
            0.. => Ok(Job(job)),
            STATUS_OBJECT_NAME_NOT_FOUND => Err(io::ErrorKind::NotFound.into()),
            STATUS_ACCESS_DENIED => Err(io::ErrorKind::PermissionDenied.into()),
            status => Err(status_error(status)),
        }
    }

    /// The IDs of the job's processes, at most `limit`.
    fn process_ids(&self, limit: usize) -> io::Result<Vec<u32>> {
        // A `JOBOBJECT_BASIC_PROCESS_ID_LIST` has two numbers of 32 bits, then process IDs, each as
        // wide as a pointer.
        let mut list = vec![0_usize; FIRST_ID + limit.max(1)];
        let buffer: *mut c_void = list.as_mut_ptr().cast();
        let bytes = u32::try_from(size_of_val(&*list)).map_err(io::Error::other)?;
        let kind = JobObjectBasicProcessIdList;
        // SAFETY: the job is open, and the buffer has this many writable, aligned bytes.
        match unsafe { QueryInformationJobObject(Some(self.0), kind, buffer, bytes, None) } {
            Err(error) if error.code() == ERROR_MORE_DATA.to_hresult() => {
                tracing::debug!(limit, "job has more processes than are read");
            }
            queried => queried.map_err(|error| os_error(&error))?,
        }
        // SAFETY: the buffer is aligned for the structure, and every combination of bits is valid.
        let header = unsafe { &*list.as_ptr().cast::<JOBOBJECT_BASIC_PROCESS_ID_LIST>() };
        let count = (header.NumberOfProcessIdsInList as usize).min(limit);
        let ids = list[FIRST_ID..].iter().take(count);
        Ok(ids.filter_map(|id| u32::try_from(*id).ok()).collect())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing uses it any more. There is no useful reaction to
        // an error.
        let _ = unsafe { CloseHandle(self.0) };
    }
}

/// The position of the process IDs, in units of a pointer's size.
const FIRST_ID: usize = {
    let position = std::mem::offset_of!(JOBOBJECT_BASIC_PROCESS_ID_LIST, ProcessIdList);
    assert!(position % size_of::<usize>() == 0);
    position / size_of::<usize>()
};

#[cfg(test)]
mod tests {
    use std::os::windows::io::AsRawHandle;
    use std::process::{Child, Command, Stdio};

    use windows::core::HSTRING;

    use super::*;

    /// A job as hcsshim makes for a `HostProcess` container, with processes that wait.
    struct Container {
        id: String,
        job: Job,
        processes: Vec<Child>,
    }

    impl Container {
        fn new(id: &str) -> Container {
            let id = format!("{id}-{}", std::process::id());
            let name = HSTRING::from(format!(r"Global\JobContainer_{id}"));
            // SAFETY: the name is null-terminated.
            let job = Job(unsafe { CreateJobObjectW(None, &name) }.unwrap());
            Container { id, job, processes: Vec::new() }
        }

        fn start_process(&mut self) -> u32 {
            let mut program = Command::new("cmd.exe");
            // cmd.exe waits for a line that never comes.
            program.args(["/c", "set /p line="]).stdin(Stdio::piped()).stdout(Stdio::null());
            let process = program.spawn().unwrap();
            // SAFETY: both handles are open.
            unsafe { AssignProcessToJobObject(self.job.0, HANDLE(process.as_raw_handle())) }
                .unwrap();
            let id = process.id();
            self.processes.push(process);
            id
        }

        fn process_ids(&self, limit: usize) -> Vec<u32> {
            let mut ids = process_ids_of_container(&self.id, limit).unwrap();
            ids.sort_unstable();
            ids
        }
    }

    impl Drop for Container {
        fn drop(&mut self) {
            for process in &mut self.processes {
                let _ = process.kill();
                let _ = process.wait();
            }
        }
    }

    #[test]
    fn the_processes_of_a_container_are_those_of_its_job() {
        let mut container = Container::new("some");
        assert!(container.process_ids(100).is_empty());
        let mut expected: Vec<u32> = (0..3).map(|_| container.start_process()).collect();
        expected.sort_unstable();
        assert_eq!(container.process_ids(100), expected);
        let few = container.process_ids(2);
        assert!(few.len() == 2 && few.iter().all(|id| expected.contains(id)), "{few:?}");
    }

    #[test]
    fn a_container_that_does_not_exist_is_not_found() {
        let error = process_ids_of_container("no-such-container", 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}
