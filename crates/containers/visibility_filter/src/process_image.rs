//! Makes a process that has not run yet load the filter, by a new import table.

use core::ffi::c_void;

use windows_sys::Wdk::Storage::FileSystem::FILE_NON_DIRECTORY_FILE;
use windows_sys::Wdk::System::Threading::{
    PROCESSINFOCLASS, ProcessBasicInformation, ProcessMitigationPolicy, ProcessWow64Information,
};
use windows_sys::Win32::Foundation::OBJ_CASE_INSENSITIVE;
use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, TOKEN_QUERY, TokenIsAppContainer};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_EXECUTE, FILE_READ_DATA, FILE_SHARE_DELETE, FILE_SHARE_READ, READ_CONTROL,
};

use crate::architecture::Architecture;
use crate::filter_file::admits_app_containers;
use crate::imports::{
    BEFORE_IMPORTS, Directory, HEADERS_SIZE, Image, MAX_IMPORTS_SIZE, block_size, imports_length,
};
use crate::memory::{Memory, REACH};
use crate::not_filtered::NotFiltered;
use crate::nt::{self, Handle, IO_STATUS_BLOCK, OBJECT_ATTRIBUTES, Status, Text};
use crate::payload::{MAX_PATH_LENGTH, Payload};

/// Policies that prevent a process from loading the filter, and their flags (winnt.h).
/// `ProcessSignaturePolicy` admits only libraries that Microsoft or its store signed. `StrictMode`
/// of `ProcessControlFlowGuardPolicy` admits only libraries with Control Flow Guard.
/// `ProcessUserShadowStackPolicy` admits only libraries with CET.
const POLICIES: [(u32, u32, NotFiltered); 3] = [
    (8, 0b11, NotFiltered::SignedOnly),
    (7, 0b100, NotFiltered::StrictGuard),
    (15, 0b110_0000, NotFiltered::StrictShadowStack),
];

/// Where the process environment block has the address of the program, in 64-bit and in
/// 32-bit processes.
const IMAGE_IN_PEB: usize = 0x10;
const IMAGE_IN_PEB_32: usize = 8;

/// The end of the addresses that every 32-bit process can use.
const END_32: usize = 0x7FFE_0000;

/// How much of a program's import table is read at once.
const CHUNK: usize = 1000;

/// Makes a process load the filter before its program starts. `process` is a handle of a
/// process whose only thread is suspended and has never run. If this fails, the process is
/// as it was before.
// Inlining it into its caller makes the library larger.
#[inline(never)]
pub fn filter(process: *mut c_void, payload: &Payload) -> Result<(), NotFiltered> {
    let memory = Memory(process);
    let (architecture, base) = program(process, memory)?;
    // A process whose imports name a file that cannot be loaded does not start at all.
    match payload.path(architecture) {
        [] => return Err(NotFiltered::No32BitFilter),
        path => check_file(path, is_in_app_container(process))?,
    }
    for (policy, flags, why) in POLICIES {
        // Older versions of Windows and Wine do not know every policy.
        let [_, set] = query(process, ProcessMitigationPolicy, [policy, 0]).unwrap_or_default();
        if set & flags != 0 {
            return Err(why);
        }
    }
    let mut headers = [0; HEADERS_SIZE];
    memory.read(base, &mut headers)?;
    let image = Image::read(&headers)?;
    if image.architecture != architecture {
        return Err(NotFiltered::UnusualProgram);
    }
    let imports = imports_size(memory, base, &image)?;
    let size = block_size(imports);
    let above = base + image.size as usize;
    let block = memory.allocate_between(above, end_of_blocks(&image, base), size)?;
    change_imports(memory, base, &image, block, payload, imports).inspect_err(|_| {
        memory.free(block);
    })
}

/// Lets a suspended process run. `process` is a handle of it. An error is an NTSTATUS.
#[cfg(not(feature = "dll"))]
pub fn resume(process: *mut c_void) -> Result<(), i32> {
    Memory(process).resume()
}

