//! Calls with encoded messages, so that the measured time covers the plugin and the transport, and
//! not the encoding and decoding in this client.

use anyhow::{Context, Result};
use bytes::{Buf, BufMut, Bytes};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// A method of the plugin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// Returns constants.
    GetDevicePluginOptions,
    /// Returns what containers get for their devices.
    Allocate,
}

impl Method {
    fn path(self) -> PathAndQuery {
        PathAndQuery::from_static(match self {
            Method::GetDevicePluginOptions => "/v1beta1.DevicePlugin/GetDevicePluginOptions",
            Method::Allocate => "/v1beta1.DevicePlugin/Allocate",
        })
    }
}

/// Makes calls over a connection.
#[derive(Clone)]
pub(crate) struct RawPlugin(Grpc<Channel>);

impl RawPlugin {
    /// Makes calls with this client.
    pub(crate) fn new(client: Channel) -> RawPlugin {
        RawPlugin(Grpc::new(client))
    }

    /// Sends an encoded request and returns the encoded answer.
    pub(crate) async fn call(&mut self, method: Method, request: Bytes) -> Result<Bytes> {
        self.0.ready().await.context("connection lost")?;
        let answer = self.0.unary(Request::new(request), method.path(), AsBytes).await;
        Ok(answer.with_context(|| format!("{method:?} failed"))?.into_inner())
    }
}

/// A codec that passes encoded messages through.
#[derive(Clone, Copy, Default)]
struct AsBytes;

impl Codec for AsBytes {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = AsBytes;
    type Decoder = AsBytes;

    fn encoder(&mut self) -> AsBytes {
        AsBytes
    }

    fn decoder(&mut self) -> AsBytes {
        AsBytes
    }
}

impl Encoder for AsBytes {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for AsBytes {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
