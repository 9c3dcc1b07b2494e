//! The functions and structures of `ntdll` that the filter uses, for processes of the filter's
//! architecture. Sources: winternl.h, phnt.

use core::ffi::c_void;

/// An NTSTATUS.
pub(crate) type Status = i32;

pub(crate) const STATUS_SUCCESS: Status = 0;
pub(crate) const STATUS_INVALID_PARAMETER: Status = 0xC000_000D_u32.cast_signed();
pub(crate) const STATUS_BUFFER_TOO_SMALL: Status = 0xC000_0023_u32.cast_signed();
pub(crate) const STATUS_NO_MEMORY: Status = 0xC000_0017_u32.cast_signed();
pub(crate) const STATUS_ACCESS_DENIED: Status = 0xC000_0022_u32.cast_signed();
pub(crate) const STATUS_DLL_NOT_FOUND: Status = 0xC000_0135_u32.cast_signed();
pub(crate) const STATUS_PENDING: Status = 0x103;
pub(crate) const STATUS_PROCESS_CLONED: Status = 0x129;

pub(crate) const MEM_COMMIT_RESERVE: u32 = 0x3000;
pub(crate) const MEM_COMMIT: u32 = 0x1000;
pub(crate) const MEM_RELEASE: u32 = 0x8000;
pub(crate) const MEM_FREE: u32 = 0x1_0000;
pub(crate) const MEM_PRIVATE: u32 = 0x2_0000;
pub(crate) const PAGE_READWRITE: u32 = 0x04;
pub(crate) const PAGE_EXECUTE_READ: u32 = 0x20;
pub(crate) const PAGE_EXECUTE_READWRITE: u32 = 0x40;

/// A handle of this process.
pub(crate) type Handle = *mut c_void;

/// `NtCurrentProcess()`.
pub(crate) const CURRENT_PROCESS: Handle = core::ptr::without_provenance_mut(usize::MAX);

/// `MEMORY_BASIC_INFORMATION`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Region {
    pub(crate) base: usize,
    pub(crate) allocation_base: usize,
    /// 32 bits; in a 64-bit process with a partition number.
    pub(crate) allocation_protect: usize,
    pub(crate) size: usize,
    pub(crate) state: u32,
    pub(crate) protect: u32,
    pub(crate) kind: u32,
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

/// `OBJECT_ATTRIBUTES`.
#[repr(C)]
pub(crate) struct ObjectAttributes {
    pub(crate) length: u32,
    pub(crate) root: Handle,
    pub(crate) name: *const Text<u16>,
    pub(crate) attributes: u32,
    pub(crate) security: *const c_void,
    pub(crate) quality: *const c_void,
}

#[cfg_attr(not(target_arch = "x86"), link(name = "ntdll", kind = "raw-dylib"))]
#[cfg_attr(
    target_arch = "x86",
    link(name = "ntdll", kind = "raw-dylib", import_name_type = "undecorated")
)]
unsafe extern "system" {
    pub(crate) fn NtAllocateVirtualMemory(
        process: Handle,
        base: *mut usize,
        zero_bits: usize,
        size: *mut usize,
        kind: u32,
        protect: u32,
    ) -> Status;
    pub(crate) fn NtFreeVirtualMemory(
        process: Handle,
        base: *mut usize,
        size: *mut usize,
        kind: u32,
    ) -> Status;
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
    pub(crate) fn NtQueryVirtualMemory(
        process: Handle,
        base: usize,
        class: u32,
        buffer: *mut c_void,
        size: usize,
        returned: *mut usize,
    ) -> Status;
    pub(crate) fn NtQueryInformationProcess(
        process: Handle,
        class: u32,
        buffer: *mut c_void,
        size: u32,
        returned: *mut u32,
    ) -> Status;
    pub(crate) fn NtOpenFile(
        file: *mut Handle,
        access: u32,
        attributes: *const ObjectAttributes,
        io_status: *mut usize,
        share: u32,
        options: u32,
    ) -> Status;
    pub(crate) fn NtClose(handle: Handle) -> Status;
    #[cfg(not(feature = "dll"))]
    pub(crate) fn NtResumeProcess(process: Handle) -> Status;
    pub(crate) fn NtOpenProcessToken(process: Handle, access: u32, token: *mut Handle) -> Status;
    pub(crate) fn NtQueryInformationToken(
        token: Handle,
        class: u32,
        buffer: *mut c_void,
        size: u32,
        returned: *mut u32,
    ) -> Status;
    pub(crate) fn NtQuerySecurityObject(
        object: Handle,
        parts: u32,
        buffer: *mut c_void,
        size: u32,
        needed: *mut u32,
    ) -> Status;
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
    pub(crate) fn NtTerminateProcess(process: Handle, status: Status) -> Status;
    pub(crate) fn NtWaitForSingleObject(
        handle: Handle,
        alertable: u8,
        timeout: *const i64,
    ) -> Status;
    pub(crate) fn NtWriteFile(
        file: Handle,
        event: Handle,
        routine: *const c_void,
        context: *const c_void,
        io_status: *mut [usize; 2],
        buffer: *const u8,
        length: u32,
        offset: *const i64,
        key: *const u32,
    ) -> Status;
    pub(crate) fn RtlGetCurrentPeb() -> *const Peb;
    pub(crate) fn RtlAllocateHeap(heap: Handle, flags: u32, size: usize) -> *mut c_void;
    pub(crate) fn RtlFreeHeap(heap: Handle, flags: u32, memory: *mut c_void) -> u8;
}

/// The first fields of the process environment block.
#[repr(C)]
pub(crate) struct Peb {
    flags: [usize; 2],
    pub(crate) image: usize,
    loader: usize,
    pub(crate) parameters: *const Parameters,
    subsystem: usize,
    pub(crate) heap: Handle,
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
