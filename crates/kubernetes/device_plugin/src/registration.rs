//! One attempt to register one resource with the kubelet: connects to the kubelet's socket and
//! calls `Register`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use tonic::Status;

use crate::connection;
use crate::retry::{FailureKind, REFUSED_DELAY, UNREACHABLE_DELAY};
use crate::transport::Transport;
use crate::v1beta1::registration_client::RegistrationClient;
use crate::v1beta1::{DevicePluginOptions, RegisterRequest};

/// The version of the device plugin API. Kubelets compare it exactly.
pub const API_VERSION: &str = "v1beta1";

/// How long a kubelet may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a kubelet may take to answer `Register`. It connects to the plugin before it answers,
/// with a timeout of 10 seconds (`dial` in `devicemanager/plugin/v1beta1/client.go`).
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// Why a registration attempt failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    /// No process listens on the kubelet's socket, or the process does not accept the connection.
    #[error("cannot connect to kubelet")]
    Connect(#[source] io::Error),
    /// The connection ended before the answer arrived.
    #[error("kubelet closed the connection before it answered: {0}")]
    Lost(String),
    /// The kubelet's answer did not arrive in time.
    #[error("kubelet did not answer within {} s", ANSWER_LIMIT.as_secs())]
    Timeout,
    /// The kubelet answered with an error.
    #[error("kubelet refused the registration: {} ({:?})", .0.message(), .0.code())]
    Refused(Status),
}

impl RegisterError {
    /// The longest delay before the next attempt.
    pub(crate) fn longest_delay(&self) -> Duration {
        match self {
            RegisterError::Connect(_) | RegisterError::Lost(_) => UNREACHABLE_DELAY,
            RegisterError::Timeout | RegisterError::Refused(_) => REFUSED_DELAY,
        }
    }

    /// The kind of the failure.
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            RegisterError::Connect(error) => FailureKind::Connect(error.kind()),
            RegisterError::Lost(_) => FailureKind::Lost,
            RegisterError::Timeout => FailureKind::Timeout,
            RegisterError::Refused(status) => FailureKind::Refused(status.code(), self.hint()),
        }
    }

    /// Whether the kubelet may have registered the socket.
    pub(crate) fn may_have_registered(&self) -> bool {
        !matches!(self, RegisterError::Connect(_))
    }

    /// Whether the kubelet may still complete the registration, now or later.
    pub(crate) fn may_still_register(&self) -> bool {
        matches!(self, RegisterError::Timeout)
    }

    /// What an administrator can do about the failure, if that is known.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let RegisterError::Refused(status) = self else { return None };
        let text = status.message();
        if text.contains("API version") {
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
    kubelet: PathBuf,
    resource_name: String,
    endpoint: String,
    options: DevicePluginOptions,
) -> Result<(), RegisterError> {
    let io = timeout(CONNECT_LIMIT, transport.connect(&kubelet))
        .await
        .unwrap_or_else(|_| {
            let limit = CONNECT_LIMIT.as_secs();
            let text = format!("kubelet did not accept a connection within {limit} s");
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        })
        .map_err(RegisterError::Connect)?;
    let call = async {
        let channel = connection::connect(io).await.map_err(RegisterError::Lost)?;
        let version = API_VERSION.to_owned();
        let request = RegisterRequest { version, endpoint, resource_name, options: Some(options) };
        let answer = RegistrationClient::new(channel).register(request).await;
        answer.map(drop).map_err(|status| match connection::lost(&status) {
            Some(lost) => RegisterError::Lost(lost),
            None => RegisterError::Refused(status),
        })
    };
    timeout(ANSWER_LIMIT, call).await.map_err(|_| RegisterError::Timeout)?
}
