//! One attempt to register one resource with the kubelet.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use tower_service::Service;

use crate::API_VERSION;
use crate::lane::Socket;
use crate::retry::Failure;
use crate::service::OPTIONS;
use crate::transport::Transport;
use crate::v1beta1::RegisterRequest;
use crate::v1beta1::registration_client::RegistrationClient;
use crate::wire::{self, Client};

/// How long a kubelet may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a kubelet may take to answer. It calls back before it does, and allows
/// itself 10 seconds for that (`dial` in `devicemanager/plugin/v1beta1/client.go`).
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// Why a resource is not registered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    /// Nobody listens on the kubelet's socket.
    #[error("could not connect to the kubelet")]
    Connect(#[source] io::Error),
    /// Somebody listens and does not take the connection.
    #[error("the kubelet did not accept a connection within {} s", CONNECT_LIMIT.as_secs())]
    ConnectTimeout,
    /// The connection ended before the answer came.
    #[error("the kubelet closed the connection before it answered")]
    Lost(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// No answer came.
    #[error("the kubelet did not answer within {} s", ANSWER_LIMIT.as_secs())]
    AnswerTimeout,
    /// The kubelet's answer is no.
    #[error("the kubelet refused: {} ({:?})", .0.message(), .0.code())]
    Refused(tonic::Status),
}

impl RegisterError {
    /// How soon another attempt makes sense.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            RegisterError::Connect(_) | RegisterError::Lost(_) => Failure::Unreachable,
            RegisterError::ConnectTimeout
            | RegisterError::AnswerTimeout
            | RegisterError::Refused(_) => Failure::Refused,
        }
    }

    /// Whether the kubelet may have heard of the socket.
    pub(crate) fn socket(&self) -> Socket {
        match self {
            RegisterError::Connect(_) | RegisterError::ConnectTimeout => Socket::Unused,
            RegisterError::Lost(_) | RegisterError::AnswerTimeout | RegisterError::Refused(_) => {
                Socket::Used
            }
        }
    }

    /// Whether the kubelet may have registered us all the same, now or later.
    pub(crate) fn may_have_worked(&self) -> bool {
        matches!(self, RegisterError::AnswerTimeout)
    }

    /// What an administrator can do about it, where that is known.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let RegisterError::Refused(status) = self else { return None };
        let text = status.message();
        if text.contains("ResourceName") && text.contains("invalid") {
            Some(
                "a resource name is `domain/name`, without `kubernetes.io` and without \
                 `requests.` at its beginning",
            )
        } else if text.contains("API version") {
            Some("this kubelet does not speak v1beta1 of the device plugin API")
        } else if text.contains("failed to dial device plugin") {
            Some("the kubelet sees another directory, or may not connect to sockets in this one")
        } else {
            None
        }
    }
}

/// Asks the kubelet at `kubelet` to call back to `endpoint`, a file name in the same directory.
pub(crate) async fn register<T: Transport>(
    transport: T,
    kubelet: &Path,
    resource_name: String,
    endpoint: String,
) -> Result<(), RegisterError> {
    let io = timeout(CONNECT_LIMIT, transport.connect(kubelet))
        .await
        .map_err(|_| RegisterError::ConnectTimeout)?
        .map_err(RegisterError::Connect)?;
    let (mut client, mut driver) =
        wire::connect(io).await.map_err(|e| RegisterError::Lost(Some(e.into())))?;
    let request = RegisterRequest {
        version: API_VERSION.to_owned(),
        endpoint,
        resource_name,
        options: Some(OPTIONS),
    };
    tokio::select! {
        biased;
        // What tonic makes of a lost connection here does not show that it was lost.
        ready = poll_fn(|cx| client.poll_ready(cx)) => ready.map_err(|e| lost(Some(e)))?,
        ended = &mut driver => return Err(lost(ended)),
    }
    let mut registration = RegistrationClient::with_origin(client, Client::origin());
    tokio::select! {
        biased;
        answer = timeout(ANSWER_LIMIT, registration.register(request)) => match answer {
            Err(_) => Err(RegisterError::AnswerTimeout),
            Ok(Ok(_empty)) => Ok(()),
            Ok(Err(status)) => Err(judge(status)),
        },
        ended = driver => Err(lost(ended)),
    }
}

fn lost(error: Option<hyper::Error>) -> RegisterError {
    RegisterError::Lost(error.map(Into::into))
}

/// Tells a kubelet's own refusal from a connection that was lost under the call.
fn judge(status: tonic::Status) -> RegisterError {
    use std::error::Error;
    if status.source().is_some() {
        RegisterError::Lost(Some(Box::new(status)))
    } else {
        RegisterError::Refused(status)
    }
}
