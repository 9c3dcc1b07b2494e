//! Why a resource needs a new socket.

use strum::{IntoStaticStr, VariantArray};

/// Why a resource needs a new socket. A registration is counted under the reason for its socket. The
/// names of the reasons are values of a metric, which never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    /// The reason as log lines and the label of a metric name it.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_the_metric_never_change() {
        let names: Vec<&str> = NewSocketReason::VARIANTS.iter().map(|r| r.as_str()).collect();
        let expected = [
            "startup",
            "lock_lost",
            "socket_lost",
            "kubelet_replaced",
            "stream_ended",
            "no_stream",
            "registration_failed",
        ];
        assert_eq!(names, expected);
    }
}
