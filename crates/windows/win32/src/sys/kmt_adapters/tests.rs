//! Lists the adapters of test functions, and those of this host.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_CLOSEADAPTER, D3DKMT_DEVICE_IDS, D3DKMT_OPENADAPTERFROMLUID, D3DKMT_QUERYADAPTERINFO,
    KMT_DRIVERVERSION_WDDM_2_5,
};
use windows::Win32::Foundation::LUID;

use super::*;

const NOT_IMPLEMENTED: NTSTATUS = NTSTATUS(0xC000_0002_u32.cast_signed());
const UNSUCCESSFUL: NTSTATUS = NTSTATUS(0xC000_0001_u32.cast_signed());
const INVALID_PARAMETER: NTSTATUS = NTSTATUS(0xC000_000D_u32.cast_signed());
const KEY: &str = r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Enum\PCI\VEN_10DE&DEV_13F2\6&2B78";
const LUIDS: [i64; 2] = [-2 << 32 | 0xFFFF_FFF5, 7];

thread_local! {
    /// The handles that are open.
    static OPEN: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
    /// How many adapters are added after each count.
    static ADDED: Cell<u32> = const { Cell::new(0) };
    /// The queries that the kernel supports.
    static SUPPORTED: RefCell<Vec<KMTQUERYADAPTERINFOTYPE>> = const { RefCell::new(Vec::new()) };
    static UPDATING: Cell<bool> = const { Cell::new(false) };
    /// The query that fails although the kernel supports it.
    static FAILING: Cell<Option<KMTQUERYADAPTERINFOTYPE>> = const { Cell::new(None) };
}

const EVERY_QUERY: [KMTQUERYADAPTERINFOTYPE; 8] = [
    KMTQAITYPE_ADAPTERTYPE,
    KMTQAITYPE_ADAPTERREGISTRYINFO,
    KMTQAITYPE_CHECKDRIVERUPDATESTATUS,
    KMTQAITYPE_DRIVERVERSION,
    KMTQAITYPE_GETSEGMENTSIZE,
    KMTQAITYPE_PHYSICALADAPTERDEVICEIDS,
    KMTQAITYPE_PHYSICALADAPTERPNPKEY,
    KMTQAITYPE_UMD_DRIVER_VERSION,
];

unsafe extern "system" fn open(request: *mut D3DKMT_OPENADAPTERFROMLUID) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let request = unsafe { &mut *request };
    request.hAdapter = request.AdapterLuid.LowPart;
    OPEN.with_borrow_mut(|open| open.insert(request.hAdapter));
    NTSTATUS(0)
}

unsafe extern "system" fn close(request: *const D3DKMT_CLOSEADAPTER) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let handle = unsafe { (*request).hAdapter };
    assert!(OPEN.with_borrow_mut(|open| open.remove(&handle)), "{handle} is not open");
    NTSTATUS(0)
}

unsafe extern "system" fn enumerate(request: *mut D3DKMT_ENUMADAPTERS2) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let request = unsafe { &mut *request };
    list(request.pAdapters, &mut request.NumAdapters)
}

unsafe extern "system" fn enumerate3(request: *mut D3DKMT_ENUMADAPTERS3) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let request = unsafe { &mut *request };
    // SAFETY: both fields of the union are numbers.
    assert_eq!(unsafe { request.Filter.Value }, 1, "IncludeComputeOnly");
    list(request.pAdapters, &mut request.NumAdapters)
}

/// Writes the adapters to a list of `capacity` elements, or only counts them if it is null.
fn list(adapters: *mut D3DKMT_ADAPTERINFO, capacity: &mut u32) -> NTSTATUS {
    let count = u32::try_from(LUIDS.len()).unwrap();
    if adapters.is_null() {
        *capacity = count - ADDED.get().min(1);
        ADDED.set(ADDED.get().saturating_sub(1));
        return NTSTATUS(0);
    }
    if *capacity < count {
        return STATUS_BUFFER_TOO_SMALL;
    }
    for (handle, luid) in (1..).zip(LUIDS) {
        let [low, high] = [luid & 0xFFFF_FFFF, luid >> 32];
        let info = D3DKMT_ADAPTERINFO {
            hAdapter: handle,
            AdapterLuid: LUID {
                LowPart: u32::try_from(low).unwrap(),
                HighPart: i32::try_from(high).unwrap(),
            },
            ..D3DKMT_ADAPTERINFO::default()
        };
        // SAFETY: the buffer has as many elements.
        unsafe { adapters.add(handle as usize - 1).write(info) };
        OPEN.with_borrow_mut(|open| open.insert(handle));
    }
    *capacity = count;
    NTSTATUS(0)
}

