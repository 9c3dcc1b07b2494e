//! The kubelet's device plugin API, registration and supervision.
//!
//! In come resources that implement [`Resource`] and a [`Transport`]; [`run`] serves
//! each on a socket of its own in the kubelet's directory, registers it, and keeps
//! both true for as long as the process lives: through kubelet restarts, deleted
//! sockets and directories, refusals and hung calls. Out goes [`Readiness`], which
//! says whether a kubelet has each resource's list. Nothing here knows what a
//! device is.

mod chain;
mod directory;
mod endpoint;
mod events;
mod lane;
mod leftovers;
mod list;
mod list_stream;
mod readiness;
mod registration;
mod resource;
mod retry;
mod service;
pub mod status;
mod supervisor;
mod transport;
pub mod wire;

/// The messages of the API, and this side's half of its services.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated from proto/v1beta1.proto")]
pub mod v1beta1 {
    include!("generated/v1beta1.rs");
}

pub use directory::default_device_plugin_dir;
pub use list::{AdvertisedDevice, DeviceList, Health, ListTooLarge, MESSAGE_LIMIT};
pub use readiness::{Readiness, ResourceReadiness, ResourceState};
pub use resource::{PreferredRequest, Refusal, RefusalKind, Resource};
pub use supervisor::{RunConfig, RunError, run};
pub use transport::{Identity, Listener, Transport, UnixSockets};
pub use v1beta1::{ContainerAllocateResponse as ContainerResponse, DeviceSpec, Mount};
pub use wire::Panicked;

/// The version of the API that kubelets accept, to the letter.
pub const API_VERSION: &str = "v1beta1";

/// The name of the kubelet's own socket in its device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";
