//! The schema versions of the Host Compute Service.
//!
//! The service exists only on Windows, and it can hang, so `schemas` waits for a limited time.

#[cfg(windows)]
use host::HcsSchema;

pub use crate::hcs_error::HcsError;

/// How long [`schemas`] waits. The service answers in milliseconds; if it has to be started
/// first, in a second or two.
#[cfg(windows)]
const LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// The schema versions that the service of this host supports, in the order of the service.
/// Waits for at most ten seconds.
///
/// # Errors
/// The service is missing, denies access, does not respond, or returns an invalid response.
#[cfg(windows)]
pub fn schemas() -> Result<Vec<HcsSchema>, HcsError> {
    crate::threads::call_within(LIMIT, wait_for_schemas).ok_or(HcsError::NoAnswer(LIMIT))?
}

/// As [`schemas`], without a time limit: it returns when the service responds, perhaps never.
#[cfg(windows)]
fn wait_for_schemas() -> Result<Vec<HcsSchema>, HcsError> {
    let answer = crate::sys::hcs::service_properties()?;
    windows_report::hcs_schemas::parse(&answer).ok_or(HcsError::Unreadable(answer))
}
