//! Verifies a node: runs the doctor's checks, and then tries what the daemon needs.
//!
//! Input: a [`Request`]. [`run()`] executes the steps one after the other; each has a time limit,
//! and removes what it created, also after an interruption. Output: a [`Report`] as text, JSON,
//! or Markdown without private data for a bug report.

mod differences;
mod process;
mod report;
mod request;
mod run;
mod step;
mod steps;
mod stop;

pub use report::{OutputFormat, Report};
pub use request::{ContainerRequest, Request};
pub use run::run;
pub use step::Step;
