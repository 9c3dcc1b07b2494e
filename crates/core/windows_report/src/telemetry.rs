//! What an adapter does: how busy it is, and its memory, temperature and clocks.
//!
//! [`KernelQueries`] asks the graphics kernel (D3DKMT). Every query may be unsupported or fail,
//! which leaves only its own value empty. Statistics exist since Windows 8, the types of engines
//! since WDDM 2.0 and performance data since WDDM 2.4, so Windows Server 2019 has all.

use std::time::Duration;

use host::{EngineKind, EngineTelemetry, MemoryUse, Telemetry};

use crate::text;

/// What bounds a wrong count. Segments have five bits in WDDM.
const MAX_SEGMENTS: u32 = 32;
const MAX_NODES: u32 = 256;

/// `D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdapterStatistics {
    /// The number of memory segments.
    pub segments: u32,
    /// The number of engines.
    pub nodes: u32,
    /// `TdrDetectedCount`.
    pub resets: u32,
}

/// `D3DKMT_QUERYSTATISTICS_SEGMENT_INFORMATION`, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentStatistics {
    /// The size of the segment.
    pub limit: u64,
    /// How much of it is in use.
    pub resident: u64,
    /// Whether it is in system memory (`Aperture`), and not in the memory of the adapter.
    pub is_shared: bool,
}

/// `D3DKMT_ADAPTER_PERFDATA`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Performance {
    pub memory_hertz: u64,
    pub fan_rpm: u32,
    /// The power in tenths of a percent.
    pub power: u32,
    /// The temperature in tenths of a degree Celsius.
    pub temperature: u32,
}

/// The queries of one adapter. One that is unsupported or fails returns `None`.
pub trait KernelQueries {
    /// The numbers of segments, engines and resets.
    fn statistics(&self) -> Option<AdapterStatistics>;
    /// The sizes of a segment.
    fn segment(&self, segment: u32) -> Option<SegmentStatistics>;
    /// `RunningTime` of the node, for all processes.
    fn running_time(&self, node: u32) -> Option<i64>;
    /// The sensors of the adapter.
    fn performance(&self) -> Option<Performance>;
    /// `Frequency` of `D3DKMT_NODE_PERFDATA`.
    fn node_hertz(&self, node: u32) -> Option<u64>;
    /// `EngineType` and `FriendlyName` of `DXGK_NODEMETADATA`.
    fn node_metadata(&self, node: u32) -> Option<(i32, [u16; 32])>;
}

/// Reads what an adapter does.
#[must_use]
pub fn telemetry(kernel: &impl KernelQueries) -> Telemetry {
    let statistics = kernel.statistics();
    let segments = statistics.map_or(0, |statistics| statistics.segments.min(MAX_SEGMENTS));
    let nodes = statistics.map_or(0, |statistics| statistics.nodes.min(MAX_NODES));
    let [dedicated, shared] = memory(kernel, segments);
    let engines: Vec<_> = (0..nodes).filter_map(|node| engine(kernel, node)).collect();
    // The first 3D engine stands for the adapter, or else the first engine.
    let three_d = engines.iter().find(|engine| engine.kind == EngineKind::ThreeD);
    let main_engine = three_d.or(engines.first()).map(|engine| engine.index);
    let performance = kernel.performance().unwrap_or_default();
    Telemetry {
        engines,
        dedicated,
        shared,
        temperature_celsius: tenths(performance.temperature),
        engine_hertz: main_engine.and_then(|node| kernel.node_hertz(node)).filter(|hz| *hz != 0),
        memory_hertz: Some(performance.memory_hertz).filter(|hertz| *hertz != 0),
        power_percent: tenths(performance.power),
        fan_rpm: Some(performance.fan_rpm).filter(|rpm| *rpm != 0),
        resets: statistics.map(|statistics| u64::from(statistics.resets)),
    }
}

/// The value of a sensor in tenths. A driver without the sensor reports 0.
fn tenths(value: u32) -> Option<f64> {
    (value != 0).then(|| f64::from(value) / 10.0)
}

fn engine(kernel: &impl KernelQueries, index: u32) -> Option<EngineTelemetry> {
    let running_time = running_time(kernel.running_time(index)?);
    let (engine_type, name) = kernel.node_metadata(index).unwrap_or_default();
    let name = Some(String::from_utf16_lossy(text::until_null(&name)))
        .filter(|name| !name.trim().is_empty());
    let kind = EngineKind::new(engine_type, name.as_deref());
    Some(EngineTelemetry { index, kind, name, running_time })
}

/// The unit of `RunningTime` is 100 ns. The header calls it microseconds, but programs whose
/// percentages are right on real GPUs divide it by 100 ns: System Informer (gpumon.c, which
/// multiplies seconds by 10,000,000), `LibreHardwareMonitor` (ticks of .NET), and
/// `windows_exporter` for the performance counter of the same value.
fn running_time(units: i64) -> Duration {
    Duration::from_nanos(u64::try_from(units).unwrap_or_default().saturating_mul(100))
}

