//! The calls of the kubelet that return every pod of the node: `v1.PodResourcesLister/List` with
//! their devices, and `v1alpha1.Pods/ListPods`, of Kubernetes 1.37 and newer, with their UIDs.

use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use super::RESPONSE_LIMIT;
use super::endpoint::{self, Endpoint};
use super::error::PodResourcesError;
use super::pod_uids::{self, PodUids};
use super::response::{self, Assignment};
use crate::http2::{self, Client};

/// The paths of the calls.
const LIST: &str = "/v1.PodResourcesLister/List";
const LIST_PODS: &str = "/v1alpha1.Pods/ListPods";

/// The devices of all containers of the kubelet's node, in the kubelet's order. Connecting and
/// answering may take `limit` together.
///
/// # Errors
/// The endpoint is missing or refuses the call, or the kubelet does not answer in time, or its
/// response is not valid.
pub async fn list(
    endpoint: &Endpoint,
    limit: Duration,
) -> Result<Vec<Assignment>, PodResourcesError> {
    Ok(response::assignments(&call(endpoint, LIST, limit).await?)?)
}

/// The UIDs of all pods of the kubelet's node, from its Pods API.
///
/// # Errors
/// As for [`list()`].
pub(super) async fn list_pod_uids(
    endpoint: &Endpoint,
    limit: Duration,
) -> Result<PodUids, PodResourcesError> {
    Ok(pod_uids::pod_uids(&call(endpoint, LIST_PODS, limit).await?)?)
}

/// The encoded response to a call with an empty request.
async fn call(
    endpoint: &Endpoint,
    method: &'static str,
    limit: Duration,
) -> Result<Bytes, PodResourcesError> {
    let answer = async {
        let io = endpoint::connect(endpoint)
            .await
            .map_err(|error| PodResourcesError::of_connect(endpoint.path().to_owned(), error))?;
        call_through(io, method).await
    };
    timeout(limit, answer).await.map_err(|_| PodResourcesError::Timeout(limit))?
}

/// The encoded response of the kubelet at the other end of a byte stream.
async fn call_through<Io>(io: Io, method: &'static str) -> Result<Bytes, PodResourcesError>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (client, driver) = http2::connect(io).await.map_err(lost)?;
    let call = async {
        let mut grpc = tonic::client::Grpc::with_origin(client, Client::origin())
            .max_decoding_message_size(RESPONSE_LIMIT);
        grpc.ready().await.map_err(lost)?;
        let path = http::uri::PathAndQuery::from_static(method);
        let response = grpc.unary(tonic::Request::new(()), path, ListCodec).await;
        Ok(response.map_err(PodResourcesError::of_call)?.into_inner())
    };
    tokio::select! {
        biased;
        response = call => response,
        ended = driver => {
            Err(ended.map_or(PodResourcesError::Lost(None), lost))
        }
    }
}

fn lost(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> PodResourcesError {
    PodResourcesError::Lost(Some(error.into()))
}

/// Sends an empty request, and returns the response in its encoded form.
#[derive(Clone, Copy)]
struct ListCodec;

impl Codec for ListCodec {
    type Encode = ();
    type Decode = Bytes;
    type Encoder = ListCodec;
    type Decoder = ListCodec;

    fn encoder(&mut self) -> Self::Encoder {
        *self
    }

    fn decoder(&mut self) -> Self::Decoder {
        *self
    }
}

impl Encoder for ListCodec {
    type Item = ();
    type Error = Status;

    fn encode(&mut self, (): (), _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}

impl Decoder for ListCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}

#[cfg(test)]
mod tests;
