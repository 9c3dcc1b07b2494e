//! DXGI's factories without the hidden adapters.
//!
//! The functions that create a factory call the real one, and replace the methods of the
//! factory that list or find adapters. Objects of the same class share their tables of
//! methods, so a factory that is reached in another way is filtered too. Interfaces and
//! methods are those of `dxgi.h`, `dxgi1_4.h` and `dxgi1_6.h`.

use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use visibility::{AdapterType, Unfiltered, is_visible};

use crate::memory::Memory;
use crate::{nt, report, state};

/// The functions that create factories, and the most libraries with them.
pub(crate) const FUNCTIONS: usize = 3;
pub(crate) const MAX_LIBRARIES: usize = 2;

/// An HRESULT.
type Hresult = i32;
const SUCCESS: Hresult = 0;
/// `DXGI_ERROR_NOT_FOUND`.
const NOT_FOUND: Hresult = 0x887A_0002_u32.cast_signed();
/// `E_FAIL`.
const FAILED: Hresult = 0x8000_4005_u32.cast_signed();

/// An interface: a pointer to a pointer to its methods.
type Object = *mut c_void;
type Iid = [u32; 4];

const QUERY_INTERFACE: usize = 0;
const RELEASE: usize = 2;

/// `IDXGIAdapter1` and its `GetDesc1`.
const ADAPTER: Iid = [0x2903_8F61, 0x4626_3839, 0x6808_FD91, 0x051A_0179];
const GET_DESCRIPTION: usize = 10;

/// A method that is replaced.
struct Method {
    /// The oldest interface that has it.
    interface: Iid,
    /// Its number there.
    number: usize,
    replacement: usize,
}

const METHODS: usize = 4;
const ENUM: usize = 0;
const ENUM1: usize = 1;
const BY_LUID: usize = 2;
const BY_PREFERENCE: usize = 3;

fn methods() -> [Method; METHODS] {
    [
        // IDXGIFactory.
        Method {
            interface: [0x7B71_66EC, 0x44AE_21C7, 0xAEC9_1AB2, 0x69E3_1A32],
            number: 7,
            replacement: enum_adapters as EnumAdapters as usize,
        },
        // IDXGIFactory1.
        Method {
            interface: [0x770A_AE78, 0x4DBA_F26F, 0x3C25_29A8, 0x87B3_D183],
            number: 12,
            replacement: enum_adapters1 as EnumAdapters as usize,
        },
        // IDXGIFactory4.
        Method {
            interface: [0x1BC6_EA02, 0x464F_EF36, 0xCA21_0CBF, 0x8A16_E539],
            number: 26,
            replacement: enum_by_luid as ByLuid as usize,
        },
        // IDXGIFactory6.
        Method {
            interface: [0xC1B6_694F, 0x44A9_FF09, 0x9077_3CB0, 0x171D_0A0A],
            number: 29,
            replacement: enum_by_preference as ByPreference as usize,
        },
    ]
}

type QueryInterface = unsafe extern "system" fn(Object, *const Iid, *mut Object) -> Hresult;
type Release = unsafe extern "system" fn(Object) -> u32;
type GetDescription = unsafe extern "system" fn(Object, *mut Description) -> Hresult;
type Create = unsafe extern "system" fn(*const Iid, *mut Object) -> Hresult;
type Create2 = unsafe extern "system" fn(u32, *const Iid, *mut Object) -> Hresult;
type EnumAdapters = unsafe extern "system" fn(Object, u32, *mut Object) -> Hresult;
type ByLuid = unsafe extern "system" fn(Object, i64, *const Iid, *mut Object) -> Hresult;
type ByPreference = unsafe extern "system" fn(Object, u32, u32, *const Iid, *mut Object) -> Hresult;

/// `DXGI_ADAPTER_DESC1`.
#[repr(C)]
#[derive(Default)]
struct Description {
    name: [[u16; 32]; 4],
    identifiers: [u32; 4],
    memory: [usize; 3],
    luid: [u32; 2],
    flags: u32,
}

/// The real functions of each library.
static REAL: [[AtomicUsize; FUNCTIONS]; MAX_LIBRARIES] =
    [const { [const { AtomicUsize::new(0) }; FUNCTIONS] }; MAX_LIBRARIES];

/// Sets the real functions of a library; 0 for one that it does not have.
pub(crate) fn set_functions(library: usize, functions: [usize; FUNCTIONS]) {
    for (place, function) in REAL.get(library).into_iter().flatten().zip(functions) {
        place.store(function, Ordering::Release);
    }
}

/// What [`set_functions`] set.
pub(crate) fn functions(library: usize) -> [usize; FUNCTIONS] {
    core::array::from_fn(|n| real(library, n))
}

fn real(library: usize, function: usize) -> usize {
    let place = REAL.get(library).and_then(|functions| functions.get(function));
    place.map_or(0, |place| place.load(Ordering::Acquire))
}