/// The end of the addresses that the block of a program at `base` can have.
pub(crate) fn end_of_blocks(image: &Image, base: usize) -> usize {
    match image.architecture {
        Architecture::X64 => base + REACH,
        Architecture::X86 => END_32,
    }
}

/// The address of the 32-bit process environment block of a process; `None` for a 64-bit one.
/// `process` is a handle of a process.
#[must_use]
pub fn environment_block_32(process: *mut c_void) -> Option<usize> {
    query(process, ProcessWow64Information, [0_usize])
        .ok()
        .map(|[block]| block)
        .filter(|block| *block != 0)
}

/// The architecture of a process, and the address of its program.
fn program(process: Handle, memory: Memory) -> Result<(Architecture, usize), NotFiltered> {
    let peb_32 = query(process, ProcessWow64Information, [0_usize])?[0];
    if peb_32 != 0 {
        let base = memory.pointer(peb_32 + IMAGE_IN_PEB_32, Architecture::X86)?;
        return Ok((Architecture::X86, base));
    }
    if cfg!(target_arch = "x86") {
        return Err(NotFiltered::StartedBy32Bit);
    }
    let peb = query(process, ProcessBasicInformation, [0_usize; 6])?[1];
    let base = memory.pointer(peb + IMAGE_IN_PEB, Architecture::X64)?;
    Ok((Architecture::X64, base))
}

/// The size of the program's import descriptors.
fn imports_size(memory: Memory, base: usize, image: &Image) -> Result<usize, NotFiltered> {
    if image.imports.rva == 0 {
        return Ok(0);
    }
    // A program's own table may be near the end of the program's memory. The table of an outer
    // launcher is above the program, and its stated size is correct.
    let Directory { rva, size: stated } = image.imports;
    let limit = image.size.checked_sub(rva).unwrap_or(stated) as usize;
    let mut chunk = [0; CHUNK];
    let mut size = 0;
    while size < limit.min(MAX_IMPORTS_SIZE) {
        let length = (limit - size).min(CHUNK);
        let chunk = chunk.get_mut(..length).unwrap_or_default();
        memory.read(base + rva as usize + size, chunk)?;
        if let Some(rest) = imports_length(chunk) {
            return Ok(size + rest);
        }
        if length < CHUNK {
            break;
        }
        size += CHUNK;
    }
    Err(NotFiltered::UnusualProgram)
}

/// Writes the block, and then the directories that refer to it.
fn change_imports(
    memory: Memory,
    base: usize,
    image: &Image,
    block: usize,
    payload: &Payload,
    imports: usize,
) -> Result<(), NotFiltered> {
    let unusual = NotFiltered::UnusualProgram;
    let rva = u32::try_from(block - base).map_err(|_| unusual)?;
    let mut own = [0; BEFORE_IMPORTS];
    let directory = image.write_block(&mut own, rva, payload, imports).ok_or(unusual)?;
    memory.write(block, &own)?;
    let mut chunk = [0; CHUNK];
    for start in (0..imports).step_by(CHUNK) {
        let length = (imports - start).min(CHUNK);
        let chunk = chunk.get_mut(..length).ok_or(unusual)?;
        memory.read(base + image.imports.rva as usize + start, chunk)?;
        memory.write(block + BEFORE_IMPORTS + start, chunk)?;
    }
    let at = base + image.directories_rva() as usize;
    let mut directories = [0; Image::DIRECTORIES_SIZE];
    memory.read(at, &mut directories)?;
    image.directories(directory, &mut directories).ok_or(unusual)?;
    Ok(memory.overwrite(at, &directories, nt::PAGE_READWRITE)?)
}

