//! HTTP/2 connections. One future drives each connection and owns all its calls.
//!
//! Input: byte streams and services. Output: the reason why a connection ended. No spawned task
//! outlives the future that spawned it, and the future of a connection returns a panic in a call
//! as [`Panicked`].

mod authority_rewriter;
mod byte_stream;
mod calls;
mod client;
mod close_signal;
mod reading_turn;
mod rewriting_stream;
mod server;
mod unwritten;

use std::any::Any;

pub use byte_stream::ByteStream;
pub use client::{Client, Driver, connect};
pub use close_signal::{CloseSignal, Closer, close_signal};

pub use server::{ConnectionLimits, serve_connection};

/// A task panicked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{task} panicked: {message}")]
pub struct Panicked {
    /// The name of the task.
    pub task: String,
    /// The panic message.
    pub message: String,
}

impl Panicked {
    /// Reads the panic message from the payload of a panic.
    #[must_use]
    pub fn new(task: String, payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Panicked { task, message }
    }
}