/// The functions that replace those of a library.
pub(crate) fn replacements(library: usize) -> [usize; FUNCTIONS] {
    if library == 0 {
        [
            create::<0, 0> as Create as usize,
            create::<0, 1> as Create as usize,
            create2::<0> as Create2 as usize,
        ]
    } else {
        [
            create::<1, 0> as Create as usize,
            create::<1, 1> as Create as usize,
            create2::<1> as Create2 as usize,
        ]
    }
}

unsafe extern "system" fn create<const LIBRARY: usize, const FUNCTION: usize>(
    interface: *const Iid,
    factory: *mut Object,
) -> Hresult {
    // SAFETY: both functions have this signature; a relay leads here only if it exists.
    let real = unsafe { transmute::<usize, Create>(real(LIBRARY, FUNCTION)) };
    // SAFETY: the arguments are the caller's.
    let result = unsafe { real(interface, factory) };
    created(result, factory)
}

unsafe extern "system" fn create2<const LIBRARY: usize>(
    flags: u32,
    interface: *const Iid,
    factory: *mut Object,
) -> Hresult {
    // SAFETY: the function has this signature; a relay leads here only if it exists.
    let real = unsafe { transmute::<usize, Create2>(real(LIBRARY, 2)) };
    // SAFETY: the arguments are the caller's.
    let result = unsafe { real(flags, interface, factory) };
    created(result, factory)
}

/// Replaces the methods of a new factory.
fn created(result: Hresult, factory: *mut Object) -> Hresult {
    if result == SUCCESS {
        // SAFETY: a successful call has set the caller's pointer.
        let factory = unsafe { *factory };
        for (n, method) in methods().iter().enumerate() {
            if let Some(interface) = query(factory, &method.interface) {
                replace(interface, n, method);
                release(interface);
            }
        }
    }
    result
}

/// The most tables of methods; a library has one or two.
const MAX_TABLES: usize = 8;

/// The addresses of changed tables, and their own methods.
static TABLES: [AtomicUsize; MAX_TABLES] = [const { AtomicUsize::new(0) }; MAX_TABLES];
static ORIGINALS: [[AtomicUsize; METHODS]; MAX_TABLES] =
    [const { [const { AtomicUsize::new(0) }; METHODS] }; MAX_TABLES];

/// Held while a table is changed.
static LOCK: AtomicUsize = AtomicUsize::new(0);

fn replace(interface: Object, n: usize, method: &Method) {
    // SAFETY: the lock is a slim reader/writer lock, whose initial value is 0.
    unsafe { nt::RtlAcquireSRWLockExclusive(LOCK.as_ptr()) };
    if let Err(status) = replace_locked(table(interface), n, method) {
        report_unfiltered(status);
    }
    // SAFETY: this thread holds the lock.
    unsafe { nt::RtlReleaseSRWLockExclusive(LOCK.as_ptr()) };
}

/// Reports a DXGI that is not filtered; with `--require` the process does not continue.
pub(crate) fn report_unfiltered(status: nt::Status) {
    let code = report::hexadecimal(status.cast_unsigned());
    let refused =
        state::get().is_some_and(|state| state.payload.unfiltered() == Unfiltered::Refuse);
    let effect: &[u8] = if refused {
        b"this process was ended because of --require: it would see every GPU"
    } else {
        b"this process sees every GPU"
    };
    report::line(&[effect, b" through a dxgi.dll that cannot be filtered, status ", &code]);
    if refused {
        // SAFETY: it ends this process.
        let _ = unsafe { nt::NtTerminateProcess(nt::CURRENT_PROCESS, nt::STATUS_ACCESS_DENIED) };
    }
}

fn replace_locked(table: usize, n: usize, method: &Method) -> Result<(), nt::Status> {
    let memory = Memory(nt::CURRENT_PROCESS);
    let place = table + method.number * size_of::<usize>();
    let mut current = [0; size_of::<usize>()];
    memory.read(place, &mut current)?;
    let current = usize::from_le_bytes(current);
    if current == method.replacement {
        return Ok(());
    }
    let known = |address: usize| TABLES.iter().position(|t| t.load(Ordering::Relaxed) == address);
    let index = known(table).or_else(|| known(0)).ok_or(nt::STATUS_NO_MEMORY)?;
    let (Some(address), Some(original)) =
        (TABLES.get(index), ORIGINALS.get(index).and_then(|originals| originals.get(n)))
    else {
        return Ok(());
    };
    original.store(current, Ordering::Release);
    address.store(table, Ordering::Release);
    memory.overwrite(place, &method.replacement.to_le_bytes(), nt::PAGE_READWRITE)
}

/// The method that was replaced; 0 if none was.
fn original(interface: Object, method: usize) -> usize {
    let table = table(interface);
    let index = TABLES.iter().position(|t| t.load(Ordering::Acquire) == table);
    let place = index.and_then(|index| ORIGINALS.get(index)?.get(method));
    place.map_or(0, |place| place.load(Ordering::Acquire))
}

