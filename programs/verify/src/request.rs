//! What a verification is asked.

use std::time::Duration;

use crate::Step;

/// What to verify.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The node and the configuration of its daemon.
    pub node: doctor::Request,
    /// Steps to leave out.
    pub skip: Vec<Step>,
    /// How long to wait for a device event; `None` skips the step.
    pub wait_for_event: Option<Duration>,
    /// The containers to start; `None` skips the step.
    pub container: Option<ContainerRequest>,
}

/// The containers to start.
#[derive(Clone, Debug)]
pub struct ContainerRequest {
    /// An image that containerd has.
    pub image: String,
    /// containerd's namespace, if it is not the default of `ctr`.
    pub namespace: Option<String>,
    /// The command to run; empty for this program.
    pub command: Vec<String>,
}
