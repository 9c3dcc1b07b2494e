//! What a device does at one moment: how busy it is, and its memory, temperature and clocks.
//!
//! A source fills these values from a live host; nothing here reads anything. Every value is
//! optional, because drivers and Windows versions differ in what they report.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The state of one adapter.
///
/// D3DKMT is the graphics kernel's interface.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Telemetry {
    /// The engines, by index. Empty if they are not reported.
    pub engines: Vec<EngineTelemetry>,
    /// The memory of the adapter itself.
    pub dedicated: Option<MemoryUse>,
    /// The system memory that the adapter can use.
    pub shared: Option<MemoryUse>,
    /// Degrees Celsius. D3DKMT `ADAPTERPERFDATA`, which has tenths of a degree.
    pub temperature_celsius: Option<f64>,
    /// The clock of the first 3D engine, or of the first engine if there is no 3D engine, in
    /// hertz. D3DKMT `NODEPERFDATA`.
    pub engine_hertz: Option<u64>,
    /// The clock of the memory in hertz. D3DKMT `ADAPTERPERFDATA`.
    pub memory_hertz: Option<u64>,
    /// The power draw in percent of the adapter's limit, not in watts. D3DKMT `ADAPTERPERFDATA`,
    /// which has tenths of a percent.
    pub power_percent: Option<f64>,
    /// The speed of the fan in revolutions per minute. D3DKMT `ADAPTERPERFDATA`.
    pub fan_rpm: Option<u32>,
    /// How often Windows has reset the adapter because it did not respond (TDR), since the
    /// adapter was started. D3DKMT statistics of the adapter (`TdrDetectedCount`).
    pub resets: Option<u64>,
}

/// What an adapter of an inventory does all the time, for metrics without a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ConstantLoad {
    /// How busy its 3D engine is, from 0 to 100.
    pub utilization_percent: u32,
    /// The dedicated memory that is used, in MiB.
    #[serde(rename = "usedMemoryMiB")]
    pub used_memory_mib: u64,
}

/// An engine of an adapter (a node, in the graphics kernel).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineTelemetry {
    /// The index among the engines of the adapter, from 0.
    pub index: u32,
    /// What the engine does. D3DKMT `NODEMETADATA`.
    pub kind: EngineKind,
    /// The name that the driver gives the engine, if it gives one. D3DKMT `NODEMETADATA`.
    pub name: Option<String>,
    /// How long the engine was busy since the adapter was started, for all processes of the
    /// host and its containers. D3DKMT statistics of the node.
    pub running_time: Duration,
}

/// What an engine does: `DXGK_ENGINE_TYPE` (d3dkmdt.h). As text, the value of the label
/// `engine_type` in metrics.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EngineKind {
    /// Graphics, and compute on most GPUs.
    #[strum(serialize = "3d")]
    ThreeD,
    /// Copies between memories.
    Copy,
    VideoDecode,
    VideoEncode,
    VideoProcessing,
    SceneAssembly,
    Overlay,
    /// Encrypts and decrypts.
    Crypto,
    /// Compute. Windows has no type for it: drivers report [`Other`](EngineKind::Other) with a
    /// name such as `Compute_0`.
    Compute,
    /// Does something else, or the kind is not reported.
    Other,
}

impl EngineKind {
    /// The kind with this `DXGK_ENGINE_TYPE` and this name.
    #[must_use]
    pub fn new(engine_type: i32, name: Option<&str>) -> EngineKind {
        match engine_type {
            1 => EngineKind::ThreeD,
            2 => EngineKind::VideoDecode,
            3 => EngineKind::VideoEncode,
            4 => EngineKind::VideoProcessing,
            5 => EngineKind::SceneAssembly,
            6 => EngineKind::Copy,
            7 => EngineKind::Overlay,
            8 => EngineKind::Crypto,
            _ if name.is_some_and(names_compute) => EngineKind::Compute,
            _ => EngineKind::Other,
        }
    }
}

/// Whether the name of an engine begins with "compute", in any case.
fn names_compute(name: &str) -> bool {
    let prefix = name.trim_start().get(..7);
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("compute"))
}

/// The use of one kind of memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// The resident memory of all processes. D3DKMT statistics of the memory segments
    /// (`BytesResident`).
    pub used_bytes: u64,
    /// The most that can be used. D3DKMT statistics of the memory segments (`CommitLimit`).
    pub budget_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_windows_have_kinds_and_only_other_engines_are_known_by_name() {
        let kinds: Vec<&str> = (-1..=9).map(|t| EngineKind::new(t, None).into()).collect();
        let expected = [
            "other",
            "other",
            "3d",
            "video_decode",
            "video_encode",
            "video_processing",
            "scene_assembly",
            "copy",
            "overlay",
            "crypto",
            "other",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(EngineKind::new(0, Some("Compute_1")), EngineKind::Compute);
        assert_eq!(EngineKind::new(0, Some("compute")), EngineKind::Compute);
        assert_eq!(EngineKind::new(1, Some("Compute_0")), EngineKind::ThreeD);
        for name in ["", "Gsync", "computé", "ümlaut-x"] {
            assert_eq!(EngineKind::new(0, Some(name)), EngineKind::Other, "{name}");
        }
    }
}
