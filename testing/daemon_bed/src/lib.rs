//! For programs that run the daemon from outside, as a kubelet does.
//!
//! Provides the daemon as a process with its figures ([`Program`]), a node for it ([`Node`]), a
//! kubelet with which it registers ([`MinimalKubelet`]), a client that sends encoded messages
//! ([`RawPlugin`]), and statistics ([`Sample`]). It does not evaluate the figures.

mod machine;
mod minimal_kubelet;
mod node;
mod outcome;
mod program;
mod raw_client;
mod sample;

pub use machine::describe as describe_machine;
pub use minimal_kubelet::{MinimalKubelet, ReceivedList};
pub use node::{FirstGpu, GPUS, Node, RESOURCE, Shape};
pub use outcome::run;
pub use program::Program;
pub use raw_client::{Method, RawPlugin};
pub use sample::{Sample, microseconds, milliseconds};
