//! An in-process kubelet that behaves like the real one, including its odd behavior.
//!
//! It follows `pkg/kubelet/cm/devicemanager` of Kubernetes 1.26 to 1.37. Where releases differ,
//! [`Options`] selects one. NUMA alignment, which requires a configured topology manager, is left out,
//! and so are init containers that keep running.
//!
//! It shares only the generated code, the interface of the host, the connections and the rule for
//! resource names with the plugin's side.

mod allocation;
mod kubelet;
mod manager;
mod memory;
mod options;
mod pods;
mod process;
mod registration;

pub use crate::connection::{ClosableIo, connect};
pub use kubelet::KubeletDouble;
pub use manager::ResourceView;
pub use memory::{Host, InMemory, Inspection, MemoryListener};
pub use options::{Cleanup, Faults, Options, Platform, RegisterFault, Release, StreamFault};
pub use pods::{ContainerRequest, ContainerView, PodRequest};
