//! What the graphics kernel (D3DKMT) reports for an adapter, for what `DXCore` does not.
//!
//! Every query may be unsupported or fail. Statistics exist since Windows 8, the types of
//! engines since WDDM 2.0 and performance data since WDDM 2.4, so Windows Server 2019 has all.

use std::time::Duration;

use devices::{EngineKind, EngineTelemetry, MemoryUse, Telemetry};

use crate::text;

/// What bounds a wrong count. Segments have five bits in WDDM.
const MAX_SEGMENTS: u32 = 32;
const MAX_NODES: u32 = 256;

/// `D3DKMT_QUERYSTATISTICS_ADAPTER_INFORMATION`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AdapterStatistics {
    /// The number of memory segments.
    pub(crate) segments: u32,
    /// The number of engines.
    pub(crate) nodes: u32,
    /// `TdrDetectedCount`.
    pub(crate) resets: u32,
}

/// `D3DKMT_QUERYSTATISTICS_SEGMENT_INFORMATION`, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentStatistics {
    pub(crate) limit: u64,
    pub(crate) resident: u64,
    pub(crate) placement: SegmentPlacement,
}

/// Where a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentPlacement {
    /// In the memory of the adapter.
    Dedicated,
    /// In system memory (`Aperture`).
    Shared,
}

/// `D3DKMT_ADAPTER_PERFDATA`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Performance {
    pub(crate) memory_hertz: u64,
    pub(crate) fan_rpm: u32,
    /// Tenths of a percent.
    pub(crate) power: u32,
    /// Tenths of a degree Celsius.
    pub(crate) temperature: u32,
}

/// The queries of one adapter. One that is unsupported or fails returns `None`.
pub(crate) trait KernelQueries {
    fn statistics(&self) -> Option<AdapterStatistics>;
    fn segment(&self, segment: u32) -> Option<SegmentStatistics>;
    /// `RunningTime` of the node, for all processes.
    fn running_time(&self, node: u32) -> Option<i64>;
    fn performance(&self) -> Option<Performance>;
    /// `Frequency` of `D3DKMT_NODE_PERFDATA`.
    fn node_hertz(&self, node: u32) -> Option<u64>;
    /// `EngineType` and `FriendlyName` of `DXGK_NODEMETADATA`.
    fn node_metadata(&self, node: u32) -> Option<(i32, [u16; 32])>;
}

/// What an engine is. It does not change while the adapter exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EngineDescription {
    pub(crate) kind: EngineKind,
    pub(crate) name: Option<String>,
}

impl EngineDescription {
    /// The engines of an adapter; none if their number is not reported.
    pub(crate) fn of(kernel: &impl KernelQueries) -> Vec<EngineDescription> {
        let nodes = kernel.statistics().map_or(0, |statistics| statistics.nodes.min(MAX_NODES));
        (0..nodes).map(|node| EngineDescription::new(kernel.node_metadata(node))).collect()
    }

    fn new(metadata: Option<(i32, [u16; 32])>) -> EngineDescription {
        let Some((engine_type, name)) = metadata else {
            return EngineDescription { kind: EngineKind::Other, name: None };
        };
        let name = String::from_utf16_lossy(text::until_null(&name));
        let name = Some(name).filter(|name| !name.trim().is_empty());
        EngineDescription { kind: EngineKind::new(engine_type, name.as_deref()), name }
    }

    /// The engine that stands for the adapter: the first 3D engine, or else the first one.
    pub(crate) fn main(engines: &[EngineDescription]) -> u32 {
        let first = (0..).zip(engines).find(|(_, engine)| engine.kind == EngineKind::ThreeD);
        first.map_or(0, |(index, _)| index)
    }

    /// The engine with this running time.
    pub(crate) fn engine(&self, index: u32, running_time: Duration) -> EngineTelemetry {
        EngineTelemetry { index, kind: self.kind, name: self.name.clone(), running_time }
    }
}

/// Adds what `telemetry` lacks. `engines` describes the engines of the adapter.
pub(crate) fn complete(
    telemetry: &mut Telemetry,
    kernel: &impl KernelQueries,
    engines: &[EngineDescription],
) {
    if let Some(statistics) = kernel.statistics() {
        telemetry.resets = Some(u64::from(statistics.resets));
        add_memory(telemetry, kernel, statistics.segments.min(MAX_SEGMENTS));
    }
    if telemetry.engines.is_empty() {
        let engine = |(index, description): (u32, &EngineDescription)| {
            Some(description.engine(index, running_time(kernel.running_time(index)?)))
        };
        telemetry.engines = (0..).zip(engines).filter_map(engine).collect();
    }
    if telemetry.engine_hertz.is_none() && !engines.is_empty() {
        let hertz = kernel.node_hertz(EngineDescription::main(engines));
        telemetry.engine_hertz = hertz.filter(|hertz| *hertz != 0);
    }
    if let Some(performance) = kernel.performance() {
        add_performance(telemetry, performance);
    }
}

/// The unit of `RunningTime` is 100 ns. The header calls it microseconds, but programs whose
/// percentages are right on real GPUs divide it by 100 ns: System Informer (gpumon.c, which
/// multiplies seconds by 10,000,000), `LibreHardwareMonitor` (ticks of .NET), and
/// `windows_exporter` for the performance counter of the same value.
fn running_time(units: i64) -> Duration {
    Duration::from_nanos(u64::try_from(units).unwrap_or_default().saturating_mul(100))
}

