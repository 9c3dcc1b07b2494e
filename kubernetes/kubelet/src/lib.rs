//! Kubernetes device plugins, on Linux and Windows.
//!
//! A plugin implements [`Resource`] for each extended resource that it offers, and [`serve`] or
//! [`run`] does the rest: it serves each resource on its own socket in the kubelet's device plugin
//! directory, registers it with the kubelet, and keeps it registered for the lifetime of the
//! process, through kubelet restarts, deleted sockets and directories, refused registrations and
//! calls that hang. The plugin pushes device lists through a channel, and the resources may change
//! while they are served ([`Served`]). [`Readiness`] reports whether a kubelet has the device list
//! of each resource. Of several daemons with the same resource, one serves it and the others wait.
//!
//! [`pod_resources`] asks the kubelet which container holds which device, and [`status`] asks a
//! running plugin whether it is ready. The feature `testing` adds an in-process kubelet.
//!
//! Nothing in this crate knows what a device is. Kubernetes 1.26 or newer is required.

mod channel;
mod device_list;
mod directory;
mod limits;
mod lock;
mod node;
pub mod pod_resources;
mod readiness;
mod registered_resource;
mod registration;
mod resource;
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

pub use device_list::{AdvertisedDevice, DeviceList, ListTooLarge, MESSAGE_LIMIT};
pub use directory::default_device_plugin_dir;
pub use readiness::{Readiness, ResourceReadiness, ResourceState};
pub use resource::{PreferredRequest, Resource};
pub use status::OutdatedContainer;
pub use supervisor::{RunError, Served, run, serve};
pub use tonic::{Code, Status};
pub use transport::{Identity, Listener, Lock, Transport, UnixSockets};
pub use v1beta1::{
    ContainerAllocateResponse as ContainerResponse, DevicePluginOptions, DeviceSpec, Mount,
};

/// The version of the device plugin API. Kubelets compare it exactly.
pub const API_VERSION: &str = "v1beta1";

/// The name of the kubelet's own socket in its device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";
