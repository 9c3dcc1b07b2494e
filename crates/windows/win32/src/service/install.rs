//! Installs and removes a service.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceErrorControl,
    ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo, ServiceStartType, ServiceState,
    ServiceType,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use super::ServiceError;
use super::error::os_error;

/// The delays before the restarts after a failure. The last one repeats.
const RESTART_DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(10), Duration::from_mins(1)];

/// After this time without a failure, the next restart has the first delay.
const FAILURE_RESET: Duration = Duration::from_hours(1);

/// How long a service may take to stop before it is removed. The plugin takes two seconds.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How often the state of a stopping service is queried.
const STOP_POLL: Duration = Duration::from_millis(100);

/// A service to install. It runs as `LocalSystem`, starts after the other automatic services, and
/// is restarted when it fails.
pub struct NewService<'a> {
    /// The name for commands.
    pub name: &'a str,
    /// The name in lists.
    pub display_name: &'a str,
    /// What it does, in one sentence.
    pub description: &'a str,
    pub program: &'a Path,
    pub arguments: Vec<OsString>,
}

/// Installs `new` and does not start it. Returns the settings that Windows refused, with its
/// reason; the service works without them.
///
/// # Errors
/// See [`ServiceError`].
pub fn install(new: &NewService<'_>) -> Result<Vec<(&'static str, io::Error)>, ServiceError> {
    create(new).map_err(|error| ServiceError::new(new.name, os_error(error)))
}

fn create(new: &NewService<'_>) -> windows_service::Result<Vec<(&'static str, io::Error)>> {
    let access = ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE;
    let manager = ServiceManager::local_computer(None::<&str>, access)?;
    let info = ServiceInfo {
        name: new.name.into(),
        display_name: new.display_name.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: new.program.to_owned(),
        launch_arguments: new.arguments.clone(),
        dependencies: Vec::new(),
        account_name: None,
        account_password: None,
    };
    // A restart as failure action needs the right to start the service.
    let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START;
    let service = manager.create_service(&info, access)?;
    let settings = [
        ("description", service.set_description(new.description)),
        ("delayed start", service.set_delayed_auto_start(true)),
        ("restart after a failure", set_restarts(&service)),
    ];
    Ok(settings
        .into_iter()
        .filter_map(|(setting, result)| result.err().map(|error| (setting, os_error(error))))
        .collect())
}

/// Also restarts a service that reports a failure; by default, only one that crashes.
fn set_restarts(service: &Service) -> windows_service::Result<()> {
    let action_type = ServiceActionType::Restart;
    service.update_failure_actions(ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(FAILURE_RESET),
        reboot_msg: None,
        command: None,
        actions: Some(RESTART_DELAYS.map(|delay| ServiceAction { action_type, delay }).to_vec()),
    })?;
    service.set_failure_actions_on_non_crash_failures(true)
}

/// Stops the service `name` and removes it.
///
/// # Errors
/// See [`ServiceError`].
pub fn uninstall(name: &str) -> Result<(), ServiceError> {
    match stop_and_delete(name) {
        Ok(true) => Ok(()),
        Ok(false) => Err(ServiceError::DoesNotStop(name.to_owned(), STOP_LIMIT.as_secs())),
        Err(error) => Err(ServiceError::new(name, os_error(error))),
    }
}

/// `false` if the service does not stop in time.
fn stop_and_delete(name: &str) -> windows_service::Result<bool> {
    let access = ServiceManagerAccess::CONNECT;
    let manager = ServiceManager::local_computer(None::<&str>, access)?;
    let access = ServiceAccess::QUERY_STATUS | ServiceAccess::STOP | ServiceAccess::DELETE;
    let service = manager.open_service(name, access)?;
    let started = Instant::now();
    let mut state = service.query_status()?.current_state;
    if state != ServiceState::Stopped {
        // The call fails if the service stops in the meantime or starts just now; the state
        // decides.
        let _ = service.stop();
    }
    while state != ServiceState::Stopped {
        if started.elapsed() > STOP_LIMIT {
            return Ok(false);
        }
        std::thread::sleep(STOP_POLL);
        state = service.query_status()?.current_state;
    }
    service.delete()?;
    Ok(true)
}
