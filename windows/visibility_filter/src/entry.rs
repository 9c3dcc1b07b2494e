//! The library's entry point: finds the payload in the process, and installs the hooks.

use core::ffi::c_void;
use core::ptr::null;

use visibility::{Block, Image, PRECEDING_SIZE, Payload, Unfiltered};

use crate::hook::{HookError, Set, export};
use crate::memory::Memory;
use crate::nt::{self, Status, Text};
use crate::state::State;
use crate::{adapters, children, report, state};

const PROCESS_ATTACH: u32 = 1;

/// The most launchers that a process can be nested in.
const MAX_NESTING: usize = 16;

/// Called by the loader. Answering 0 ends a process that must not run unfiltered.
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
    // Without a payload somebody has loaded the library in another way; it does nothing.
    let Some(payload) = payload() else { return 1 };
    let Err(error) = install(&payload) else { return 1 };
    let refused = payload.unfiltered() == Unfiltered::Refuse;
    report_error(&error, refused);
    i32::from(!refused)
}

/// The payload of this process; that of nested launchers together.
fn payload() -> Option<Payload> {
    // SAFETY: every process has a process environment block, which is never freed.
    let base = unsafe { nt::RtlGetCurrentPeb().as_ref() }?.image;
    let memory = Memory(nt::CURRENT_PROCESS);
    let mut headers = [0; visibility::HEADERS_SIZE];
    memory.read(base, &mut headers).ok()?;
    let mut directory = Image::read(&headers).ok()?.imports;
    let mut found: Option<Payload> = None;
    for _ in 0..MAX_NESTING {
        let mut preceding = [0; PRECEDING_SIZE];
        let before = (directory.rva as usize).checked_sub(PRECEDING_SIZE)?;
        let read = memory.read(base + before, &mut preceding).ok();
        let Some((next, previous)) = read.and_then(|()| Block::payload(&preceding)) else { break };
        found = Some(found.map_or(next, |inner| inner.within(&next)));
        directory = previous;
    }
    found
}

fn install(payload: &Payload) -> Result<(), HookError> {
    let gpu = match win32u().map_err(HookError::Refused)? {
        Some(module) => Some((module, adapter_hooks(module)?)),
        None => None,
    };
    let ntdll = ntdll().map_err(HookError::Refused)?;
    let child = Set::prepare(ntdll, children::hook())?;
    let function = |name| match &gpu {
        Some((module, _)) => export(*module, name).ok_or(HookError::Missing(name)),
        None => Ok(0),
    };
    let state = State {
        payload: *payload,
        adapters: gpu.as_ref().map_or([0; state::ADAPTER_FUNCTIONS], |(_, set)| set.trampolines),
        close_adapter: function(c"NtGdiDdDDICloseAdapter")?,
        query_adapter: function(c"NtGdiDdDDIQueryAdapterInfo")?,
        create_process: child.trampolines[0],
    };
    store(state).map_err(HookError::Refused)?;
    if let Some((_, set)) = &gpu {
        set.install()?;
    }
    child.install()
}

/// The hooks of `win32u`, of which those that every Windows has must exist.
fn adapter_hooks(module: usize) -> Result<Set<{ state::ADAPTER_FUNCTIONS }>, HookError> {
    let hooks = adapters::hooks();
    let set = Set::prepare(module, hooks)?;
    for required in adapters::REQUIRED {
        if set.trampolines[required] == 0 {
            return Err(HookError::Missing(hooks[required].name));
        }
    }
    Ok(set)
}

/// Keeps the state for the life of the process.
fn store(state: State) -> Result<(), Status> {
    let memory = Memory(nt::CURRENT_PROCESS);
    let address = memory.allocate_anywhere(size_of::<State>())?;
    let place = core::ptr::with_exposed_provenance_mut::<State>(address);
    // SAFETY: the memory is new, large enough, and aligned to a page.
    unsafe { place.write(state) };
    state::set(place);
    Ok(())
}

/// `win32u.dll`, loaded if the program has not loaded it. Windows without a graphical part
/// does not have it, and no adapters either.
fn win32u() -> Result<Option<usize>, Status> {
    /// `KUSER_SHARED_DATA.NtSystemRoot`, at the same address in every process.
    const SYSTEM_ROOT: *const [u16; 260] = core::ptr::without_provenance(0x7FFE_0030);
    const FILE: &[u8] =
        if cfg!(target_arch = "x86") { br"\SysWOW64\win32u.dll" } else { br"\System32\win32u.dll" };
    // SAFETY: Windows maps this page into every process, and never changes the root.
    let root = unsafe { SYSTEM_ROOT.read() };
    let end = root.iter().position(|character| *character == 0).unwrap_or_default();
    let mut path = [0_u16; 261 + FILE.len()];
    let characters = root.iter().take(end).copied().chain(FILE.iter().copied().map(u16::from));
    for (place, character) in path.iter_mut().zip(characters) {
        *place = character;
    }
    let text = Text::of(path.get(..end + FILE.len()).unwrap_or_default());
    let mut module = 0;
    // SAFETY: the pointers are those of local variables. The library needs no other one, so
    // the loader can load it while it loads this one.
    let status =
        unsafe { nt::LdrLoadDll(null(), core::ptr::null_mut(), &raw const text, &raw mut module) };
    match status {
        nt::STATUS_SUCCESS => Ok(Some(module)),
        nt::STATUS_DLL_NOT_FOUND => Ok(None),
        other => Err(other),
    }
}

/// `ntdll.dll`, which every process has.
fn ntdll() -> Result<usize, Status> {
    const NAME: &[u8] = b"ntdll.dll";
    // Wine reads the name up to a zero.
    let mut name = [0_u16; NAME.len() + 1];
    for (place, character) in name.iter_mut().zip(NAME) {
        *place = u16::from(*character);
    }
    let text = Text::of(name.get(..NAME.len()).unwrap_or_default());
    let mut module = 0;
    // SAFETY: the pointers are those of local variables.
    let status = unsafe {
        nt::LdrGetDllHandle(null(), core::ptr::null_mut(), &raw const text, &raw mut module)
    };
    if status == nt::STATUS_SUCCESS { Ok(module) } else { Err(status) }
}

fn report_error(error: &HookError, refused: bool) {
    let effect: &[u8] = if refused {
        b"this process was not started because of --require: "
    } else {
        b"this process sees every GPU: "
    };
    match error {
        HookError::UnknownCode(name) => {
            report::line(&[effect, b"the code of ", name.to_bytes(), b" is not known"]);
        }
        HookError::Missing(name) => {
            report::line(&[effect, name.to_bytes(), b" is missing"]);
        }
        HookError::Refused(status) => {
            let code = report::hexadecimal(status.cast_unsigned());
            report::line(&[effect, b"Windows does not let the filter change it, status ", &code]);
        }
    }
}

/// Nothing in the library panics; a panic would have nobody to tell.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        // SAFETY: it ends this process.
        let _ = unsafe { nt::NtTerminateProcess(nt::CURRENT_PROCESS, nt::STATUS_NO_MEMORY) };
    }
}
