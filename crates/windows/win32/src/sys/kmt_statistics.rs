//! The statistics of adapters that the graphics kernel (D3DKMT) keeps.
#![allow(unsafe_code, reason = "calls D3DKMT functions of gdi32.dll")]

use std::io;
use std::mem::MaybeUninit;

use host::Luid;
use windows::Wdk::Graphics::Direct3D::{
    D3DKMT_ADAPTER_PERFDATA, D3DKMT_NODE_PERFDATA, D3DKMT_NODEMETADATA, D3DKMT_QUERYSTATISTICS,
    D3DKMT_QUERYSTATISTICS_0, D3DKMT_QUERYSTATISTICS_ADAPTER, D3DKMT_QUERYSTATISTICS_NODE,
    D3DKMT_QUERYSTATISTICS_QUERY_NODE, D3DKMT_QUERYSTATISTICS_QUERY_SEGMENT,
    D3DKMT_QUERYSTATISTICS_RESULT, D3DKMT_QUERYSTATISTICS_SEGMENT, D3DKMT_QUERYSTATISTICS_TYPE,
    KMTQAITYPE_ADAPTERPERFDATA, KMTQAITYPE_NODEMETADATA, KMTQAITYPE_NODEPERFDATA,
};
use windows::Win32::Foundation::NTSTATUS;
use windows_report::telemetry::{AdapterStatistics, KernelQueries, Performance, SegmentStatistics};

use super::kmt::{AdapterHandle, GraphicsKernel, check, windows_luid};
use super::library::Library;

type QueryStatistics = unsafe extern "system" fn(*mut D3DKMT_QUERYSTATISTICS) -> NTSTATUS;

/// The functions that return statistics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelStatistics {
    kernel: GraphicsKernel,
    query: QueryStatistics,
}

impl KernelStatistics {
    /// Loads the functions.
    pub(crate) fn load() -> io::Result<Self> {
        let gdi = Library::system("gdi32.dll")?;
        // SAFETY: the type is the one d3dkmthk.h declares.
        let query = unsafe { gdi.function(c"D3DKMTQueryStatistics") }?;
        Ok(Self { kernel: GraphicsKernel::load()?, query })
    }

    /// Opens the adapter with this LUID; an error if there is none.
    pub(crate) fn open(&self, luid: Luid) -> io::Result<MeasuredAdapter<'_>> {
        Ok(MeasuredAdapter { query: self.query, luid, handle: self.kernel.open(luid)? })
    }
}

/// An open adapter.
pub(crate) struct MeasuredAdapter<'a> {
    query: QueryStatistics,
    luid: Luid,
    handle: AdapterHandle<'a>,
}

impl MeasuredAdapter<'_> {
    fn statistics_of(
        &self,
        kind: D3DKMT_QUERYSTATISTICS_TYPE,
        part: D3DKMT_QUERYSTATISTICS_0,
    ) -> Option<D3DKMT_QUERYSTATISTICS_RESULT> {
        let mut request = D3DKMT_QUERYSTATISTICS {
            Type: kind,
            AdapterLuid: windows_luid(self.luid),
            Anonymous: part,
            ..Default::default()
        };
        // SAFETY: the request is initialized and writable. No process is queried, so it contains
        // no handle.
        check(unsafe { (self.query)(&raw mut request) }).ok()?;
        Some(request.QueryResult)
    }
}

impl KernelQueries for MeasuredAdapter<'_> {
    fn statistics(&self) -> Option<AdapterStatistics> {
        let part = D3DKMT_QUERYSTATISTICS_0::default();
        let result = self.statistics_of(D3DKMT_QUERYSTATISTICS_ADAPTER, part)?;
        // SAFETY: every field of the union contains only numbers.
        let adapter = unsafe { result.AdapterInformation };
        // Every adapter has memory or engines; Wine succeeds without writing anything.
        (adapter.NbSegments != 0 || adapter.NodeCount != 0).then_some(AdapterStatistics {
            segments: adapter.NbSegments,
            nodes: adapter.NodeCount,
            resets: adapter.TdrDetectedCount,
        })
    }

    fn segment(&self, segment: u32) -> Option<SegmentStatistics> {
        let part = D3DKMT_QUERYSTATISTICS_0 {
            QuerySegment: D3DKMT_QUERYSTATISTICS_QUERY_SEGMENT { SegmentId: segment },
        };
        let result = self.statistics_of(D3DKMT_QUERYSTATISTICS_SEGMENT, part)?;
        // SAFETY: as above.
        let segment = unsafe { result.SegmentInformation };
        Some(SegmentStatistics {
            limit: segment.CommitLimit,
            resident: segment.BytesResident,
            is_shared: segment.Aperture != 0,
        })
    }

    fn running_time(&self, node: u32) -> Option<i64> {
        let part = D3DKMT_QUERYSTATISTICS_0 {
            QueryNode: D3DKMT_QUERYSTATISTICS_QUERY_NODE { NodeId: node },
        };
        let result = self.statistics_of(D3DKMT_QUERYSTATISTICS_NODE, part)?;
        // SAFETY: as above.
        Some(unsafe { result.NodeInformation }.GlobalInformation.RunningTime)
    }

    fn performance(&self) -> Option<Performance> {
        let mut data = D3DKMT_ADAPTER_PERFDATA::default();
        // SAFETY: the query takes such a structure, which contains only numbers.
        unsafe { self.handle.query(KMTQAITYPE_ADAPTERPERFDATA, &mut data) }.ok()?;
        Some(Performance {
            memory_hertz: data.MemoryFrequency,
            fan_rpm: data.FanRPM,
            power: data.Power,
            temperature: data.Temperature,
        })
    }

    fn node_hertz(&self, node: u32) -> Option<u64> {
        let mut data = D3DKMT_NODE_PERFDATA { NodeOrdinal: node, ..Default::default() };
        // SAFETY: as above.
        unsafe { self.handle.query(KMTQAITYPE_NODEPERFDATA, &mut data) }.ok()?;
        Some(data.Frequency)
    }

    fn node_metadata(&self, node: u32) -> Option<(i32, [u16; 32])> {
        // The low word is the node and the high word the physical adapter, which is the first.
        let data = D3DKMT_NODEMETADATA { NodeOrdinalAndAdapterIndex: node, ..Default::default() };
        // The structure contains booleans, and the kernel may write other values than 0 and 1.
        let mut data = MaybeUninit::new(data);
        // SAFETY: the query takes such a structure, and any bytes are valid in a `MaybeUninit`.
        unsafe { self.handle.query(KMTQAITYPE_NODEMETADATA, &mut data) }.ok()?;
        let node = data.as_ptr();
        // SAFETY: the field is initialized and contains only a number; it is not aligned.
        let engine_type = unsafe { (&raw const (*node).NodeData.EngineType).read_unaligned() };
        // SAFETY: as above, for numbers.
        let name = unsafe { (&raw const (*node).NodeData.FriendlyName).read_unaligned() };
        Some((engine_type.0, name))
    }
}

#[cfg(test)]
mod tests;