/// The sums of the segments, of dedicated and of shared memory, if every segment can be read.
fn memory(kernel: &impl KernelQueries, segments: u32) -> [Option<MemoryUse>; 2] {
    let segments = (0..segments)
        .map(|segment| kernel.segment(segment))
        .collect::<Option<Vec<_>>>()
        .filter(|segments| !segments.is_empty());
    [false, true].map(|is_shared| {
        let of_kind = segments.as_ref()?.iter().filter(|segment| segment.is_shared == is_shared);
        let (used_bytes, limit) = of_kind.fold((0_u64, 0_u64), |(resident, limit), segment| {
            (resident.saturating_add(segment.resident), limit.saturating_add(segment.limit))
        });
        Some(MemoryUse { used_bytes, budget_bytes: Some(limit) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 10_000_000;

    /// An adapter with the given parts; `None` is unsupported.
    #[derive(Default)]
    struct Made {
        statistics: Option<AdapterStatistics>,
        segments: Vec<SegmentStatistics>,
        nodes: Vec<(i32, &'static str, i64)>,
        performance: Option<Performance>,
    }

    impl KernelQueries for Made {
        fn statistics(&self) -> Option<AdapterStatistics> {
            self.statistics
        }
        fn segment(&self, segment: u32) -> Option<SegmentStatistics> {
            self.segments.get(segment as usize).copied()
        }
        fn running_time(&self, node: u32) -> Option<i64> {
            self.nodes.get(node as usize).map(|node| node.2)
        }
        fn performance(&self) -> Option<Performance> {
            self.performance
        }
        fn node_hertz(&self, node: u32) -> Option<u64> {
            self.nodes.get(node as usize).map(|_| u64::from(node) * 1000)
        }
        fn node_metadata(&self, node: u32) -> Option<(i32, [u16; 32])> {
            let (engine_type, text, _) = *self.nodes.get(node as usize)?;
            let mut name = [0; 32];
            name.iter_mut().zip(text.encode_utf16()).for_each(|(to, from)| *to = from);
            Some((engine_type, name))
        }
    }

    fn gpu() -> Made {
        let segment = |resident, limit, is_shared| SegmentStatistics { limit, resident, is_shared };
        Made {
            statistics: Some(AdapterStatistics { segments: 3, nodes: 3, resets: 2 }),
            segments: vec![
                segment(100, 1000, false),
                segment(20, 200, false),
                segment(7, 70, true),
            ],
            nodes: vec![(6, "", 5), (1, "3D", 2 * SECOND), (0, "Compute_0", -1)],
            performance: Some(Performance {
                memory_hertz: 9,
                fan_rpm: 1200,
                power: 455,
                temperature: 615,
            }),
        }
    }

    fn read(kernel: &Made) -> Telemetry {
        telemetry(kernel)
    }

    #[test]
    fn everything_comes_from_the_kernel() {
        let telemetry = read(&gpu());
        let engines = &telemetry.engines;
        let times: Vec<_> = engines.iter().map(|e| (e.kind, e.running_time.as_nanos())).collect();
        let expected = [
            (EngineKind::Copy, 500),
            (EngineKind::ThreeD, 2_000_000_000),
            (EngineKind::Compute, 0),
        ];
        assert_eq!(times, expected);
        assert_eq!((&engines[0].name, engines[2].name.as_deref()), (&None, Some("Compute_0")));
        let memory = |used_bytes, limit| Some(MemoryUse { used_bytes, budget_bytes: Some(limit) });
        let expected = Telemetry {
            engines: engines.clone(),
            dedicated: memory(120, 1200),
            shared: memory(7, 70),
            temperature_celsius: Some(61.5),
            engine_hertz: Some(1000),
            memory_hertz: Some(9),
            power_percent: Some(45.5),
            fan_rpm: Some(1200),
            resets: Some(2),
        };
        assert_eq!(telemetry, expected);
    }

    #[test]
    fn a_query_that_fails_leaves_the_others() {
        assert_eq!(read(&Made::default()), Telemetry::default());
        let mut kernel = gpu();
        kernel.segments.pop();
        kernel.nodes.pop();
        kernel.performance = Some(Performance::default());
        let telemetry = read(&kernel);
        assert_eq!((telemetry.dedicated, telemetry.shared), (None, None));
        assert_eq!(telemetry.engines.len(), 2);
        assert_eq!((telemetry.temperature_celsius, telemetry.fan_rpm), (None, None));
        assert_eq!(telemetry.resets, Some(2));
        kernel.statistics = None;
        let telemetry = read(&kernel);
        assert_eq!(telemetry, Telemetry::default());
    }

    #[test]
    fn wrong_numbers_of_the_kernel_are_bounded() {
        let huge = AdapterStatistics { segments: u32::MAX, nodes: u32::MAX, resets: 0 };
        let kernel = Made { statistics: Some(huge), ..gpu() };
        assert_eq!(read(&kernel).engines.len(), 3);
        assert_eq!(running_time(i64::MAX), Duration::from_nanos(u64::MAX));
        assert_eq!(running_time(i64::MIN), Duration::ZERO);
    }
}
