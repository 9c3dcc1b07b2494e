//! The port to the plugin: what it implements for each extended resource.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::{ContainerResponse, DeviceList};

/// One extended resource.
///
/// Calls come from kubelets at any time and in any order, also before a list was
/// ever sent. They run on the thread that serves everything else, so they must not
/// block for longer than a look at a few files takes.
pub trait Resource: Send + Sync + 'static {
    /// The extended resource's name, `domain/name`.
    fn name(&self) -> &str;

    /// What the names of this resource's sockets begin with: a socket is
    /// `<prefix>-<unix milliseconds>.sock`.
    fn socket_prefix(&self) -> &str;

    /// The list as it is now and as it changes. One writer, any number of readers.
    fn devices(&self) -> watch::Receiver<Arc<DeviceList>>;

    /// What a container needs to use the devices `ids`.
    fn allocate(&self, ids: &[String]) -> Result<ContainerResponse, Refusal>;

    /// Which devices to give away, best first.
    fn prefer(&self, request: PreferredRequest<'_>) -> Result<Vec<String>, Refusal>;
}

/// A kubelet's question which of the free devices a container should get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreferredRequest<'a> {
    /// The devices to choose from.
    pub available: &'a [String],
    /// The devices that the choice must hold.
    pub must_include: &'a [String],
    /// How many devices to choose, those that must be held included.
    pub size: usize,
}

/// Why a call is answered with an error. The kubelet shows the message in the pod's events.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of refusal this is.
    pub kind: RefusalKind,
    /// One sentence that names the object and the value.
    pub message: String,
}

impl Refusal {
    /// A refusal with its sentence.
    pub fn new(kind: RefusalKind, message: impl fmt::Display) -> Self {
        Refusal { kind, message: message.to_string() }
    }
}

/// The kinds of refusals, as gRPC names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// The request can never be right.
    InvalidArgument,
    /// A device that does not exist, or no longer.
    NotFound,
    /// The request is right, the state of the host or the configuration is not.
    FailedPrecondition,
    /// Something failed that should not.
    Internal,
}

impl From<Refusal> for tonic::Status {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.kind {
            RefusalKind::InvalidArgument => tonic::Code::InvalidArgument,
            RefusalKind::NotFound => tonic::Code::NotFound,
            RefusalKind::FailedPrecondition => tonic::Code::FailedPrecondition,
            RefusalKind::Internal => tonic::Code::Internal,
        };
        tonic::Status::new(code, refusal.message)
    }
}
