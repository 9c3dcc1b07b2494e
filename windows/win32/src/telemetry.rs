//! What the adapters of this host do: how busy they are, and their memory, temperature, clocks.
//!
//! In come LUIDs; out goes a [`Telemetry`](devices::Telemetry) for each, or the reason why the
//! adapter cannot be read. `DXCore` is asked first, and the graphics kernel for what it does not
//! report. A query that fails leaves only its own value empty.

mod kernel;
#[cfg(windows)]
mod reader;
mod states;

#[cfg(windows)]
pub(crate) use kernel::{
    AdapterStatistics, KernelQueries, Performance, SegmentPlacement, SegmentStatistics,
};
#[cfg(windows)]
pub use reader::TelemetryReader;
#[cfg(windows)]
pub(crate) use states::AdapterQueries;
