//! A client of the Kubernetes API server for a program that reports on its own node.
//!
//! In come the account of a pod or a kubeconfig file, and what a node object is to say; out go
//! the requests, each within a time limit, and the reason of every failure. It does not know what
//! is reported.

mod client;
mod connection;
mod credentials;
mod error;
mod event;
mod in_cluster;
mod kubeconfig;
mod node;
mod node_feature;
mod retry;
mod server;
#[cfg(any(test, feature = "test_server"))]
mod test_server;
#[cfg(test)]
mod tests;
mod time;
mod tls;
mod watch;
#[cfg(test)]
mod watch_tests;

pub use client::Client;
pub use error::ClusterError;
pub use event::Event;
pub use in_cluster::{ACCOUNT_FOLDER, AccountEnvironment, in_cluster};
pub use kubeconfig::read_kubeconfig;
pub use node::{Condition, Node, Taint};
pub use retry::{Retry, first_delay};
pub use server::{Access, ConfigError};
#[cfg(any(test, feature = "test_server"))]
pub use test_server::TestServer;
pub use watch::NodeWatch;
