//! Runs this process as a service.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use windows_service::define_windows_service;
use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{
    self, ServiceControlHandlerResult, ServiceStatusHandle,
};
use windows_service::service_dispatcher;

use super::ServiceError;
use super::error::os_error;

/// How long the service manager waits for the next report while the service stops. The plugin
/// takes two seconds.
const STOP_HINT: Duration = Duration::from_secs(5);

/// How a service ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The service was stopped.
    Stopped,
    /// The service failed. The service manager restarts it.
    Failed,
}

/// What the service manager's thread runs.
struct Job {
    name: &'static str,
    main: Box<dyn FnOnce() -> Outcome + Send>,
    stop: Arc<dyn Fn() + Send + Sync>,
}

/// The service manager passes nothing to the function that it calls.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

define_windows_service!(called_by_service_manager, service_main);

/// Runs `main` as the service `name`. Calls `stop`, from another thread, when the service is to
/// stop or Windows shuts down; `main` then has five seconds to return. Returns after the
/// service has stopped.
///
/// # Errors
/// This process was not started by the service manager, and any other error of the operating
/// system.
pub fn run(
    name: &'static str,
    main: impl FnOnce() -> Outcome + Send + 'static,
    stop: impl Fn() + Send + Sync + 'static,
) -> Result<(), ServiceError> {
    let job = Job { name, main: Box::new(main), stop: Arc::new(stop) };
    *JOB.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
    service_dispatcher::start(name, called_by_service_manager)
        .map_err(|error| ServiceError::new(name, os_error(error)))
}

fn service_main(_arguments: Vec<OsString>) {
    let job = JOB.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Job { name, main, stop }) = job else { return };
    let report = Arc::<Report>::default();
    let handler = {
        let report = Arc::clone(&report);
        move |control| match control {
            ServiceControl::Stop | ServiceControl::Shutdown => {
                report.state(ServiceState::StopPending, ServiceExitCode::NO_ERROR);
                stop();
                ServiceControlHandlerResult::NoError
            }
            ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
            _ => ServiceControlHandlerResult::NotImplemented,
        }
    };
    // Without a handle, no state can be reported, and the service manager ends the process.
    let Ok(handle) = service_control_handler::register(name, handler) else { return };
    let _ = report.0.set(handle);
    report.state(ServiceState::Running, ServiceExitCode::NO_ERROR);
    let exit_code = match main() {
        Outcome::Stopped => ServiceExitCode::NO_ERROR,
        Outcome::Failed => ServiceExitCode::ServiceSpecific(1),
    };
    report.state(ServiceState::Stopped, exit_code);
}

/// Reports states to the service manager once the handle is known.
#[derive(Default)]
struct Report(OnceLock<ServiceStatusHandle>);

impl Report {
    fn state(&self, state: ServiceState, exit_code: ServiceExitCode) {
        let accepted = match state {
            ServiceState::Running => ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN,
            _ => ServiceControlAccept::empty(),
        };
        let pending = state == ServiceState::StopPending;
        let status = ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state: state,
            controls_accepted: accepted,
            exit_code,
            checkpoint: u32::from(pending),
            wait_hint: if pending { STOP_HINT } else { Duration::ZERO },
            process_id: None,
        };
        if let Some(handle) = self.0.get() {
            // The call fails only if the service manager is gone, and then nothing reads the state.
            let _ = handle.set_service_status(status);
        }
    }
}
