//! One attempt to register one resource with the kubelet: connects to the kubelet's socket and
//! calls `Register`.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use crate::API_VERSION;
use crate::channel;
use crate::retry::{Failure, SocketUse};
use crate::transport::Transport;
use crate::v1beta1::registration_client::RegistrationClient;
use crate::v1beta1::{DevicePluginOptions, RegisterRequest};

/// How long a kubelet may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a kubelet may take to answer `Register`. It connects to the plugin before it answers,
/// with a timeout of 10 seconds (`dial` in `devicemanager/plugin/v1beta1/client.go`).
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// Why a registration attempt failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    /// No process listens on the kubelet's socket.
    #[error("cannot connect to kubelet")]
    Connect(#[source] io::Error),
    /// A process listens on the kubelet's socket and does not accept the connection.
    #[error("kubelet did not accept a connection within {} s", CONNECT_LIMIT.as_secs())]
    ConnectTimeout,
    /// The connection ended before the answer arrived.
    #[error("kubelet closed the connection before it answered")]
    Lost(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No answer arrived.
    #[error("kubelet did not answer within {} s", ANSWER_LIMIT.as_secs())]
    AnswerTimeout,
    /// The kubelet answered with an error.
    #[error("kubelet refused the registration: {} ({:?})", .0.message(), .0.code())]
    Refused(tonic::Status),
}

impl RegisterError {
    /// The kind of the failure, which determines the delay before the next attempt.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            RegisterError::Connect(_) | RegisterError::Lost(_) => Failure::Unreachable,
            RegisterError::ConnectTimeout
            | RegisterError::AnswerTimeout
            | RegisterError::Refused(_) => Failure::Refused,
        }
    }

    /// Whether the kubelet may have registered the socket.
    pub(crate) fn socket_use(&self) -> SocketUse {
        match self {
            RegisterError::Connect(_) | RegisterError::ConnectTimeout => SocketUse::NeverRegistered,
            RegisterError::Lost(_) | RegisterError::AnswerTimeout | RegisterError::Refused(_) => {
                SocketUse::MaybeRegistered
            }
        }
    }

    /// Whether the kubelet may still complete the registration, now or later.
    pub(crate) fn may_still_succeed(&self) -> bool {
        matches!(self, RegisterError::AnswerTimeout)
    }

    /// What an administrator can do about the failure, if that is known.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let RegisterError::Refused(status) = self else { return None };
        let text = status.message();
        if text.contains("ResourceName") && text.contains("invalid") {
            Some(
                "use a resource name of the form `domain/name` that does not contain \
                 `kubernetes.io` and does not start with `requests.`",
            )
        } else if text.contains("API version") {
            Some("use a kubelet that supports version v1beta1 of the device plugin API")
        } else if text.contains("failed to dial device plugin") {
            Some(
                "check that kubelet and plugin use the same device plugin directory, and that \
                 kubelet may connect to the sockets in it",
            )
        } else {
            None
        }
    }
}

/// Registers `endpoint` with the kubelet behind the socket `kubelet`. `endpoint` is the file name
/// of a socket in the same directory.
pub(crate) async fn register<T: Transport>(
    transport: T,
    kubelet: &Path,
    resource_name: String,
    endpoint: String,
    options: DevicePluginOptions,
) -> Result<(), RegisterError> {
    let io = timeout(CONNECT_LIMIT, transport.connect(kubelet))
        .await
        .map_err(|_| RegisterError::ConnectTimeout)?
        .map_err(RegisterError::Connect)?;
    let call = async {
        let lost = |error| RegisterError::Lost(Box::new(error));
        let mut kubelet = RegistrationClient::new(channel::over(io).await.map_err(lost)?);
        let version = API_VERSION.to_owned();
        let request = RegisterRequest { version, endpoint, resource_name, options: Some(options) };
        kubelet.register(request).await.map(drop).map_err(call_error)
    };
    timeout(ANSWER_LIMIT, call).await.map_err(|_| RegisterError::AnswerTimeout)?
}

/// Distinguishes an error that the kubelet answered with from a connection that was lost during
/// the call.
fn call_error(status: tonic::Status) -> RegisterError {
    if channel::is_lost(&status) {
        RegisterError::Lost(Box::new(status))
    } else {
        RegisterError::Refused(status)
    }
}
