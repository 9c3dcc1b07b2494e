//! Why a resource needs a new socket.

/// Why a resource needs a new socket. A registration is counted under the reason for its socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewSocketReason {
    /// The resource has no socket yet.
    Startup,
    /// Another daemon took a lock after its file had been removed.
    LockLost,
    /// The socket was deleted or replaced.
    SocketLost,
    /// The kubelet's socket is not the one that the resource was registered with.
    KubeletReplaced,
    /// The kubelet closed the `ListAndWatch` stream.
    StreamEnded,
    /// The kubelet accepted the registration and did not call `ListAndWatch`.
    NoStream,
    /// The kubelet refused the registration or did not answer. It may have connected to the socket
    /// anyway, and must not be asked to connect to it twice.
    RegistrationFailed,
}

impl NewSocketReason {
    /// Every reason.
    pub(crate) const ALL: [NewSocketReason; 7] = [
        NewSocketReason::Startup,
        NewSocketReason::LockLost,
        NewSocketReason::SocketLost,
        NewSocketReason::KubeletReplaced,
        NewSocketReason::StreamEnded,
        NewSocketReason::NoStream,
        NewSocketReason::RegistrationFailed,
    ];

    /// The reason as log lines and the label of a metric name it. The names never change.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            NewSocketReason::Startup => "startup",
            NewSocketReason::LockLost => "lock_lost",
            NewSocketReason::SocketLost => "socket_lost",
            NewSocketReason::KubeletReplaced => "kubelet_replaced",
            NewSocketReason::StreamEnded => "stream_ended",
            NewSocketReason::NoStream => "no_stream",
            NewSocketReason::RegistrationFailed => "registration_failed",
        }
    }
}
