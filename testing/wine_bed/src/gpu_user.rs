//! What a program in a container does: lists and opens adapters, and starts other programs.

// The functions of Windows are unsafe to call, and some are damaged on purpose.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::transmute;
use std::os::windows::process::CommandExt as _;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use visibility_filter::{HEADERS_SIZE, Image};
use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_ADAPTERINFO, D3DKMT_ENUMADAPTERS, D3DKMT_ENUMADAPTERS2,
};
use windows::Win32::Foundation::{GetHandleInformation, HANDLE, HMODULE, LUID, NTSTATUS, TRUE};
use windows::Win32::System::Console::{CTRL_SHUTDOWN_EVENT, SetConsoleCtrlHandler};
use windows::Win32::System::Environment::GetCommandLineW;
use windows::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress, LoadLibraryW};
use windows::Win32::System::Memory::{PAGE_EXECUTE_READWRITE, VirtualProtect};
use windows::Win32::System::Threading::CREATE_SUSPENDED;
use windows::core::{BOOL, HSTRING, PCSTR, s, w};

const TOO_SMALL: NTSTATUS = NTSTATUS(0xC000_0023_u32.cast_signed());

/// The longest wait for an event.
const PATIENCE: Duration = Duration::from_mins(1);

/// `D3DKMT_OPENADAPTERFROMLUID`.
#[repr(C)]
struct OpenFromLuid {
    luid: i64,
    handle: u32,
}

/// Prints what each function lists, and whether the adapters `luids` can be opened.
pub(crate) fn print_lists(luids: &[&str]) -> Result<()> {
    let mut old = D3DKMT_ENUMADAPTERS::default();
    succeeds(s!("D3DKMTEnumAdapters"), &mut old)?;
    let list = old.Adapters.get(..old.NumAdapters as usize).context("more than 16 adapters")?;
    println!("D3DKMTEnumAdapters {}", shown(list));

    let name = s!("D3DKMTEnumAdapters2");
    let mut count = D3DKMT_ENUMADAPTERS2::default();
    succeeds(name, &mut count)?;
    let mut list = vec![D3DKMT_ADAPTERINFO::default(); count.NumAdapters as usize + 1];
    let mut call =
        D3DKMT_ENUMADAPTERS2 { NumAdapters: count.NumAdapters, pAdapters: list.as_mut_ptr() };
    succeeds(name, &mut call)?;
    list.truncate(call.NumAdapters as usize);
    println!("D3DKMTEnumAdapters2 {} of {}", shown(&list), count.NumAdapters);
    if call.NumAdapters > 1 {
        let mut small = D3DKMT_ENUMADAPTERS2 { NumAdapters: 1, pAdapters: list.as_mut_ptr() };
        ensure!(status(name, &mut small)? == TOO_SMALL, "a list without room is not refused");
    }
    for luid in luids {
        let mut open = OpenFromLuid { luid: luid.parse()?, handle: 0 };
        let status = status(s!("D3DKMTOpenAdapterFromLuid"), &mut open)?;
        println!("open {luid} {:08X} {}", status.0, if open.handle == 0 { "-" } else { "handle" });
    }
    Ok(())
}

fn shown(list: &[D3DKMT_ADAPTERINFO]) -> String {
    let luids: Vec<String> = list.iter().map(luid).collect();
    luids.join(",")
}

fn luid(adapter: &D3DKMT_ADAPTERINFO) -> String {
    let LUID { LowPart, HighPart } = adapter.AdapterLuid;
    (i64::from(HighPart) << 32 | i64::from(LowPart)).to_string()
}

fn succeeds<T>(name: PCSTR, structure: &mut T) -> Result<()> {
    let status = status(name, structure)?;
    ensure!(status.is_ok(), "a function of gdi32 failed with {:08X}", status.0);
    Ok(())
}

fn status<T>(name: PCSTR, structure: &mut T) -> Result<NTSTATUS> {
    // SAFETY: the name is null-terminated.
    let gdi32 = unsafe { LoadLibraryW(w!("gdi32.dll")) }?;
    // SAFETY: the library is loaded, and the name is null-terminated.
    let function = unsafe { GetProcAddress(gdi32, name) }.context("gdi32 lacks a function")?;
    // SAFETY: the functions named above have this signature.
    let function = unsafe {
        transmute::<
            unsafe extern "system" fn() -> isize,
            unsafe extern "system" fn(*mut c_void) -> NTSTATUS,
        >(function)
    };
    // SAFETY: the function takes this structure.
    Ok(unsafe { function(std::ptr::from_mut(structure).cast()) })
}