/// Writes `value` to the data of a request, which must have its size.
fn answer<T>(request: &D3DKMT_QUERYADAPTERINFO, value: T) -> NTSTATUS {
    if request.PrivateDriverDataSize as usize != size_of::<T>() {
        return INVALID_PARAMETER;
    }
    // SAFETY: the data has the size of `T`, and comes from a value of that type.
    unsafe { request.pPrivateDriverData.cast::<T>().write(value) };
    NTSTATUS(0)
}

unsafe extern "system" fn query(request: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let request = unsafe { &*request };
    assert!(OPEN.with_borrow(|open| open.contains(&request.hAdapter)));
    if !SUPPORTED.with_borrow(|supported| supported.contains(&request.Type)) {
        return NOT_IMPLEMENTED;
    }
    if FAILING.get() == Some(request.Type) {
        return UNSUCCESSFUL;
    }
    match request.Type {
        KMTQAITYPE_ADAPTERTYPE => answer(request, 3_u32),
        KMTQAITYPE_CHECKDRIVERUPDATESTATUS => answer(request, BOOL::from(UPDATING.get())),
        KMTQAITYPE_DRIVERVERSION => answer(request, KMT_DRIVERVERSION_WDDM_2_5),
        KMTQAITYPE_UMD_DRIVER_VERSION => {
            answer(request, D3DKMT_UMD_DRIVER_VERSION { DriverVersion: 27 << 48 })
        }
        KMTQAITYPE_GETSEGMENTSIZE => answer(
            request,
            D3DKMT_SEGMENTSIZEINFO { DedicatedVideoMemorySize: 8 << 30, ..Default::default() },
        ),
        KMTQAITYPE_PHYSICALADAPTERDEVICEIDS => answer(
            request,
            D3DKMT_QUERY_DEVICE_IDS {
                PhysicalAdapterIndex: 0,
                DeviceIds: D3DKMT_DEVICE_IDS {
                    VendorID: 0x10DE,
                    DeviceID: 0x13F2,
                    SubVendorID: 0x10DE,
                    SubSystemID: 0x115E,
                    RevisionID: 0xA1,
                    BusType: 0,
                },
            },
        ),
        KMTQAITYPE_ADAPTERREGISTRYINFO => {
            let mut info = D3DKMT_ADAPTERREGISTRYINFO::default();
            write(&mut info.AdapterString, "NVIDIA Tesla M60");
            answer(request, info)
        }
        KMTQAITYPE_PHYSICALADAPTERPNPKEY => pnp_key_answer(request),
        other => panic!("unexpected query {}", other.0),
    }
}

fn write(buffer: &mut [u16], text: &str) {
    for (unit, text) in buffer.iter_mut().zip(text.encode_utf16().chain([0])) {
        *unit = text;
    }
}

fn pnp_key_answer(request: &D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
    let key = request.pPrivateDriverData.cast::<D3DKMT_QUERY_PHYSICAL_ADAPTER_PNP_KEY>();
    // SAFETY: the request of this type points to such a structure.
    let key = unsafe { &*key };
    assert_eq!((key.PhysicalAdapterIndex, key.PnPKeyType), (0, D3DKMT_PNP_KEY_HARDWARE));
    // SAFETY: the structure points to the length of the buffer, and to the buffer.
    let buffer = unsafe { std::slice::from_raw_parts_mut(key.pDest.0, *key.pCchDest as usize) };
    write(buffer, KEY);
    NTSTATUS(0)
}

/// The adapters of a kernel that supports these queries. Every adapter must be closed.
fn read(supported: &[KMTQUERYADAPTERINFOTYPE]) -> io::Result<Vec<ListedAdapter>> {
    SUPPORTED.set(supported.to_vec());
    let kernel = GraphicsKernel::from_functions(open, query, close);
    let enumerate = Enumerate::Adapters2(enumerate);
    let adapters = KernelAdapterList { kernel, enumerate }.read();
    assert!(OPEN.with_borrow(BTreeSet::is_empty), "an adapter was not closed");
    adapters
}

#[test]
fn every_property_is_read() {
    let adapters = read(&EVERY_QUERY).unwrap();
    let luids: Vec<i64> = adapters.iter().map(|(luid, _)| luid.0).collect();
    assert_eq!(luids, LUIDS);
    let report = KernelReport {
        flags: 3,
        driver_model: Some(2500),
        hardware_id: Some(HardwareId {
            vendor: 0x10DE,
            device: 0x13F2,
            subsystem: 0x115E_10DE,
            revision: 0xA1,
        }),
        description: Some("NVIDIA Tesla M60".to_owned()),
        driver_version: Some(27 << 48),
        dedicated_memory: Some(8 << 30),
        pnp_keys: vec![KEY.to_owned()],
        notes: Vec::new(),
    };
    for (_, found) in adapters {
        assert_eq!(found.unwrap(), report);
    }
}

