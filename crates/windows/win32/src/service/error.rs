//! What the service manager refuses.

use std::io;

use windows::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_FAILED_SERVICE_CONTROLLER_CONNECT, ERROR_SERVICE_DOES_NOT_EXIST,
    ERROR_SERVICE_EXISTS, ERROR_SERVICE_MARKED_FOR_DELETE, WIN32_ERROR,
};

/// Why a service cannot be installed, removed or run.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The user may not change services.
    #[error("access to the service manager is denied")]
    AccessDenied(#[source] io::Error),
    /// A service of this name exists.
    #[error("service `{0}` already exists")]
    Exists(String),
    /// No service has this name.
    #[error("service `{0}` does not exist")]
    DoesNotExist(String),
    /// The service was removed and something still uses it.
    #[error("service `{0}` is being removed")]
    BeingRemoved(String),
    /// The service did not stop, so it was not removed.
    #[error("service `{0}` did not stop within {1} s")]
    DoesNotStop(String, u64),
    /// A user started the program, and not the service manager.
    #[error("this command was not started by the Windows service manager")]
    NotStartedByManager,
    /// Any other error of the operating system.
    #[error("the Windows service manager failed for service `{0}`")]
    Other(String, #[source] io::Error),
}

impl ServiceError {
    /// What the operating system's error means for `service`.
    #[must_use]
    pub fn new(service: &str, error: io::Error) -> ServiceError {
        let service = service.to_owned();
        match error.raw_os_error().map(|code| WIN32_ERROR(code.cast_unsigned())) {
            Some(ERROR_ACCESS_DENIED) => ServiceError::AccessDenied(error),
            Some(ERROR_SERVICE_EXISTS) => ServiceError::Exists(service),
            Some(ERROR_SERVICE_DOES_NOT_EXIST) => ServiceError::DoesNotExist(service),
            Some(ERROR_SERVICE_MARKED_FOR_DELETE) => ServiceError::BeingRemoved(service),
            Some(ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) => ServiceError::NotStartedByManager,
            _ => ServiceError::Other(service, error),
        }
    }
}

/// The operating system's error in an error of `windows-service`.
pub(super) fn os_error(error: windows_service::Error) -> io::Error {
    match error {
        windows_service::Error::Winapi(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_code_has_a_message() {
        for (code, message) in [
            (5, "access to the service manager is denied"),
            (1060, "service `x` does not exist"),
            (1063, "this command was not started by the Windows service manager"),
            (1072, "service `x` is being removed"),
            (1073, "service `x` already exists"),
        ] {
            let error = ServiceError::new("x", io::Error::from_raw_os_error(code));
            assert_eq!(error.to_string(), message);
        }
        let other = ServiceError::new("x", io::Error::from_raw_os_error(1058));
        assert_eq!(other.to_string(), "the Windows service manager failed for service `x`");
        assert!(std::error::Error::source(&other).is_some());
    }
}
