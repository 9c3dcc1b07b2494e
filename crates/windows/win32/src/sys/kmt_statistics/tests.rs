//! Reads the statistics of test functions, and those of this host.

use std::cell::Cell;

use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_CLOSEADAPTER, D3DKMT_OPENADAPTERFROMLUID, D3DKMT_QUERYADAPTERINFO, DXGK_ENGINE_TYPE,
};

use super::*;

const LUID: Luid = Luid(-2 << 32 | 5);
const INVALID_PARAMETER: NTSTATUS = NTSTATUS(0xC000_000D_u32.cast_signed());

thread_local! {
    /// The number of open adapters.
    static OPEN: Cell<i32> = const { Cell::new(0) };
    /// The segments, nodes and resets that the adapter reports.
    static COUNTS: Cell<(u32, u32, u32)> = const { Cell::new((2, 2, 7)) };
}

unsafe extern "system" fn open(request: *mut D3DKMT_OPENADAPTERFROMLUID) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let request = unsafe { &mut *request };
    assert_eq!((request.AdapterLuid.LowPart, request.AdapterLuid.HighPart), (5, -2));
    request.hAdapter = 3;
    OPEN.set(OPEN.get() + 1);
    NTSTATUS(0)
}

unsafe extern "system" fn close(_: *const D3DKMT_CLOSEADAPTER) -> NTSTATUS {
    OPEN.set(OPEN.get() - 1);
    NTSTATUS(0)
}

/// Two nodes; the kernel checks the size of each structure.
unsafe extern "system" fn query(request: *mut D3DKMT_QUERYADAPTERINFO) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let request = unsafe { &*request };
    let size = request.PrivateDriverDataSize as usize;
    let data = request.pPrivateDriverData;
    match request.Type {
        KMTQAITYPE_ADAPTERPERFDATA if size == 64 => {
            // SAFETY: the request of this type points to such a structure.
            let data = unsafe { &mut *data.cast::<D3DKMT_ADAPTER_PERFDATA>() };
            (data.MemoryFrequency, data.FanRPM, data.Power, data.Temperature) = (4, 3, 2, 1);
        }
        KMTQAITYPE_NODEPERFDATA if size == 56 => {
            // SAFETY: as above.
            let data = unsafe { &mut *data.cast::<D3DKMT_NODE_PERFDATA>() };
            assert_eq!(data.PhysicalAdapterIndex, 0);
            data.Frequency = u64::from(data.NodeOrdinal) + 100;
        }
        KMTQAITYPE_NODEMETADATA if size == 78 => {
            let bytes = data.cast::<u8>();
            // SAFETY: the request points to 78 writable bytes, which begin with the node.
            let node = unsafe { data.cast::<u32>().read_unaligned() };
            if node > 1 {
                return INVALID_PARAMETER;
            }
            // SAFETY: as above; after the node, the type, the name and flags.
            unsafe { bytes.add(4).write_bytes(0xFF, 74) };
            // SAFETY: as above.
            unsafe { bytes.add(4).cast::<DXGK_ENGINE_TYPE>().write_unaligned(DXGK_ENGINE_TYPE(6)) };
            // SAFETY: as above.
            unsafe { bytes.add(8).cast::<[u16; 2]>().write_unaligned([u16::from(b'C'), 0]) };
        }
        _ => return INVALID_PARAMETER,
    }
    NTSTATUS(0)
}

unsafe extern "system" fn query_statistics(request: *mut D3DKMT_QUERYSTATISTICS) -> NTSTATUS {
    // SAFETY: the caller passes a request.
    let request = unsafe { &mut *request };
    assert_eq!((request.AdapterLuid.LowPart, request.AdapterLuid.HighPart), (5, -2));
    assert!(request.hProcess.is_invalid());
    // SAFETY: every part begins with such a number, 0 if the query has no part.
    let part = unsafe { request.Anonymous.QueryNode.NodeId };
    match (request.Type, part) {
        (D3DKMT_QUERYSTATISTICS_ADAPTER, 0) => {
            // SAFETY: every field of the union contains only numbers.
            let adapter = unsafe { &mut request.QueryResult.AdapterInformation };
            (adapter.NbSegments, adapter.NodeCount, adapter.TdrDetectedCount) = COUNTS.get();
        }
        (D3DKMT_QUERYSTATISTICS_SEGMENT, 0 | 1) => {
            // SAFETY: as above.
            let segment = unsafe { &mut request.QueryResult.SegmentInformation };
            (segment.CommitLimit, segment.BytesCommitted, segment.BytesResident) = (9, 8, 6);
            segment.Aperture = part;
        }
        (D3DKMT_QUERYSTATISTICS_NODE, 0 | 1) => {
            // SAFETY: as above.
            let node = unsafe { &mut request.QueryResult.NodeInformation };
            node.GlobalInformation.RunningTime = i64::from(part) + 40;
            node.SystemInformation.RunningTime = 1;
        }
        _ => return INVALID_PARAMETER,
    }
    NTSTATUS(0)
}

#[test]
fn every_query_has_the_layout_of_the_header() {
    assert_eq!(size_of::<D3DKMT_QUERYSTATISTICS>(), 808);
    let kernel = GraphicsKernel::from_functions(open, query, close);
    let kernel = KernelStatistics { kernel, query: query_statistics };
    let adapter = kernel.open(LUID).unwrap();
    let expected = AdapterStatistics { segments: 2, nodes: 2, resets: 7 };
    assert_eq!(adapter.statistics(), Some(expected));
    COUNTS.set((0, 0, 7));
    assert_eq!(adapter.statistics(), None);
    let segment = |is_shared| Some(SegmentStatistics { limit: 9, resident: 6, is_shared });
    assert_eq!((adapter.segment(0), adapter.segment(1)), (segment(false), segment(true)));
    assert_eq!(adapter.segment(2), None);
    assert_eq!((adapter.running_time(1), adapter.running_time(2)), (Some(41), None));
    let expected = Performance { memory_hertz: 4, fan_rpm: 3, power: 2, temperature: 1 };
    assert_eq!(adapter.performance(), Some(expected));
    assert_eq!(adapter.node_hertz(1), Some(101));
    let (engine_type, name) = adapter.node_metadata(1).unwrap();
    assert_eq!((engine_type, &name[..3]), (6, &[u16::from(b'C'), 0, 0xFFFF][..]));
    assert_eq!(adapter.node_metadata(2), None);
    assert_eq!(OPEN.get(), 1);
    drop(adapter);
    assert_eq!(OPEN.get(), 0);
}

/// Windows opens no adapter with this LUID. Wine opens one, and its statistics succeed without
/// a value.
#[test]
fn an_unknown_luid_has_no_statistics() {
    let kernel = KernelStatistics::load().unwrap();
    let opened = kernel.open(Luid(i64::MAX));
    assert_eq!(opened.ok().and_then(|adapter| adapter.statistics()), None);
}
