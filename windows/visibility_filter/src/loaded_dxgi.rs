//! The libraries of DXGI in the process: whoever gets the address of a function that
//! creates a factory gets that of its replacement in [`dxgi_factory`](crate::dxgi_factory).
//!
//! The code of these functions is not known, so it stays as it is. Their addresses are
//! replaced where the loader and programs find them: in the library's list of exports, and
//! in the imports of libraries that have been loaded already. The loader reports each
//! library before the library runs.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use visibility::{Directory, HEADERS_SIZE, Image, export_slot, far_jump, import_slots};

use crate::dxgi_factory::{self, FUNCTIONS, MAX_LIBRARIES};
use crate::hook::export;
use crate::memory::{Memory, REACH};
use crate::nt::{self, LoadedLibrary, LoadedModule, Status, Text};

const LIBRARY: &[u8] = b"dxgi.dll";
const NAMES: [&CStr; FUNCTIONS] =
    [c"CreateDXGIFactory", c"CreateDXGIFactory1", c"CreateDXGIFactory2"];

/// `LDR_DLL_NOTIFICATION_REASON_LOADED` and `…_UNLOADED`.
const LOADED: u32 = 1;
const UNLOADED: u32 = 2;

/// The distance between two relays.
const SLOT: usize = 16;

const MEMORY: Memory = Memory(nt::CURRENT_PROCESS);

/// The address of each library, and of its relays; 0 without a library.
static LIBRARIES: [AtomicUsize; MAX_LIBRARIES] = [const { AtomicUsize::new(0) }; MAX_LIBRARIES];
static RELAYS: [AtomicUsize; MAX_LIBRARIES] = [const { AtomicUsize::new(0) }; MAX_LIBRARIES];

/// Replaces the functions of the libraries that are loaded, and of those that will be.
pub(crate) fn watch() -> Result<(), Status> {
    let (none, mut cookie) = (core::ptr::null_mut(), 0);
    // SAFETY: the callback stays loaded, and the cookie is a local variable.
    let status = unsafe { nt::LdrRegisterDllNotification(0, on_library, none, &raw mut cookie) };
    if status != nt::STATUS_SUCCESS {
        return Err(status);
    }
    for_each_module(find);
    Ok(())
}

/// The loader calls it with its lock, so not at the same time in two threads.
unsafe extern "system" fn on_library(reason: u32, library: *const LoadedLibrary, _: *mut c_void) {
    // SAFETY: the loader passes this structure.
    let Some(library) = (unsafe { library.as_ref() }) else { return };
    // SAFETY: the name lives until this function returns.
    let Some(name) = (unsafe { library.name.as_ref() }) else { return };
    match (reason, is_dxgi(name)) {
        (LOADED, true) => add(library.base),
        (LOADED, false) => replace_imports(library.base),
        (UNLOADED, true) => remove(library.base),
        _ => {}
    }
}

unsafe extern "system" fn find(module: *const LoadedModule, _: *mut c_void, _: *mut u8) {
    // SAFETY: the loader passes this structure.
    if let Some(module) = unsafe { module.as_ref() }
        && is_dxgi(&module.name)
    {
        add(module.base);
    }
}

unsafe extern "system" fn replace(module: *const LoadedModule, _: *mut c_void, _: *mut u8) {
    // SAFETY: the loader passes this structure.
    if let Some(module) = unsafe { module.as_ref() } {
        replace_imports(module.base);
    }
}

fn for_each_module(callback: unsafe extern "system" fn(*const LoadedModule, *mut c_void, *mut u8)) {
    // SAFETY: the callback only reads the module, while the loader keeps it.
    let _ = unsafe { nt::LdrEnumerateLoadedModules(0, callback, core::ptr::null_mut()) };
}

fn is_dxgi(name: &Text<u16>) -> bool {
    let length = usize::from(name.length) / 2;
    if length != LIBRARY.len() || name.buffer.is_null() {
        return false;
    }
    // SAFETY: the text has as many characters.
    let name = unsafe { core::slice::from_raw_parts(name.buffer, length) };
    let same = |(a, b): (&u16, &u8)| u8::try_from(*a).is_ok_and(|a| a.eq_ignore_ascii_case(b));
    name.iter().zip(LIBRARY).all(same)
}

/// Replaces the functions of the DXGI at `base`. The loader reports one that was there
/// before this library too.
fn add(base: usize) {
    if index_of(base).is_some() {
        return;
    }
    if let Err(status) = replace_exports(base) {
        dxgi_factory::report_unfiltered(status);
    }
    for_each_module(replace);
}