/// Lists adapters, tries to open the adapter `luid`, and prints how many handles this leaves
/// open.
pub(crate) fn print_open_adapters(luid: &str) -> Result<()> {
    const LISTS: usize = 10;
    /// Wine numbers handles from 1 or from a multiple of 64.
    const LARGEST: u32 = 0x1_0000;
    let mut listed = 0;
    for _ in 0..LISTS {
        let name = s!("D3DKMTEnumAdapters2");
        let mut count = D3DKMT_ENUMADAPTERS2::default();
        succeeds(name, &mut count)?;
        let mut list = vec![D3DKMT_ADAPTERINFO::default(); count.NumAdapters as usize];
        let mut call =
            D3DKMT_ENUMADAPTERS2 { NumAdapters: count.NumAdapters, pAdapters: list.as_mut_ptr() };
        succeeds(name, &mut call)?;
        let mut old = D3DKMT_ENUMADAPTERS::default();
        succeeds(s!("D3DKMTEnumAdapters"), &mut old)?;
        listed += call.NumAdapters + old.NumAdapters;
        let mut open = OpenFromLuid { luid: luid.parse()?, handle: 0 };
        listed += u32::from(status(s!("D3DKMTOpenAdapterFromLuid"), &mut open)?.is_ok());
    }
    let mut open = 0;
    for mut handle in 0..LARGEST {
        open += u32::from(status(s!("D3DKMTCloseAdapter"), &mut handle)?.is_ok());
    }
    println!("{listed} handles returned, {open} open");
    Ok(())
}

/// Loads a filter beside the one that this process has, and lists adapters.
pub(crate) fn load_filter(file: &str) -> Result<()> {
    // SAFETY: the filter's entry point runs in a process like this one.
    unsafe { LoadLibraryW(&HSTRING::from(file)) }?;
    print_lists(&[])
}

/// Changes the code of a function to something unknown, and then loads a filter.
pub(crate) fn damage_and_load_filter(library: &str, function: &str, file: &str) -> Result<()> {
    // 0x90 is `nop`, which replaces the first byte of the code; nobody calls the function
    // afterwards.
    overwrite(code(library, function)?, &[0x90])?;
    load_and_compare(file)
}

/// Makes the import directory of this program begin one library later, as a tool that replaces it
/// may, and then loads a filter.
pub(crate) fn move_imports_and_load_filter(file: &str) -> Result<()> {
    // SAFETY: the handle belongs to this program, which stays loaded.
    let base = unsafe { GetModuleHandleW(None) }?.0.cast::<u8>();
    // SAFETY: the headers of a program lie at its start.
    let headers = unsafe { std::slice::from_raw_parts(base, HEADERS_SIZE) };
    let image = Image::read(headers).ok().context("this program has no headers")?;
    let later = image.imports.rva + 20;
    // SAFETY: the directories lie in the headers.
    let directory = unsafe { base.add(image.directories_rva() as usize) };
    overwrite(directory, &later.to_le_bytes())?;
    load_and_compare(file)
}

/// Loads a filter, and prints whether it is loaded and whether it hooks a function of win32u.
fn load_and_compare(file: &str) -> Result<()> {
    // SAFETY: the code of a function is longer.
    let jump = || {
        code("win32u.dll", "NtGdiDdDDIEnumAdapters").map(|c| unsafe { c.cast::<[u8; 5]>().read() })
    };
    let before = jump()?;
    // SAFETY: the filter's entry point runs in a process like this one.
    let loaded = unsafe { LoadLibraryW(&HSTRING::from(file)) };
    let hooks = if jump()? == before { "hooks nothing" } else { "hooks lists" };
    println!("{}, {hooks}", if loaded.is_ok() { "loaded" } else { "refused" });
    Ok(())
}

/// The code of a function of a library that is loaded.
fn code(library: &str, function: &str) -> Result<*mut u8> {
    // SAFETY: the name is null-terminated.
    let library: HMODULE = unsafe { GetModuleHandleW(&HSTRING::from(library)) }?;
    let name = std::ffi::CString::new(function)?;
    // SAFETY: the library is loaded, and the name is null-terminated.
    let function = unsafe { GetProcAddress(library, PCSTR(name.as_ptr().cast())) };
    Ok(function.context("the library lacks the function")? as *mut u8)
}

