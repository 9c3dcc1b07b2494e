//! An in-process kubelet that behaves as the real one, odd parts included.
//!
//! In come plugins that register over a [`Host`]'s sockets, and [`PodRequest`]s; out come
//! the node's resources as the kubelet would report them, and for each pod what its
//! containers would be given, after the kubelet's merging.
//!
//! It follows `pkg/kubelet/cm/devicemanager` of Kubernetes 1.26 to 1.37: where releases
//! differ, [`Options`] says which one is meant. What it leaves out: NUMA alignment, which
//! the topology manager must be configured for, and everything that is not about devices.

mod allocation;
mod dice;
mod faults;
mod host;
mod kubelet;
mod manager;
mod memory;
mod merging;
mod names;
mod pods;
mod process;
mod registration;

/// The messages of the API, and the kubelet's half of its services.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated from v1beta1.proto")]
pub mod v1beta1 {
    include!("generated/v1beta1.rs");
}

pub use dice::Dice;
pub use faults::{Faults, RegisterFault, StreamFault};
pub use host::Host;
pub use kubelet::{KubeletDouble, Options};
pub use manager::{Cleanup, DeviceView, Iteration, Platform, Release, ResourceView};
pub use memory::{InMemory, MemoryListener};
pub use names::is_extended_resource_name;
pub use pods::{
    Admission, ContainerKind, ContainerRequest, ContainerView, Dropped, PodRequest, Refused,
    Verdict,
};
