//! Which container holds which device, from the kubelet's `PodResources` API, version v1.
//!
//! [`list()`] asks the kubelet once, and [`PodAttribution`] keeps its last answer for metrics: it
//! asks only while it is read, and far less often than the kubelet allows.
//!
//! Kubelets on Windows have the API since 1.28. The UIDs of pods come from the Pods API, which
//! kubelets have since 1.37.

mod attribution;
mod endpoint;
mod error;
mod list;
mod pod_attribution;

pub use attribution::{Attribution, Holder};
pub use endpoint::default_endpoint;
pub use error::{FailureReason, PodResourcesError};
pub use list::list;
pub use pod_attribution::PodAttribution;

#[allow(clippy::all, clippy::pedantic, reason = "generated from proto/pod_resources.proto")]
#[allow(unreachable_pub, dead_code, reason = "generated from proto/pod_resources.proto")]
mod v1 {
    include!("generated/pod_resources.rs");
}

#[allow(clippy::all, clippy::pedantic, reason = "generated from proto/pods.proto")]
#[allow(unreachable_pub, dead_code, reason = "generated from proto/pods.proto")]
mod v1alpha1 {
    include!("generated/pods.rs");
}