unsafe extern "system" fn enum_adapters(
    factory: Object,
    index: u32,
    adapter: *mut Object,
) -> Hresult {
    list(factory, ENUM, index, adapter)
}

unsafe extern "system" fn enum_adapters1(
    factory: Object,
    index: u32,
    adapter: *mut Object,
) -> Hresult {
    list(factory, ENUM1, index, adapter)
}

fn list(factory: Object, method: usize, index: u32, adapter: *mut Object) -> Hresult {
    let address = original(factory, method);
    if address == 0 {
        return FAILED;
    }
    // SAFETY: both methods have this signature.
    let real = unsafe { transmute::<usize, EnumAdapters>(address) };
    // SAFETY: the arguments are the caller's, except for the index.
    nth_visible(index, adapter, |n| unsafe { real(factory, n, adapter) })
}

unsafe extern "system" fn enum_by_preference(
    factory: Object,
    index: u32,
    preference: u32,
    interface: *const Iid,
    adapter: *mut Object,
) -> Hresult {
    let address = original(factory, BY_PREFERENCE);
    if address == 0 {
        return FAILED;
    }
    // SAFETY: the method has this signature.
    let real = unsafe { transmute::<usize, ByPreference>(address) };
    // SAFETY: the arguments are the caller's, except for the index.
    let next = |n| unsafe { real(factory, n, preference, interface, adapter) };
    nth_visible(index, adapter, next)
}

/// Calls `next` with 0, 1 … and returns the visible adapter with this `index` among the
/// visible ones. `next` sets `adapter` if it succeeds.
fn nth_visible(index: u32, adapter: *mut Object, next: impl Fn(u32) -> Hresult) -> Hresult {
    let mut seen = 0;
    let mut n = 0;
    loop {
        let result = next(n);
        if result != SUCCESS {
            return result;
        }
        // SAFETY: a successful call has set the caller's pointer.
        let found = unsafe { &mut *adapter };
        if is_shown(*found) {
            if seen == index {
                return SUCCESS;
            }
            seen += 1;
        }
        release(*found);
        *found = null_mut();
        n += 1;
    }
}

unsafe extern "system" fn enum_by_luid(
    factory: Object,
    luid: i64,
    interface: *const Iid,
    adapter: *mut Object,
) -> Hresult {
    let address = original(factory, BY_LUID);
    if address == 0 {
        return FAILED;
    }
    // SAFETY: the method has this signature.
    let real = unsafe { transmute::<usize, ByLuid>(address) };
    // SAFETY: the arguments are the caller's.
    let result = unsafe { real(factory, luid, interface, adapter) };
    if result != SUCCESS {
        return result;
    }
    // SAFETY: a successful call has set the caller's pointer.
    let found = unsafe { &mut *adapter };
    if is_shown(*found) {
        return SUCCESS;
    }
    release(*found);
    *found = null_mut();
    NOT_FOUND
}

/// Whether the process may see an adapter. One that does not describe itself is hidden.
fn is_shown(adapter: Object) -> bool {
    let Some(state) = state::get() else { return false };
    let Some(adapter) = query(adapter, &ADAPTER) else { return false };
    let mut description = Description::default();
    // SAFETY: the interface has this method.
    let describe = unsafe { transmute::<usize, GetDescription>(method(adapter, GET_DESCRIPTION)) };
    // SAFETY: the adapter is alive, and the description is a local variable.
    let result = unsafe { describe(adapter, &raw mut description) };
    release(adapter);
    let [low, high] = description.luid;
    let luid = (i64::from(high.cast_signed()) << 32) | i64::from(low);
    let kind = AdapterType::of_dxgi(description.flags);
    result == SUCCESS && is_visible(state.payload.allowed(), luid, Some(kind))
}

/// Another interface of an object.
fn query(object: Object, interface: &Iid) -> Option<Object> {
    // SAFETY: every interface has this method.
    let query = unsafe { transmute::<usize, QueryInterface>(method(object, QUERY_INTERFACE)) };
    let mut found = null_mut();
    // SAFETY: the object is alive, and the pointers are those of local variables.
    let result = unsafe { query(object, interface, &raw mut found) };
    (result == SUCCESS && !found.is_null()).then_some(found)
}

fn release(object: Object) {
    // SAFETY: every interface has this method.
    let release = unsafe { transmute::<usize, Release>(method(object, RELEASE)) };
    // SAFETY: the object is alive, and the caller does not use this reference again.
    unsafe { release(object) };
}

/// The address of an object's table of methods.
fn table(object: Object) -> usize {
    // SAFETY: an interface begins with this pointer.
    unsafe { object.cast::<usize>().read() }
}

/// The address of a method.
fn method(object: Object, number: usize) -> usize {
    let table = core::ptr::with_exposed_provenance::<usize>(table(object));
    // SAFETY: the callers name methods that the interface has.
    unsafe { table.add(number).read() }
}
