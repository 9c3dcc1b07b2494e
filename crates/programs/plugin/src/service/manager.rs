//! The service at the service manager of Windows: its installation, its removal and what it runs.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use command_line::Failure;
use daemon::launcher::folder;
use device_plugin::default_device_plugin_dir;
use plugin_status::cordon_file;
use process::signals;
use win32::service::{self, NewService, Outcome, ServiceError};

use crate::service::{ServeCommandLine, StoredOptions};

/// The service manager's name for the service.
const NAME: &str = "directx-device-plugin";

pub(super) fn install(arguments: Vec<OsString>) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .context("cannot determine the path of this program")
        .map_err(Failure::runtime)?;
    let service = NewService {
        name: NAME,
        display_name: "DirectX device plugin for Kubernetes",
        description: "Advertises the DirectX devices of this node to the kubelet.",
        program: &program,
        arguments,
    };
    let refused =
        service::install(&service).map_err(|error| failure(error, "cannot install the service"))?;
    for (setting, error) in refused {
        tracing::warn!(setting, %error, "Windows refused a setting of the service");
    }
    command_line::print(&format!(
        "installed service {NAME}; start it with `Start-Service {NAME}`\n"
    ))
}

/// Stops and removes the service, and removes what it made on the node.
pub(super) fn uninstall() -> Result<(), Failure> {
    service::uninstall(NAME).map_err(|error| failure(error, "cannot uninstall the service"))?;
    command_line::print(&format!("uninstalled service {NAME}\n"))?;
    if let Err(error) = cordon_file::remove_empty_folder(&default_device_plugin_dir()) {
        tracing::warn!(%error, "cannot remove the folder for cordoned devices");
    }
    let root = folder::root_of_this_host();
    let removed = folder::remove_all(&root).map_err(|error| {
        Failure::runtime(error)
            .hint("a container uses it; delete it when no pod with a device is running")
    });
    if removed? {
        command_line::print("removed the files of directx-visible\n")?;
    }
    Ok(())
}

/// Runs the daemon as the service, until Windows stops it.
pub(super) fn run(options: StoredOptions) -> Result<(), Failure> {
    service::run(NAME, move || main(&options), signals::request_service_stop)
        .map_err(|error| failure(error, "cannot run as a service"))
}

fn main(options: &StoredOptions) -> Outcome {
    let ended = command_line::run(|| {
        let ServeCommandLine { serve, logs } = options.parse()?;
        serve.daemon.run(&logs, serve.models.driver_models)?;
        Ok(ExitCode::SUCCESS)
    });
    if ended == ExitCode::SUCCESS { Outcome::Stopped } else { Outcome::Failed }
}

fn failure(error: ServiceError, what: &'static str) -> Failure {
    let hint = hint(&error).map(str::to_owned);
    Failure::runtime(anyhow::Error::new(error).context(what)).hint_if_any(hint)
}

fn hint(error: &ServiceError) -> Option<&'static str> {
    match error {
        ServiceError::AccessDenied(_) => {
            Some("run this command as administrator, in an elevated PowerShell")
        }
        ServiceError::Exists(_) => {
            Some("to change its options, run `directx-device-plugin service uninstall` first")
        }
        ServiceError::DoesNotExist(_) => {
            Some("install it with `directx-device-plugin service install`")
        }
        ServiceError::BeingRemoved(_) => {
            Some("close programs that show services, such as services.msc, and try again")
        }
        ServiceError::DoesNotStop(..) => {
            Some("end it with `taskkill /f /im directx-device-plugin.exe` and try again")
        }
        ServiceError::NotStartedByManager => Some(
            "use `directx-device-plugin serve` in a console, or start the installed service \
             with `Start-Service directx-device-plugin`",
        ),
        ServiceError::Other(..) => None,
    }
}
