//! A kubelet in the process, which behaves like the real one, including its odd behavior.
//!
//! It follows `pkg/kubelet/cm/devicemanager` of Kubernetes 1.26 to 1.37. Where releases differ,
//! [`KubeletOptions`] selects one. NUMA alignment, which requires a configured topology manager, is
//! left out, and so are init containers that keep running.
//!
//! Of the framework, it uses only the generated code, the interface to sockets, the connections and
//! the rule for resource names. A mistake in the rest of the framework is not repeated here.

mod allocation;
mod kubelet;
mod manager;
mod memory;
mod options;
mod pods;
mod process;
mod registration;

pub use kubelet::KubeletDouble;
pub use manager::ResourceView;
pub use memory::{InMemory, Inspection, KubeletHost, MemoryListener, MemoryLock};
pub use options::{
    Cleanup, Faults, KubeletOptions, KubeletPlatform, RegisterFault, Release, StreamFault,
};
pub use pods::{ContainerRequest, ContainerView, PodRequest};
