//! A panic as an error, because the state that it leaves behind may be inconsistent.

use std::any::Any;

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
