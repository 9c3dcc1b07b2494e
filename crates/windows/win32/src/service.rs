//! Installs, removes and runs a program as a Windows service.

mod error;
mod install;
mod run;

pub use error::ServiceError;
pub use install::{NewService, install, uninstall};
pub use run::{Outcome, run};
