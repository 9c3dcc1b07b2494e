//! HTTP/2 connections, each driven by one future that owns everything on it.
//!
//! In come byte streams and services; out comes what ended them. Nothing is spawned
//! that outlives the future that spawned it, and a panic in a call comes out of the
//! connection's future as a [`Panicked`].

mod authority;
mod calls;
mod client;
mod closing;
mod rewriter;
mod server;

use std::any::Any;

pub use client::{Client, Driver, connect};
pub use closing::{Closer, Closing, closing};
pub use rewriter::Rewriter as AuthorityRewriter;
pub use server::{ConnectionLimits, serve_connection};

/// A task ended by panicking.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{task} panicked: {message}")]
pub struct Panicked {
    /// Which task.
    pub task: String,
    /// What it panicked with.
    pub message: String,
}

impl Panicked {
    /// Reads what a task panicked with.
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
