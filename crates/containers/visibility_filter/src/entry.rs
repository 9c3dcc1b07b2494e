//! The library's entry point: finds the payload in the process, and installs the hooks.

use core::ffi::{CStr, c_void};
use core::ptr::null;

use crate::code::CODE_SIZE;
use crate::hook::{HookError, Set, export};
use crate::imports::{HEADERS_SIZE, Image, PAYLOAD};
use crate::memory::Memory;
use crate::nt::{self, Status, Text};
use crate::payload::{self, Payload};
use crate::process_image::end_of_blocks;
use crate::state::State;
use crate::{adapters, children, report, state};

const PROCESS_ATTACH: u32 = 1;

/// The loader calls it. The answer 0 ends a process that must not run unfiltered.
///
/// # Safety
/// Only the loader calls it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn DllMain(
    _module: *mut c_void,
    reason: u32,
    _: *mut c_void,
) -> i32 {
    if reason != PROCESS_ATTACH {
        return 1;
    }
    // Without a payload, the launcher did not load the library. Then it does nothing.
    let Some(payload) = payload() else { return 1 };
    let Err(problem) = install(&payload) else { return 1 };
    if payload.reports() {
        report(&problem, payload.is_required());
    }
    i32::from(!payload.is_required())
}

/// The payload of this process. With nested launchers, it allows what all their payloads allow.
///
/// A payload is near the start of an allocation above the program. The program's import directory
/// does not lead to it reliably, because other tools replace that directory, too.
fn payload() -> Option<Payload> {
    // SAFETY: every process has a process environment block, which is never freed.
    let base = unsafe { nt::RtlGetCurrentPeb().as_ref() }?.image;
    let memory = Memory(nt::CURRENT_PROCESS);
    let mut headers = [0; HEADERS_SIZE];
    memory.read(base, &mut headers).ok()?;
    let image = Image::read(&headers).ok()?;
    let mut found: Option<Payload> = None;
    memory.for_each_allocation(base + image.size as usize, end_of_blocks(&image, base), |start| {
        let mut bytes = [0; payload::SIZE];
        let read = memory.read(start + PAYLOAD, &mut bytes).ok();
        if let Some(next) = read.and_then(|()| Payload::read(&bytes)) {
            found = Some(match found {
                Some(other) => other.within(&next),
                None => next,
            });
        }
    });
    found
}

/// Why this process or its child processes are not filtered.
enum Problem {
    /// The process that loaded the library is not filtered.
    Process(HookError),
    /// The process is filtered, but its child processes are not.
    Children(HookError),
}

/// The hooks of `win32u`, and the functions that they call.
struct Adapters {
    hooks: Set,
    close: usize,
    query: usize,
}

/// Installs the hooks for adapters and the hook for child processes. If one of the two fails, the
/// other is still installed.
fn install(payload: &Payload) -> Result<(), Problem> {
    let ntdll = ntdll().map_err(|status| Problem::Process(HookError::Refused(status)))?;
    let adapters = prepare_adapters(ntdll, payload.is_required());
    let children = Set::prepare(ntdll, &children::hook());
    let known = adapters.as_ref().ok().and_then(Option::as_ref);
    let state = State {
        payload: *payload,
        adapters: known.map_or([0; state::ADAPTER_FUNCTIONS], |known| known.hooks.trampolines),
        close_adapter: known.map_or(0, |known| known.close),
        query_adapter: known.map_or(0, |known| known.query),
        create_process: children.as_ref().map_or(0, |set| set.trampolines[0]),
    };
    store(state).map_err(|status| Problem::Process(HookError::Refused(status)))?;
    let adapters = adapters.and_then(|known| known.map_or(Ok(()), |known| known.hooks.install()));
    let children = children.and_then(|set| set.install());
    adapters.map_err(Problem::Process)?;
    children.map_err(Problem::Children)
}

/// The hooks for adapters. Returns `None` on a Windows without a graphical part, which has no
/// adapters. A process that must be filtered does not run without the hooks.
fn prepare_adapters(ntdll: usize, is_required: bool) -> Result<Option<Adapters>, HookError> {
    let Some(module) = win32u(ntdll).map_err(HookError::Refused)? else {
        return if is_required { Err(HookError::Missing(c"win32u.dll")) } else { Ok(None) };
    };
    Ok(Some(Adapters {
        hooks: Set::prepare(module, &adapters::hooks())?,
        close: required_export(module, c"NtGdiDdDDICloseAdapter")?,
        query: required_export(module, c"NtGdiDdDDIQueryAdapterInfo")?,
    }))
}

fn required_export(module: usize, name: &'static CStr) -> Result<usize, HookError> {
    export(module, name).ok_or(HookError::Missing(name))
}

