//! What every long-running program needs: logs that never block it, an event loop, signals, and a
//! server for metrics and probes.

mod error;
pub mod event_loop;
pub mod logging;
pub mod metrics;
pub mod monitoring;
pub mod signals;

pub use error::ProcessError;
