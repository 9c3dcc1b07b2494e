//! Everything that can happen to the supervisor.

use crate::registration::RegisterError;
use crate::wire::Panicked;

/// One socket of ours, from bind to close.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct EndpointId(pub(crate) u64);

/// Something the supervisor has to answer.
#[derive(Debug)]
pub(crate) enum Event {
    /// The process is to end.
    ShutdownAsked,
    /// A delay has passed, or it is time to look at the sockets again.
    TimePassed,
    /// The kubelet has asked an endpoint for the list.
    StreamOpened(EndpointId),
    /// The kubelet has made room for the whole list.
    ListTaken(EndpointId),
    /// The kubelet's stream is gone.
    StreamEnded(EndpointId),
    /// An attempt to register an endpoint is over.
    RegistrationEnded(EndpointId, Result<(), RegisterError>),
    /// An endpoint serves nobody any more.
    EndpointEnded(EndpointId),
    /// Sockets of earlier processes were looked through.
    LeftoversCleared,
    /// A task panicked.
    Panicked(Panicked),
}
