//! Sends a console event to a program as hcsshim does when it stops a `HostProcess` container.
#![allow(unsafe_code, reason = "starts a thread in another process")]

use anyhow::{Context, Result, bail};
use windows::Win32::Foundation::{CloseHandle, HANDLE, WAIT_OBJECT_0};
use windows::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows::Win32::System::Threading::{
    CreateRemoteThread, LPTHREAD_START_ROUTINE, OpenProcess, PROCESS_ALL_ACCESS,
    WaitForSingleObject,
};
use windows::core::{s, w};

/// `CTRL_SHUTDOWN_EVENT` of `wincon.h`.
const SHUTDOWN: usize = 6;

/// Starts a thread at `CtrlRoutine` in every process whose program is `file`.
pub(crate) fn send_shutdown(file: &str) -> Result<()> {
    let processes = processes_of(file)?;
    if processes.is_empty() {
        bail!("no process of {file} runs");
    }
    processes.into_iter().try_for_each(send)
}

fn processes_of(file: &str) -> Result<Vec<u32>> {
    // SAFETY: the function has no preconditions.
    let snapshot = Handle(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) }?);
    let size = u32::try_from(size_of::<PROCESSENTRY32W>())?;
    let mut entry = PROCESSENTRY32W { dwSize: size, ..PROCESSENTRY32W::default() };
    let mut found = Vec::new();
    // SAFETY: the snapshot is open, and the entry has its size.
    let mut next = unsafe { Process32FirstW(snapshot.0, &raw mut entry) };
    while next.is_ok() {
        let name = String::from_utf16_lossy(&entry.szExeFile);
        if name.trim_end_matches('\0').eq_ignore_ascii_case(file) {
            found.push(entry.th32ProcessID);
        }
        // SAFETY: as above.
        next = unsafe { Process32NextW(snapshot.0, &raw mut entry) };
    }
    Ok(found)
}

fn send(process: u32) -> Result<()> {
    // SAFETY: kernel32.dll is loaded in every process.
    let kernel32 = unsafe { GetModuleHandleW(w!("kernel32.dll")) }?;
    // SAFETY: the name is null-terminated.
    let routine = unsafe { GetProcAddress(kernel32, s!("CtrlRoutine")) };
    let routine = routine.context("kernel32.dll has no CtrlRoutine")?;
    // SAFETY: CtrlRoutine is a thread function. kernel32.dll has the same address in every process.
    let routine = unsafe {
        std::mem::transmute::<unsafe extern "system" fn() -> isize, LPTHREAD_START_ROUTINE>(routine)
    };
    // SAFETY: the function has no preconditions.
    let process = Handle(unsafe { OpenProcess(PROCESS_ALL_ACCESS, false, process) }?);
    let event = std::ptr::without_provenance(SHUTDOWN);
    // SAFETY: the process is open, and the routine takes the number of the event as its pointer.
    match unsafe { CreateRemoteThread(process.0, None, 0, routine, Some(event), 0, None) } {
        Ok(thread) => drop(Handle(thread)),
        // One that has just ended, as the plugin's short-lived children do, takes no thread.
        // SAFETY: the process is open.
        Err(_) if unsafe { WaitForSingleObject(process.0, 0) } == WAIT_OBJECT_0 => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// An open handle, which `Drop` closes.
struct Handle(HANDLE);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and owned by this value. There is no useful reaction to an
        // error.
        let _ = unsafe { CloseHandle(self.0) };
    }
}