/// Asks about a process. The kernel reads `value` and replaces it with the answer.
fn query<T: Copy, const N: usize>(
    process: Handle,
    class: PROCESSINFOCLASS,
    mut value: [T; N],
) -> Result<[T; N], Status> {
    let size = nt::structure_size::<[T; N]>();
    let pointer = value.as_mut_ptr().cast::<c_void>();
    let mut returned = 0;
    // SAFETY: the kernel writes at most `size` bytes to `value`. Its elements are numbers,
    // so every pattern of bits is valid.
    let status =
        unsafe { nt::NtQueryInformationProcess(process, class, pointer, size, &raw mut returned) };
    if status == nt::STATUS_SUCCESS { Ok(value) } else { Err(status) }
}

/// Whether a process runs in an `AppContainer`, if Windows says so.
fn is_in_app_container(process: Handle) -> bool {
    let mut token = core::ptr::null_mut();
    let mut answer = 0_u32;
    let mut size = 0;
    // SAFETY: the place is a local variable.
    if unsafe { nt::NtOpenProcessToken(process, TOKEN_QUERY, &raw mut token) } != 0 {
        return false;
    }
    // SAFETY: the token is open, and the answer has four bytes.
    let status = unsafe {
        let answer = (&raw mut answer).cast();
        nt::NtQueryInformationToken(token, TokenIsAppContainer, answer, 4, &raw mut size)
    };
    // SAFETY: the handle is open and belongs to this function.
    let _ = unsafe { nt::NtClose(token) };
    status == nt::STATUS_SUCCESS && answer != 0
}

/// Checks that this process can load the file at an absolute path of ASCII characters, and that an
/// `AppContainer` can, if asked.
fn check_file(path: &[u8], in_app_container: bool) -> Result<(), NotFiltered> {
    const PREFIX: &[u8] = br"\??\";
    let mut name = [0_u16; PREFIX.len() + MAX_PATH_LENGTH];
    let characters = PREFIX.iter().chain(path);
    for (place, character) in name.iter_mut().zip(characters) {
        *place = u16::from(*character);
    }
    let text = Text::of(name.get(..PREFIX.len() + path.len()).unwrap_or_default());
    let file = OBJECT_ATTRIBUTES {
        Length: nt::structure_size::<OBJECT_ATTRIBUTES>(),
        ObjectName: (&raw const text).cast(),
        Attributes: OBJ_CASE_INSENSITIVE,
        ..OBJECT_ATTRIBUTES::default()
    };
    let mut handle = core::ptr::null_mut();
    let mut io_status = IO_STATUS_BLOCK::default();
    // As for a library.
    let access = FILE_READ_DATA | FILE_EXECUTE | if in_app_container { READ_CONTROL } else { 0 };
    // SAFETY: the structures live until the call returns.
    let status = unsafe {
        let handle = &raw mut handle;
        let file = &raw const file;
        let io_status = &raw mut io_status;
        let share = FILE_SHARE_READ | FILE_SHARE_DELETE;
        nt::NtOpenFile(handle, access, file, io_status, share, FILE_NON_DIRECTORY_FILE)
    };
    if status != nt::STATUS_SUCCESS {
        return Err(NotFiltered::FilterUnreadable);
    }
    let admits = !in_app_container || admits_app_containers(&descriptor(handle));
    // SAFETY: the handle is open and belongs to this function.
    let _ = unsafe { nt::NtClose(handle) };
    if admits { Ok(()) } else { Err(NotFiltered::AppContainer) }
}

/// The access list of an open file, in a `SECURITY_DESCRIPTOR_RELATIVE`. An access list that is too
/// long is returned as zeros.
fn descriptor(file: Handle) -> [u8; 1024] {
    // The kernel accepts only an aligned address.
    #[repr(align(8))]
    struct Buffer([u8; 1024]);
    let mut buffer = Buffer([0; 1024]);
    let mut needed = 0;
    // SAFETY: the buffer has this size.
    let _ = unsafe {
        let place = buffer.0.as_mut_ptr().cast();
        nt::NtQuerySecurityObject(file, DACL_SECURITY_INFORMATION, place, 1024, &raw mut needed)
    };
    buffer.0
}
