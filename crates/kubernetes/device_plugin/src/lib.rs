#![doc = include_str!("../README.md")]
// This crate is published: its users read the documentation.
#![warn(missing_docs)]

pub mod connection;
mod device_list;
mod names;
mod node;
mod plugin;
pub mod pod_resources;
mod readiness;
mod registered_resource;
mod registration;
mod resource;
mod retry;
mod server;
mod service;
pub mod status;
mod supervisor;
mod text;
mod transport;
pub mod unix_sockets;

/// The messages of the API, its servers and its clients.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated from proto/v1beta1.proto")]
pub mod v1beta1 {
    include!("generated/v1beta1.rs");
}

pub use device_list::{AdvertisedDevice, DeviceList, DeviceListError, MESSAGE_LIMIT};
pub use names::{
    KUBELET_SOCKET, default_device_plugin_dir, default_socket_prefix, is_extended_resource_name,
};
pub use plugin::DevicePlugin;
pub use readiness::{Readiness, ResourceReadiness};
pub use registration::API_VERSION;
pub use resource::{PreferredRequest, Resource};
pub use supervisor::{RunError, Served};
pub use tonic::{Code, Status, async_trait};
pub use transport::{Identity, Listener, Lock, Transport};
pub use unix_sockets::UnixSockets;
pub use v1beta1::{
    CdiDevice, ContainerAllocateResponse as ContainerResponse, DevicePluginOptions, DeviceSpec,
    Mount,
};

/// The interface of this crate has types of these versions: `watch` channels and `Instant` of
/// tokio, and tonic's `Channel`, over which the clients in [`v1beta1`] make their calls.
pub use {tokio, tonic};
