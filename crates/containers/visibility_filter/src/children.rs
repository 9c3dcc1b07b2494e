//! Makes child processes load the filter, too. Every function of Windows that starts a process
//! calls `NtCreateUserProcess`.

use core::ffi::c_void;
use core::mem::transmute;

use crate::hook::Hook;
use crate::not_filtered::NotFiltered;
use crate::nt::{self, Handle, Status};
use crate::payload::CHILD;
use crate::process_image::filter;
use crate::{report, state};

/// `THREAD_CREATE_FLAGS_CREATE_SUSPENDED`.
const SUSPENDED: u32 = 1;

pub(crate) fn hook() -> [Hook; 1] {
    let replacement = create_user_process as Function as usize;
    [Hook { name: c"NtCreateUserProcess", replacement, is_required: true }]
}

type Pointer = *mut c_void;

type Function = unsafe extern "system" fn(
    *mut Handle,
    *mut Handle,
    u32,
    u32,
    Pointer,
    Pointer,
    u32,
    u32,
    Pointer,
    Pointer,
    Pointer,
) -> Status;

unsafe extern "system" fn create_user_process(
    process: *mut Handle,
    thread: *mut Handle,
    process_access: u32,
    thread_access: u32,
    process_attributes: Pointer,
    thread_attributes: Pointer,
    process_flags: u32,
    thread_flags: u32,
    parameters: Pointer,
    information: Pointer,
    attributes: Pointer,
) -> Status {
    let Some(state) = state::get() else { return nt::STATUS_INVALID_PARAMETER };
    // SAFETY: the trampoline of this function is at this address.
    let real = unsafe { transmute::<usize, Function>(state.create_process) };
    // SAFETY: the arguments are the caller's, except that the thread starts suspended.
    let status = unsafe {
        real(
            process,
            thread,
            process_access,
            thread_access,
            process_attributes,
            thread_attributes,
            process_flags,
            thread_flags | SUSPENDED,
            parameters,
            information,
            attributes,
        )
    };
    // A copy of this process returns here too, and has no child.
    if status < nt::STATUS_SUCCESS || status == nt::STATUS_PROCESS_CLONED {
        return status;
    }
    // SAFETY: a successful call has set this handle.
    let new_process = unsafe { *process };
    // SAFETY: as above.
    let new_thread = unsafe { *thread };
    let mut payload = state.payload;
    payload.flags |= CHILD;
    if let Err(why) = filter(new_process, &payload) {
        if payload.reports() {
            report_unfiltered(why, payload.is_required());
        }
        if payload.is_required() {
            end(new_process, new_thread);
            // SAFETY: the caller passes this structure, which the kernel has filled, or null.
            unsafe { information.cast::<CreateInformation>().as_mut() }
                .map(CreateInformation::fail);
            return nt::STATUS_ACCESS_DENIED;
        }
    }
    if thread_flags & SUSPENDED == 0 {
        // SAFETY: the handle refers to the new thread, which this function suspended.
        let _ = unsafe { nt::NtResumeThread(new_thread, core::ptr::null_mut()) };
    }
    status
}

/// Ends a process that has not run, and closes its handles.
fn end(process: Handle, thread: Handle) {
    // SAFETY: the handle refers to the new process, which the caller does not know yet.
    let _ = unsafe { nt::NtTerminateProcess(process, nt::STATUS_ACCESS_DENIED) };
    for handle in [thread, process] {
        // SAFETY: the caller gets an error and therefore no handle.
        let _ = unsafe { nt::NtClose(handle) };
    }
}

/// `PS_CREATE_INFO` with its member `SuccessState` (phnt, `ntpsapi.h`).
#[repr(C)]
struct CreateInformation {
    size: usize,
    state: u32,
    success: Success,
}

/// The start of `SuccessState`, in a union that is aligned to 8 bytes.
#[repr(C, align(8))]
struct Success {
    flags: u32,
    file: Handle,
    section: Handle,
}

/// `PsCreateInitialState` and `PsCreateSuccess`.
const INITIAL: u32 = 0;
const SUCCESS: u32 = 6;

impl CreateInformation {
    /// Makes a success a failure: the caller would not close these handles.
    fn fail(&mut self) {
        if self.size < size_of::<Self>() || self.state != SUCCESS {
            return;
        }
        self.state = INITIAL;
        for handle in [self.success.file, self.success.section] {
            if !handle.is_null() {
                // SAFETY: the kernel opened the handle for the caller. The caller gets an error,
                // and does not use it.
                let _ = unsafe { nt::NtClose(handle) };
            }
        }
    }
}

fn report_unfiltered(why: NotFiltered, refused: bool) {
    let (reason, status) = why.reason();
    let effect: &[u8] = if refused {
        b"a child process was not started because of --require: "
    } else {
        b"a child process sees every GPU: "
    };
    let (between, code): (&[u8], &[u8]) = match status {
        Some(status) => (b", status ", &status.to_be_bytes()),
        None => (b"", b""),
    };
    report::line(&[effect, reason.as_bytes(), between], code);
}
