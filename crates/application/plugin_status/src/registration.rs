//! How far the registration of a resource is, in words.

use device_plugin::status::{Phase, ResourceStatus};
use report::Message;

/// What a daemon waits for or has reached with a resource.
pub(crate) fn state(resource: &ResourceStatus) -> &'static str {
    match resource.phase() {
        Phase::Starting => "starting",
        Phase::WaitingForKubelet => "waiting for the kubelet",
        Phase::Registered => "registered; the kubelet has not requested the device list yet",
        Phase::Ready if !resource.is_ready() => "the kubelet received an empty device list",
        Phase::Ready => "the kubelet received the device list",
        Phase::WaitingForOtherDaemon => "waiting for another daemon",
    }
}

/// How far the registration of a resource is, with the last error.
pub(crate) fn registration(resource: &ResourceStatus) -> Message {
    let state = state(resource).to_owned();
    match resource.last_error.as_str() {
        "" => state.into(),
        error => Message::quoting(state, error),
    }
}