/// Forgets the DXGI at `base`, which nobody uses any more.
fn remove(base: usize) {
    let Some(index) = index_of(base) else { return };
    if let (Some(library), Some(relays)) = (LIBRARIES.get(index), RELAYS.get(index)) {
        library.store(0, Ordering::Release);
        MEMORY.free(relays.swap(0, Ordering::AcqRel));
    }
}

fn index_of(base: usize) -> Option<usize> {
    LIBRARIES.iter().position(|library| library.load(Ordering::Acquire) == base)
}

fn replace_exports(base: usize) -> Result<(), Status> {
    let index = index_of(0).ok_or(nt::STATUS_NO_MEMORY)?;
    let exports = exports(base).ok_or(nt::STATUS_INVALID_PARAMETER)?;
    let functions = NAMES.map(|name| export(base, name).unwrap_or_default());
    dxgi_factory::set_functions(index, functions);
    let relays = relays(base, index)?;
    for (table, value) in [(&RELAYS, relays), (&LIBRARIES, base)] {
        if let Some(place) = table.get(index) {
            place.store(value, Ordering::Release);
        }
    }
    let mut result = Ok(());
    for (n, function) in functions.into_iter().enumerate().filter(|(_, f)| *f != 0) {
        let replaced = replace_export(base, exports, function, relays + n * SLOT);
        result = result.and(replaced);
    }
    result
}

/// The directory of exports of the library at `base`.
fn exports(base: usize) -> Option<Directory> {
    let mut directory = [0; 8];
    MEMORY.read(base + image(base)?.exports_rva() as usize, &mut directory).ok()?;
    let [a, b, c, d, size @ ..] = directory;
    Some(Directory { rva: u32::from_le_bytes([a, b, c, d]), size: u32::from_le_bytes(size) })
}

/// Jumps to the replacements. They lie above the library: addresses of exported functions
/// are unsigned distances of 32 bits.
fn relays(base: usize, index: usize) -> Result<usize, Status> {
    let relays = MEMORY.allocate_between(base, base + REACH, FUNCTIONS * SLOT)?;
    for (n, replacement) in dxgi_factory::replacements(index).into_iter().enumerate() {
        MEMORY.write(relays + n * SLOT, &far_jump(replacement as u64))?;
    }
    MEMORY.protect(relays, FUNCTIONS * SLOT, nt::PAGE_EXECUTE_READ)?;
    Ok(relays)
}

fn replace_export(
    base: usize,
    exports: Directory,
    function: usize,
    relay: usize,
) -> Result<(), Status> {
    let distance = |address: usize| u32::try_from(address.wrapping_sub(base)).ok();
    let slot = distance(function).and_then(|rva| export_slot(reader(base), exports, rva));
    let (Some(slot), Some(relay)) = (slot, distance(relay)) else {
        return Err(nt::STATUS_INVALID_PARAMETER);
    };
    MEMORY.overwrite(base + slot as usize, &relay.to_le_bytes(), nt::PAGE_READWRITE)
}

/// Replaces what the module at `base` has imported of every DXGI.
fn replace_imports(base: usize) {
    if RELAYS.iter().all(|relays| relays.load(Ordering::Acquire) == 0) {
        return;
    }
    let Some(image) = image(base) else { return };
    let found = |slot: u32, address: u64| {
        for (index, relays) in RELAYS.iter().enumerate() {
            let relays = relays.load(Ordering::Acquire);
            let functions = dxgi_factory::functions(index);
            let same = functions.iter().position(|function| *function as u64 == address);
            if let (Some(n), true) = (same, relays != 0) {
                let relay = relays + n * SLOT;
                // Imports that stay writable are as good.
                let _ = MEMORY.overwrite(
                    base + slot as usize,
                    &relay.to_le_bytes(),
                    nt::PAGE_READWRITE,
                );
            }
        }
    };
    // An unusual library keeps its imports.
    let _ = import_slots(reader(base), image.imports, LIBRARY, found);
}

fn image(base: usize) -> Option<Image> {
    let mut headers = [0; HEADERS_SIZE];
    MEMORY.read(base, &mut headers).ok()?;
    Image::read(&headers).ok()
}

/// Reads the memory of the image at `base`.
fn reader(base: usize) -> impl Fn(u32, &mut [u8]) -> Option<()> {
    move |at, buffer| MEMORY.read(base + at as usize, buffer).ok()
}