/// Changes what nothing may write.
fn overwrite(place: *mut u8, bytes: &[u8]) -> Result<()> {
    let mut old = windows::Win32::System::Memory::PAGE_PROTECTION_FLAGS::default();
    let access = PAGE_EXECUTE_READWRITE;
    // SAFETY: the callers pass a place in this program or in one of its libraries.
    unsafe { VirtualProtect(place.cast(), bytes.len(), access, &raw mut old) }?;
    // SAFETY: as above, and now it may be written.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    Ok(())
}

/// Runs a program with an empty environment.
pub(crate) fn run_without_environment(program: &str, arguments: &[&str]) -> Result<()> {
    let status = Command::new(program).args(arguments).env_clear().status()?;
    ensure!(status.success(), "{program} failed with {status}");
    Ok(())
}

/// Runs the program of a line without quotes, and ends with its exit code.
pub(crate) fn run_line(line: &str) -> Result<()> {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap_or_default()).args(words).status()?;
    std::process::exit(status.code().unwrap_or_default())
}

/// Runs a program `count` times, in two threads, and prints how many handles this process
/// gained. All but some of the programs are ended before they run, which takes less time;
/// the filter has done its work in this process by then.
pub(crate) fn run_children(count: &str, program: &str, arguments: &[&str]) -> Result<()> {
    const EVERY: u32 = 50;
    let children = |count: u32| -> Result<()> {
        for n in 0..count {
            run_child(program, arguments, n % EVERY == 0)?;
        }
        Ok(())
    };
    let both = |count: u32| -> Result<()> {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| children(count / 2));
            children(count - count / 2)?;
            other.join().expect("the thread does not panic")
        })
    };
    // The first calls may load libraries.
    both(4)?;
    let before = handles();
    both(count.parse()?)?;
    println!("gained {} handles", handles().cast_signed() - before.cast_signed());
    Ok(())
}

fn run_child(program: &str, arguments: &[&str], to_its_end: bool) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments);
    if to_its_end {
        let status = command.status()?;
        ensure!(status.success(), "{program} failed with {status}");
        return Ok(());
    }
    let mut child = command.creation_flags(CREATE_SUSPENDED.0).spawn()?;
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// The number of open handles of this process. Wine always answers 0 to
/// `GetProcessHandleCount`, so every number that can be a handle is tried.
fn handles() -> usize {
    const LARGEST: usize = 0x1_0000;
    let is_open = |number: &usize| {
        let mut flags = 0;
        let handle = HANDLE(std::ptr::without_provenance_mut(*number));
        // SAFETY: a number that is not a handle is an error.
        unsafe { GetHandleInformation(handle, &raw mut flags) }.is_ok()
    };
    (4..LARGEST).step_by(4).filter(is_open).count()
}

pub(crate) fn exit(code: &str) -> Result<()> {
    let code: u32 = code.parse()?;
    std::process::exit(code.cast_signed())
}

/// Prints the raw command line.
pub(crate) fn print_command_line() -> Result<()> {
    // SAFETY: the function has no preconditions.
    let text = unsafe { GetCommandLineW() };
    // SAFETY: the text is null-terminated.
    println!("{}", unsafe { text.to_string() }?);
    Ok(())
}

/// Prints `ready`, waits for the event with which a container runtime stops a container, and
/// then exits with 7.
pub(crate) fn wait_for_shutdown() -> Result<()> {
    static EVENTS: std::sync::Mutex<Option<mpsc::Sender<()>>> = std::sync::Mutex::new(None);
    unsafe extern "system" fn on_event(event: u32) -> BOOL {
        let sender = EVENTS.lock().ok().and_then(|events| events.clone());
        if event == CTRL_SHUTDOWN_EVENT
            && let Some(sender) = sender
        {
            let _ = sender.send(());
            std::thread::sleep(PATIENCE);
        }
        TRUE
    }
    let (sender, events) = mpsc::channel();
    *EVENTS.lock().expect("nobody panics with the lock") = Some(sender);
    // SAFETY: the function stays loaded.
    unsafe { SetConsoleCtrlHandler(Some(on_event), true) }?;
    println!("ready");
    if events.recv_timeout(PATIENCE).is_err() {
        bail!("no shutdown event");
    }
    std::process::exit(7)
}