/// Also the known ones are closed.
#[test]
fn adapters_that_are_not_known_are_listed_with_those_that_only_compute() {
    SUPPORTED.set(vec![KMTQAITYPE_ADAPTERTYPE]);
    let kernel = GraphicsKernel::from_functions(open, query, close);
    let list = KernelAdapterList { kernel, enumerate: Enumerate::Adapters3(enumerate3) };
    for (known, expected) in [(&[][..], &LUIDS[..]), (&[Luid(7)], &LUIDS[..1])] {
        let others = list.read_except(known).unwrap();
        assert!(OPEN.with_borrow(BTreeSet::is_empty), "an adapter was not closed");
        let luids: Vec<i64> = others.iter().map(|(luid, _)| luid.0).collect();
        assert_eq!(luids, expected);
    }
}

#[test]
fn only_the_kind_of_an_adapter_is_required() {
    let adapters = read(&[KMTQAITYPE_ADAPTERTYPE]).unwrap();
    let pnp_keys = vec![String::new()];
    let least = KernelReport { flags: 3, pnp_keys, ..KernelReport::default() };
    assert_eq!(adapters[0].1.as_ref().unwrap(), &least);

    let without_kind = read(&EVERY_QUERY[1..]).unwrap();
    let reason = without_kind[1].1.as_ref().unwrap_err().to_string();
    assert_eq!(reason, "status 0xC0000002");
}

/// A query that the driver does not support has no note; one that fails has.
#[test]
fn each_query_that_fails_leaves_the_others() {
    for failing in EVERY_QUERY {
        FAILING.set(Some(failing));
        let adapters = read(&EVERY_QUERY).unwrap();
        let Ok(report) = &adapters[0].1 else {
            assert_eq!(failing, KMTQAITYPE_ADAPTERTYPE);
            continue;
        };
        assert_eq!(report.flags, 3, "{failing:?}");
        // An update of the driver is not a property. A missing key is reported as a missing
        // device.
        let without_note = [KMTQAITYPE_CHECKDRIVERUPDATESTATUS, KMTQAITYPE_PHYSICALADAPTERPNPKEY];
        let expected = usize::from(!without_note.contains(&failing));
        assert_eq!(report.notes.len(), expected, "{failing:?}: {:?}", report.notes);
    }
}

/// `DXCore` reports neither the flags nor the keys, so they are read for one adapter.
#[test]
fn the_flags_and_the_keys_of_one_adapter_are_read() {
    let kernel = GraphicsKernel::from_functions(open, query, close);
    let read = |supported: &[KMTQUERYADAPTERINFOTYPE]| {
        SUPPORTED.set(supported.to_vec());
        let flags = flags(&kernel, Luid(7));
        assert!(OPEN.with_borrow(BTreeSet::is_empty), "the adapter was not closed");
        flags
    };
    assert_eq!(read(&[KMTQAITYPE_ADAPTERTYPE]).unwrap(), 3);
    assert_eq!(read(&[]).unwrap_err().to_string(), "status 0xC0000002");
    SUPPORTED.set(vec![KMTQAITYPE_PHYSICALADAPTERPNPKEY]);
    assert_eq!(pnp_keys(&kernel, Luid(7)).unwrap(), [KEY]);
    assert!(OPEN.with_borrow(BTreeSet::is_empty), "the adapter was not closed");
}

#[test]
fn an_adapter_whose_driver_is_being_updated_is_not_read() {
    UPDATING.set(true);
    let adapters = read(&EVERY_QUERY).unwrap();
    let reason = adapters[0].1.as_ref().unwrap_err().to_string();
    assert_eq!(reason, "the driver is being updated");
}

#[test]
fn adapters_that_are_added_in_between_are_listed() {
    ADDED.set(2);
    assert_eq!(read(&EVERY_QUERY).unwrap().len(), 2);
    ADDED.set(100);
    let error = read(&EVERY_QUERY).unwrap_err().to_string();
    assert_eq!(error, "adapters were added during each attempt to list them");
}

/// Whatever adapters this host has, each is listed once.
#[test]
fn the_adapters_of_this_host_are_listed() {
    const ERROR_PROC_NOT_FOUND: i32 = 127;
    let with_compute_only = match KernelAdapterList::load_with_compute_only() {
        Ok(list) => Some(list),
        // Wine 10 and Windows Server 2019 lack the function.
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(ERROR_PROC_NOT_FOUND));
            None
        }
    };
    for list in [KernelAdapterList::load().unwrap()].into_iter().chain(with_compute_only) {
        let adapters = list.read().unwrap();
        let luids: BTreeSet<Luid> = adapters.iter().map(|(luid, _)| *luid).collect();
        assert_eq!(luids.len(), adapters.len(), "{adapters:?}");
    }
}