/// Keeps the state for the life of the process.
fn store(state: State) -> Result<(), Status> {
    let memory = Memory(nt::CURRENT_PROCESS);
    let address = memory.allocate(0, size_of::<State>())?;
    let place = core::ptr::with_exposed_provenance_mut::<State>(address);
    // SAFETY: the memory is new, large enough, and aligned to a page.
    unsafe { place.write(state) };
    state::set(place);
    Ok(())
}

/// `win32u.dll`, loaded if the program has not loaded it. Windows without a graphical part
/// does not have it.
fn win32u(ntdll: usize) -> Result<Option<usize>, Status> {
    const FILE: [u16; 20] = wide(if cfg!(target_arch = "x86") {
        br"\SysWOW64\win32u.dll"
    } else {
        br"\System32\win32u.dll"
    });
    let root = system_root(ntdll);
    let mut path = [0_u16; MAX_ROOT + FILE.len()];
    let mut end = 0;
    // SAFETY: the path ends with a zero, and nothing after it is read.
    while end < MAX_ROOT
        && let character @ 1.. = unsafe { root.add(end).read() }
        && let Some(place) = path.get_mut(end)
    {
        *place = character;
        end += 1;
    }
    for (place, character) in path.iter_mut().skip(end).zip(FILE) {
        *place = character;
    }
    load(path.get(..end + FILE.len()).unwrap_or_default())
}

/// Loads a library, or finds it if it is loaded. Returns `None` if it does not exist.
fn load(name: &[u16]) -> Result<Option<usize>, Status> {
    let text = Text::of(name);
    let mut module = 0;
    // SAFETY: the pointers refer to local variables. The library is `ntdll`, or needs no other
    // library, so the loader can load it while it loads the filter.
    let status =
        unsafe { nt::LdrLoadDll(null(), core::ptr::null_mut(), &raw const text, &raw mut module) };
    match status {
        nt::STATUS_SUCCESS => Ok(Some(module)),
        nt::STATUS_DLL_NOT_FOUND => Ok(None),
        other => Err(other),
    }
}

/// The longest path of the folder of Windows.
const MAX_ROOT: usize = 260;

/// The folder of Windows. The data that the kernel shares with every process has the folder of the
/// host, which may differ from the container's. Old versions of Windows have only this data.
fn system_root(ntdll: usize) -> *const u16 {
    /// `KUSER_SHARED_DATA.NtSystemRoot`, at the same address in every process.
    const SHARED: *const u16 = core::ptr::without_provenance(0x7FFE_0030);
    let Some(function) = export(ntdll, c"RtlGetNtSystemRoot") else { return SHARED };
    // SAFETY: the function has this signature since it exists (phnt, `ntrtl.h`).
    let function = unsafe {
        core::mem::transmute::<usize, unsafe extern "system" fn() -> *const u16>(function)
    };
    // SAFETY: it has no preconditions.
    unsafe { function() }
}

/// `ntdll.dll`, which every process has.
fn ntdll() -> Result<usize, Status> {
    // Wine reads the name up to a zero.
    const NAME: [u16; 10] = wide(b"ntdll.dll\0");
    load(&NAME[..NAME.len() - 1])?.ok_or(nt::STATUS_DLL_NOT_FOUND)
}

/// ASCII as Windows writes it.
const fn wide<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut wide = [0; N];
    let mut n = 0;
    while n < N {
        wide[n] = text[n] as u16;
        n += 1;
    }
    wide
}

fn report(problem: &Problem, refused: bool) {
    let (error, effect): (_, &[u8]) = match problem {
        Problem::Process(error) | Problem::Children(error) if refused => {
            (error, b"this process was not started because of --require: ")
        }
        Problem::Process(error) => (error, b"this process sees every GPU: "),
        Problem::Children(error) => (error, b"child processes see every GPU: "),
    };
    let mut code = [0; CODE_SIZE];
    let (before, what, after, size): (&[u8], &[u8], &[u8], _) = match error {
        HookError::UnknownCode(name, address) => {
            // The code at this address has been read before, to compare it.
            let _ = Memory(nt::CURRENT_PROCESS).read(*address, &mut code);
            (b"the code of ", name.to_bytes(), b" is not known: ", CODE_SIZE)
        }
        HookError::Missing(name) => (b"", name.to_bytes(), b" is missing", 0),
        HookError::Refused(status) => {
            code[..4].copy_from_slice(&status.to_be_bytes());
            (b"", b"Windows does not let the filter change it", b", status ", 4)
        }
    };
    report::line(&[effect, before, what, after], code.get(..size).unwrap_or_default());
}

/// A library without a runtime needs a panic handler, although nothing in it panics. A panic could
/// not be reported.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        // SAFETY: it ends this process.
        let _ = unsafe { nt::NtTerminateProcess(nt::CURRENT_PROCESS, nt::STATUS_NO_MEMORY) };
    }
}
