//! Installs, removes and runs a program as a Windows service.
//!
//! Input: the name and the command line of a service, and the function that it runs. Output: a
//! service that Windows starts, stops and restarts, or a [`ServiceError`]. No type of
//! the crate `windows-service` leaves this crate. On other systems than Windows it contains only
//! the errors.

mod error;
#[cfg(windows)]
mod install;
#[cfg(windows)]
mod run;

pub use error::ServiceError;
#[cfg(windows)]
pub use install::{Installed, NewService, install, uninstall};
#[cfg(windows)]
pub use run::{Outcome, run};
