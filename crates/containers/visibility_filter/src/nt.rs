//! What the filter uses of `ntdll`, for processes of the filter's architecture. Functions and
//! structures that `windows-sys` lacks are from winternl.h and phnt.

use core::ffi::c_void;

pub(crate) use windows_sys::Wdk::Foundation::{NtClose, OBJECT_ATTRIBUTES};
pub(crate) use windows_sys::Wdk::Storage::FileSystem::{
    NtAllocateVirtualMemory, NtFreeVirtualMemory, NtOpenFile, NtOpenProcessToken,
    NtQueryInformationToken, NtQuerySecurityObject, NtQueryVirtualMemory, NtWriteFile,
};
pub(crate) use windows_sys::Wdk::System::Threading::{
    NtQueryInformationProcess, NtTerminateProcess, NtWaitForSingleObject,
};
pub(crate) use windows_sys::Win32::Foundation::{
    HANDLE as Handle, NTSTATUS as Status, STATUS_ACCESS_DENIED, STATUS_BUFFER_TOO_SMALL,
    STATUS_DLL_NOT_FOUND, STATUS_INVALID_PARAMETER, STATUS_NO_MEMORY, STATUS_PENDING,
    STATUS_PROCESS_CLONED, STATUS_SUCCESS,
};
pub(crate) use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;
pub(crate) use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_FREE, MEM_PRIVATE, MEM_RELEASE, MEM_RESERVE, MEMORY_BASIC_INFORMATION,
    PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE, PAGE_READWRITE,
};

/// `NtCurrentProcess()`.
pub(crate) const CURRENT_PROCESS: Handle = core::ptr::without_provenance_mut(usize::MAX);

/// The size of a structure, in the type of the kernel's functions.
#[expect(clippy::cast_possible_truncation, reason = "no structure has 4 GiB")]
pub(crate) const fn structure_size<T>() -> u32 {
    size_of::<T>() as u32
}

/// `UNICODE_STRING`, and `ANSI_STRING` with bytes.
#[repr(C)]
pub(crate) struct Text<T> {
    pub(crate) length: u16,
    pub(crate) maximum_length: u16,
    pub(crate) buffer: *const T,
}

impl<T> Text<T> {
    /// `text`, which must be shorter than 64 KiB.
    pub(crate) fn of(text: &[T]) -> Text<T> {
        let length = u16::try_from(size_of_val(text)).unwrap_or_default();
        Text { length, maximum_length: length, buffer: text.as_ptr() }
    }
}

#[cfg_attr(not(target_arch = "x86"), link(name = "ntdll", kind = "raw-dylib"))]
#[cfg_attr(
    target_arch = "x86",
    link(name = "ntdll", kind = "raw-dylib", import_name_type = "undecorated")
)]
unsafe extern "system" {
    pub(crate) fn NtProtectVirtualMemory(
        process: Handle,
        base: *mut usize,
        size: *mut usize,
        protect: u32,
        old: *mut u32,
    ) -> Status;
    pub(crate) fn NtReadVirtualMemory(
        process: Handle,
        base: usize,
        buffer: *mut c_void,
        size: usize,
        read: *mut usize,
    ) -> Status;
    pub(crate) fn NtWriteVirtualMemory(
        process: Handle,
        base: usize,
        buffer: *const c_void,
        size: usize,
        written: *mut usize,
    ) -> Status;
    #[cfg(not(feature = "dll"))]
    pub(crate) fn NtResumeProcess(process: Handle) -> Status;
    pub(crate) fn LdrLoadDll(
        path: *const u16,
        flags: *mut u32,
        name: *const Text<u16>,
        module: *mut usize,
    ) -> Status;
    pub(crate) fn LdrGetProcedureAddress(
        module: usize,
        name: *const Text<u8>,
        ordinal: u32,
        address: *mut usize,
    ) -> Status;
    pub(crate) fn NtResumeThread(thread: Handle, count: *mut u32) -> Status;
    pub(crate) fn RtlGetCurrentPeb() -> *const Peb;
}

/// The first fields of the process environment block.
#[repr(C)]
pub(crate) struct Peb {
    flags: [usize; 2],
    pub(crate) image: usize,
    loader: usize,
    pub(crate) parameters: *const Parameters,
}

/// The first fields of `RTL_USER_PROCESS_PARAMETERS`.
#[repr(C)]
pub(crate) struct Parameters {
    sizes: [u32; 4],
    console: [usize; 2],
    standard_input: Handle,
    standard_output: Handle,
    pub(crate) standard_error: Handle,
}

// The compiler itself calls these functions. Without these lines, the linker takes them from the
// C runtime, which would then be loaded into every process.
#[cfg(feature = "dll")]
#[expect(dead_code, reason = "only the compiler calls them")]
#[cfg_attr(not(target_arch = "x86"), link(name = "ntdll", kind = "raw-dylib"))]
#[cfg_attr(
    target_arch = "x86",
    link(name = "ntdll", kind = "raw-dylib", import_name_type = "undecorated")
)]
unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void;
    fn memset(to: *mut c_void, value: i32, size: usize) -> *mut c_void;
    fn memcmp(left: *const c_void, right: *const c_void, size: usize) -> i32;
}
