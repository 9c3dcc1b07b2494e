//! An in-process kubelet that behaves like the real one, including its odd behavior.
//!
//! It shares only the generated code and the interface of the host with the plugin's side.
//!
//! Input: plugins that register over a [`Host`]'s sockets, and [`PodRequest`]s. Output: the node's
//! resources as the kubelet reports them, and for each pod what the kubelet passes to the runtime
//! for its containers, after merging.
//!
//! It follows `pkg/kubelet/cm/devicemanager` of Kubernetes 1.26 to 1.37. Where releases differ,
//! [`Options`] selects one. It does not implement NUMA alignment, which requires a configured
//! topology manager, nor anything unrelated to devices.

mod allocation;
mod connection;
mod faults;
mod grpc_error;
mod host;
mod kubelet;
mod manager;
mod memory;
mod merging;
mod options;
mod pods;
mod process;
mod registration;
mod resource_names;
mod rng;
mod run;

pub use connection::{ClosableIo, connect};
pub use faults::{Faults, RegisterFault, StreamFault};
pub use host::Host;
pub use kubelet::KubeletDouble;
pub use manager::{DeviceView, ResourceView};
pub use memory::{InMemory, Inspection, MemoryListener};
pub use options::{Cleanup, Iteration, Options, Platform, Release};
pub use pods::{
    Admission, ContainerKind, ContainerRequest, ContainerView, Dropped, PodRequest, Refused,
    Verdict,
};
pub use resource_names::is_extended_resource_name;
pub use rng::Rng;
