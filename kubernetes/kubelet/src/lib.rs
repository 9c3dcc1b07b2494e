#![doc = include_str!("../README.md")]

mod channel;
mod connection;
mod device_list;
mod directory;
mod node;
pub mod pod_resources;
mod readiness;
mod registered_resource;
mod registration;
mod resource;
mod resource_names;
mod retry;
mod server;
mod service;
mod socket_names;
pub mod status;
mod supervisor;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
mod transport;

/// The messages of the API, its servers and its clients.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated from proto/v1beta1.proto")]
pub mod v1beta1 {
    include!("generated/v1beta1.rs");
}

pub use device_list::{AdvertisedDevice, DeviceList, DeviceListError, MESSAGE_LIMIT};
pub use directory::default_device_plugin_dir;
pub use readiness::{Readiness, ResourceReadiness, StatusNotes};
pub use resource::{PreferredRequest, Resource};
pub use resource_names::is_extended_resource_name;
pub use socket_names::default_socket_prefix;
pub use status::OutdatedContainer;
pub use supervisor::{RunError, Served, run, serve};
pub use tonic::{Code, Status};
pub use transport::{Identity, Listener, Lock, Transport, UnixSockets};
pub use v1beta1::{
    CdiDevice, ContainerAllocateResponse as ContainerResponse, DevicePluginOptions, DeviceSpec,
    Mount,
};

/// The versions whose types this crate's interface has: `watch` channels and `Instant`, and the channel
/// of the clients in [`v1beta1`].
pub use {tokio, tonic};

/// The version of the device plugin API. Kubelets compare it exactly.
pub const API_VERSION: &str = "v1beta1";

/// The name of the kubelet's own socket in its device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";
