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
    let gpu =
        win32u().map(|module| Set::prepare(module, adapters::hooks()).map(|set| (module, set)));
    let gpu = gpu.transpose()?;
    let ntdll = ntdll().map_err(HookError::Refused)?;
    let child = Set::prepare(ntdll, children::hook())?;
    let function = |name| gpu.as_ref().and_then(|(module, _)| export(*module, name));
    let state = State {
        payload: *payload,
        adapters: gpu.as_ref().map_or([0; adapters::COUNT], |(_, set)| set.trampolines),
        close_adapter: function(b"NtGdiDdDDICloseAdapter").unwrap_or_default(),
        query_adapter: function(b"NtGdiDdDDIQueryAdapterInfo").unwrap_or_default(),
        create_process: child.trampolines[0],
    };
    store(state).map_err(HookError::Refused)?;
    if let Some((_, set)) = &gpu {
        set.install()?;
    }
    child.install()
}

/// Keeps the state for the life of the process.
fn store(state: State) -> Result<(), Status> {
    let memory = Memory(nt::CURRENT_PROCESS);
    let address = memory.allocate_between(0x1_0000, usize::MAX >> 17, size_of::<State>())?;
    let place = core::ptr::with_exposed_provenance_mut::<State>(address);
    // SAFETY: the memory is new, large enough, and aligned to a page.
    unsafe { place.write(state) };
    state::set(place);
    Ok(())
}

/// `win32u.dll`, loaded if the program has not loaded it. Windows without a graphical part
/// does not have it, and no adapters either.
fn win32u() -> Option<usize> {
    /// `KUSER_SHARED_DATA.NtSystemRoot`, at the same address in every process.
    const SYSTEM_ROOT: *const [u16; 260] = core::ptr::without_provenance(0x7FFE_0030);
    const FILE: &[u8] = br"\System32\win32u.dll";
    // SAFETY: Windows maps this page into every process, and never changes the root.
    let root = unsafe { SYSTEM_ROOT.read() };
    let end = root.iter().position(|character| *character == 0)?;
    let mut path = [0_u16; 260 + FILE.len()];
    let characters = root.iter().take(end).copied().chain(FILE.iter().copied().map(u16::from));
    for (place, character) in path.iter_mut().zip(characters) {
        *place = character;
    }
    let text = Text::of(path.get(..end + FILE.len())?);
    let mut module = 0;
    // SAFETY: the pointers are those of local variables. The library needs no other one, so
    // the loader can load it while it loads this one.
    let status =
        unsafe { nt::LdrLoadDll(null(), core::ptr::null_mut(), &raw const text, &raw mut module) };
    (status == nt::STATUS_SUCCESS).then_some(module)
}

/// `ntdll.dll`, which every process has.
fn ntdll() -> Result<usize, Status> {
    const NAME: [u16; 9] = {
        let mut name = [0; 9];
        let text = b"ntdll.dll";
        let mut n = 0;
        while n < text.len() {
            name[n] = text[n] as u16;
            n += 1;
        }
        name
    };
    let text = Text::of(&NAME);
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
            report::line(&[effect, b"the code of ", name, b" is not known"]);
        }
        HookError::Refused(status) => {
            let code = report::hexadecimal(status.cast_unsigned());
            report::line(&[effect, b"Windows does not let it change code, status ", &code]);
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
