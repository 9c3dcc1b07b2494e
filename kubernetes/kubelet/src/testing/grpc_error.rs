//! Formats gRPC errors as Go does.

use tonic::Status;

/// Formats a gRPC error as `status.Error` of grpc-go does.
pub(crate) fn grpc_error(status: &Status) -> String {
    let code = match status.code() {
        tonic::Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}
