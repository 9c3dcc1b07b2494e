//! What a host reports: its adapters, and in addition what only some of its libraries know.
//!
//! Each part may hang, so each is read on a separate thread.

mod access;
pub(crate) mod adapter_reader;
mod background_query;
pub(crate) mod container_processes;
pub(crate) mod kernel_comparison;
mod latest_answer;
pub(crate) mod nvidia;
pub(crate) mod telemetry;

pub use access::HostAccess;
pub(crate) use adapter_reader::Cause;
pub use adapter_reader::{HostKind, OpenSource};
pub use kernel_comparison::CompareWithKernel;
pub use nvidia::{NvidiaAnswer, NvidiaGpus, ReadNvidia};
