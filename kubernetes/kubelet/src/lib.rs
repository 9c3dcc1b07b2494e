//! The kubelet device plugin API, registration and supervision.
//!
//! Input: resources that implement [`Resource`], and a [`Transport`]. [`run`] serves each resource
//! on its own socket in the kubelet's device plugin directory and registers it with the kubelet.
//! It keeps every resource served and registered for the lifetime of the process: through kubelet
//! restarts, deleted sockets and directories, refused registrations and calls that hang. The
//! resources may change while it runs ([`Served`]).
//! Output: [`Readiness`], which reports whether a kubelet has the device list of each resource.
//! Nothing in this crate knows what a device is.

mod checkpoint;
mod claim;
mod connection_slots;
mod device_list;
mod directory;
mod endpoint;
mod error_chain;
mod events;
mod grpc_message;
pub mod http2;
mod list_stream;
mod memory_budget;
mod message_fields;
mod other_daemons;
pub mod pod_resources;
mod readiness;
mod registration;
mod request_limits;
mod resource;
mod resource_registration;
mod retry;
mod service;
mod socket_names;
mod socket_search;
pub mod status;
mod stream_ends;
mod supervisor;
mod transport;
mod unary_calls;

/// The messages of the API, the `DevicePlugin` server and the `Registration` client.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated from proto/v1beta1.proto")]
pub mod v1beta1 {
    include!("generated/v1beta1.rs");
}

pub use checkpoint::{CHECKPOINT, CheckpointError, RecordedAllocation, recorded_allocations};
pub use claim::{Claim, Takeover};
pub use device_list::{AdvertisedDevice, DeviceList, Health, ListTooLarge, MESSAGE_LIMIT};
pub use directory::default_device_plugin_dir;
pub use http2::Panicked;
pub use readiness::{OutdatedContainer, Readiness, ResourceReadiness, ResourceState};
pub use resource::{PreferredRequest, Refusal, RefusalKind, Resource};
pub use supervisor::{RunConfig, RunError, Served, run};
pub use transport::{Identity, Listener, Transport, UnixSockets};
pub use v1beta1::{ContainerAllocateResponse as ContainerResponse, DeviceSpec, Mount};

/// The version of the device plugin API. Kubelets compare it exactly.
pub const API_VERSION: &str = "v1beta1";

/// The name of the kubelet's own socket in its device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";
