//! A client of the Kubernetes API server for a program that reports on its own node.
//!
//! `kube` sends the requests. This crate adds a time limit for each, errors with hints, and
//! the account of a pod on Windows. It is independent of what is reported.

mod access;
mod client;
mod error;
mod event;
mod node;
#[cfg(any(test, feature = "test_server"))]
mod test_server;
#[cfg(test)]
mod tests;
mod watch;

pub use access::{Access, AccessError};
pub use client::Client;
pub use error::{ClusterError, FailureKind};
pub use event::Event;
pub use k8s_openapi::api::core::v1::{Node, NodeCondition};
pub use kube::ResourceExt;
pub use kube::api::WatchEvent;
pub use node::{applied_labels, condition, has_applied, has_taint, is_older};
#[cfg(any(test, feature = "test_server"))]
pub use test_server::TestServer;
pub use watch::NodeWatch;
