//! Why a resource gets a new socket.

/// Why a new socket is bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum BindReason {
    /// The resource has no socket yet.
    Startup,
    /// The resource's socket was deleted or replaced.
    SocketLost,
    /// The kubelet's socket is not the one that the resource was registered with.
    KubeletReplaced,
    /// The kubelet's stream ended.
    StreamEnded,
    /// The kubelet accepted the registration and did not call `ListAndWatch`.
    NoStream,
    /// The kubelet refused the registration or did not answer. It may have connected to the
    /// socket anyway, and must not be asked to connect to it twice.
    RegistrationFailed,
    /// The socket stopped accepting connections.
    EndpointEnded,
    /// Another object serves the resource.
    ResourceReplaced,
    /// Another daemon took the lock of the resource, so the stream must end.
    LockLost,
}

impl BindReason {
    /// The reason as text, for logs and for the status.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            BindReason::Startup => "startup",
            BindReason::SocketLost => "plugin socket deleted or replaced",
            BindReason::KubeletReplaced => "kubelet socket replaced",
            BindReason::StreamEnded => "kubelet closed the ListAndWatch stream",
            BindReason::NoStream => "kubelet did not call ListAndWatch",
            BindReason::RegistrationFailed => "previous registration failed",
            BindReason::EndpointEnded => "plugin socket stopped accepting connections",
            BindReason::ResourceReplaced => "resource replaced",
            BindReason::LockLost => "another daemon took the lock of the resource",
        }
    }
    /// The reason as the value of a label.
    pub(crate) fn label(self) -> &'static str {
        match self {
            BindReason::Startup => "startup",
            BindReason::SocketLost => "socket_lost",
            BindReason::KubeletReplaced => "kubelet_replaced",
            BindReason::StreamEnded => "stream_ended",
            BindReason::NoStream => "no_stream",
            BindReason::RegistrationFailed => "registration_failed",
            BindReason::EndpointEnded => "endpoint_ended",
            BindReason::ResourceReplaced => "resource_replaced",
            BindReason::LockLost => "lock_lost",
        }
    }
}
