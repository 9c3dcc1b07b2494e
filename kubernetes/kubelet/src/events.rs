//! The events that the supervisor handles.

use crate::panicked::Panicked;
use crate::registration::RegisterError;

/// Identifies one socket of the plugin, from bind to close.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct EndpointId(pub(crate) u64);

/// An event that the supervisor handles.
#[derive(Debug)]
pub(crate) enum Event {
    /// The process received a shutdown signal.
    ShutdownRequested,
    /// The resources to serve have changed, or what is reported with them.
    ServedChanged,
    /// A delay has passed, or the sockets are due for a check.
    Tick,
    /// The kubelet called `ListAndWatch` on an endpoint.
    StreamOpened(EndpointId),
    /// The kubelet received the whole first device list.
    ListDelivered(EndpointId),
    /// The kubelet's stream ended.
    StreamEnded(EndpointId),
    /// An attempt to register an endpoint ended.
    RegistrationEnded(EndpointId, Result<(), RegisterError>),
    /// An endpoint closed all its connections.
    EndpointEnded(EndpointId),
    /// A task panicked.
    Panicked(Panicked),
}