/// Adds the sums of the segments, if every segment can be read.
fn add_memory(telemetry: &mut Telemetry, kernel: &impl KernelQueries, segments: u32) {
    let lacks_budget = |memory: Option<MemoryUse>| memory.is_none_or(|m| m.budget_bytes.is_none());
    if segments == 0 || !(lacks_budget(telemetry.dedicated) || lacks_budget(telemetry.shared)) {
        return;
    }
    let segments = (0..segments).map(|segment| kernel.segment(segment)).collect::<Option<Vec<_>>>();
    let Some(segments) = segments else { return };
    let sum = |placement| {
        let of_kind = segments.iter().filter(|segment| segment.placement == placement);
        of_kind.fold((0_u64, 0_u64), |(resident, limit), segment| {
            (resident.saturating_add(segment.resident), limit.saturating_add(segment.limit))
        })
    };
    for (memory, placement) in [
        (&mut telemetry.dedicated, SegmentPlacement::Dedicated),
        (&mut telemetry.shared, SegmentPlacement::Shared),
    ] {
        let (used_bytes, limit) = sum(placement);
        let memory = memory.get_or_insert(MemoryUse { used_bytes, budget_bytes: None });
        memory.budget_bytes = memory.budget_bytes.or(Some(limit));
    }
}

/// A driver without a sensor reports 0.
fn add_performance(telemetry: &mut Telemetry, performance: Performance) {
    let tenths = |value: u32| Some(f64::from(value) / 10.0).filter(|_| value != 0);
    telemetry.power_percent = tenths(performance.power);
    telemetry.fan_rpm = Some(performance.fan_rpm).filter(|rpm| *rpm != 0);
    let temperature = tenths(performance.temperature);
    telemetry.temperature_celsius = telemetry.temperature_celsius.or(temperature);
    let memory = Some(performance.memory_hertz).filter(|hertz| *hertz != 0);
    telemetry.memory_hertz = telemetry.memory_hertz.or(memory);
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
        let segment = |resident, limit, placement| SegmentStatistics { limit, resident, placement };
        Made {
            statistics: Some(AdapterStatistics { segments: 3, nodes: 3, resets: 2 }),
            segments: vec![
                segment(100, 1000, SegmentPlacement::Dedicated),
                segment(20, 200, SegmentPlacement::Dedicated),
                segment(7, 70, SegmentPlacement::Shared),
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

    fn completed(kernel: &Made, mut telemetry: Telemetry) -> Telemetry {
        complete(&mut telemetry, kernel, &EngineDescription::of(kernel));
        telemetry
    }

    #[test]
    fn everything_comes_from_the_kernel_where_dxcore_reports_nothing() {
        let telemetry = completed(&gpu(), Telemetry::default());
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
    fn values_of_dxcore_are_kept() {
        let memory = Some(MemoryUse { used_bytes: 1, budget_bytes: None });
        let known = Telemetry {
            engines: vec![EngineTelemetry {
                index: 0,
                kind: EngineKind::Other,
                name: None,
                running_time: Duration::from_secs(9),
            }],
            dedicated: memory,
            temperature_celsius: Some(50.0),
            engine_hertz: Some(3),
            memory_hertz: Some(4),
            ..Telemetry::default()
        };
        let telemetry = completed(&gpu(), known.clone());
        let with_limit = Some(MemoryUse { used_bytes: 1, budget_bytes: Some(1200) });
        let expected = Telemetry {
            dedicated: with_limit,
            shared: Some(MemoryUse { used_bytes: 7, budget_bytes: Some(70) }),
            power_percent: Some(45.5),
            fan_rpm: Some(1200),
            resets: Some(2),
            ..known
        };
        assert_eq!(telemetry, expected);
    }

    #[test]
    fn a_query_that_fails_leaves_the_others() {
        assert_eq!(completed(&Made::default(), Telemetry::default()), Telemetry::default());
        let mut kernel = gpu();
        kernel.segments.pop();
        kernel.nodes.pop();
        kernel.performance = Some(Performance::default());
        let telemetry = completed(&kernel, Telemetry::default());
        assert_eq!((telemetry.dedicated, telemetry.shared), (None, None));
        assert_eq!(telemetry.engines.len(), 2);
        assert_eq!((telemetry.temperature_celsius, telemetry.fan_rpm), (None, None));
        assert_eq!(telemetry.resets, Some(2));
        kernel.statistics = None;
        let telemetry = completed(&kernel, Telemetry::default());
        assert_eq!(telemetry, Telemetry::default());
    }

    #[test]
    fn wrong_numbers_of_the_kernel_are_bounded() {
        let huge = AdapterStatistics { segments: u32::MAX, nodes: u32::MAX, resets: 0 };
        let kernel = Made { statistics: Some(huge), ..gpu() };
        assert_eq!(EngineDescription::of(&kernel).len(), 256);
        assert_eq!(completed(&kernel, Telemetry::default()).engines.len(), 3);
        assert_eq!(running_time(i64::MAX), Duration::from_nanos(u64::MAX));
        assert_eq!(running_time(i64::MIN), Duration::ZERO);
    }
}
