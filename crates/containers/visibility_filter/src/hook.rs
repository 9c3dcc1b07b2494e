//! Hooks functions of a system library: all of a set, or none.

use core::ffi::CStr;

#[cfg(target_arch = "x86")]
use crate::code::x86 as code;
#[cfg(target_arch = "x86_64")]
use crate::code::x86_64 as code;
use crate::code::{CODE_SIZE, Stub, trampoline};
use crate::memory::{Memory, REACH};
use crate::nt::{self, Status, Text};

/// The offsets of a hook's trampoline and of the next hook, from the hook's relay.
const TRAMPOLINE: usize = 16;
const SLOT: usize = 48;

/// A function to hook.
#[derive(Clone, Copy)]
pub(crate) struct Hook {
    pub(crate) name: &'static CStr,
    /// The address of the function that replaces it.
    pub(crate) replacement: usize,
    /// Whether every Windows has the function.
    pub(crate) is_required: bool,
}

/// Why a set of functions is not hooked.
pub(crate) enum HookError {
    /// The code of this function, at this address, is not known.
    UnknownCode(&'static CStr, usize),
    /// The function does not exist, although every Windows with adapters has it.
    Missing(&'static CStr),
    /// Windows refused to change or run code, with this NTSTATUS.
    Refused(Status),
}

/// The most functions of a set.
const MOST: usize = crate::state::ADAPTER_FUNCTIONS;

/// Functions that are ready to be hooked.
pub(crate) struct Set {
    /// The address of each function, and the jump to its relay.
    functions: [Option<(usize, [u8; 5])>; MOST],
    /// The functions as they were before; 0 for those that do not exist.
    pub(crate) trampolines: [usize; MOST],
}

impl Set {
    /// Writes relays and trampolines for at most [`MOST`] functions, and changes none.
    #[inline(never)]
    pub(crate) fn prepare(module: usize, hooks: &[Hook]) -> Result<Set, HookError> {
        let memory = Memory(nt::CURRENT_PROCESS);
        let size = MOST * SLOT;
        let page = near(memory, module, size).map_err(HookError::Refused)?;
        let mut set = Set { functions: [None; MOST], trampolines: [0; MOST] };
        for (n, hook) in hooks.iter().enumerate() {
            let Some(address) = export(module, hook.name) else { continue };
            let mut found = [0; CODE_SIZE];
            memory.read(address, &mut found).map_err(HookError::Refused)?;
            let place = address as u64;
            let relay = page + n * SLOT;
            let stub = code::stub(&found, place);
            if stub == Stub::WinePlaceholder {
                continue;
            }
            let at = relay as u64;
            let copy = at + TRAMPOLINE as u64;
            let trampoline = trampoline(stub, &found, code::REPLACED, place, copy, code::relay);
            let jump = code::jump(place, at);
            let unknown = HookError::UnknownCode(hook.name, address);
            let (Some(trampoline), Some(jump)) = (trampoline, jump) else { return Err(unknown) };
            let to_hook = code::relay(at, hook.replacement as u64);
            memory.write(relay, &to_hook).map_err(HookError::Refused)?;
            memory.write(relay + TRAMPOLINE, &trampoline).map_err(HookError::Refused)?;
            if let (Some(function), Some(place)) =
                (set.functions.get_mut(n), set.trampolines.get_mut(n))
            {
                *function = Some((address, jump));
                *place = relay + TRAMPOLINE;
            }
        }
        let mut places = hooks.iter().zip(&set.trampolines);
        if let Some((hook, _)) = places.find(|(hook, place)| hook.is_required && **place == 0) {
            return Err(HookError::Missing(hook.name));
        }
        let access = nt::PAGE_EXECUTE_READ;
        memory.protect(page, size, access).map_err(HookError::Refused)?;
        Ok(set)
    }

    /// Hooks the functions.
    pub(crate) fn install(&self) -> Result<(), HookError> {
        let memory = Memory(nt::CURRENT_PROCESS);
        for (address, jump) in self.functions.iter().flatten() {
            let access = nt::PAGE_EXECUTE_READWRITE;
            memory.overwrite(*address, jump, access).map_err(HookError::Refused)?;
        }
        Ok(())
    }
}

/// Memory that every function of `module` reaches with a near jump.
fn near(memory: Memory, module: usize, size: usize) -> Result<usize, Status> {
    // The largest system libraries have some megabytes.
    const SPAN: usize = REACH - 0x400_0000;
    memory
        .allocate_between(module, module.saturating_add(SPAN), size)
        .or_else(|_| memory.allocate_between(module.saturating_sub(SPAN), module, size))
}

/// The address of an exported function.
pub(crate) fn export(module: usize, name: &CStr) -> Option<usize> {
    // Wine reads the name up to its zero.
    let text = Text::of(name.to_bytes());
    let mut address = 0;
    // SAFETY: `module` is a loaded library, and the pointers refer to local variables.
    let status =
        unsafe { nt::LdrGetProcedureAddress(module, &raw const text, 0, &raw mut address) };
    (status == nt::STATUS_SUCCESS && address != 0).then_some(address)
}
