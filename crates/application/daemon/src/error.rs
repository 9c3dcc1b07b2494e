//! Why the daemon cannot do its work.

use std::io;
use std::path::PathBuf;

use command_line::{Failure, HostError};
use config::ConfigError;
use device_plugin::{DeviceListError, RunError};
use devices::ResourceName;
use process::ProcessError;

/// Why the daemon, or a part of it, cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is invalid.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// A configuration file that was in use is missing, or others may change it now.
    #[error("the configuration file `{}` is missing or no longer trusted", .0.display())]
    ConfigurationGone(PathBuf),
    /// A kubelet would refuse the device list of a resource.
    #[error("the device list of resource {resource} is too large")]
    List {
        /// The resource.
        resource: ResourceName,
        /// What is wrong with its list.
        source: DeviceListError,
    },
    /// The adapters of the host cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A file or folder of `directx-visible` cannot be used.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// The operating system refuses a thread, an event loop or a signal handler.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A thread of the daemon has panicked.
    #[error("the thread that {0} panicked")]
    Panic(&'static str),
    /// The resources cannot be served.
    #[error(transparent)]
    Serve(#[from] RunError),
}

/// Why `directx-visible` cannot be provided or removed.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// None of the folders has its files. The text says for each of them why.
    #[error("{0}")]
    Missing(String),
    /// The containers that this machine starts are not those of Windows.
    #[error("this machine does not run Windows")]
    NotWindows,
    /// The files were removed after they were provided.
    #[error("its files were removed from {0}")]
    Removed(String),
    /// A file of Windows' own System32 would be hidden.
    #[error("{} exists on the host", .0.display())]
    OnHost(PathBuf),
    /// A file or folder cannot be used.
    #[error("{what} {}", path.display())]
    File {
        /// What failed, such as `cannot write`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl LauncherError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            LauncherError::Missing(_) => {
                "set visibility.enabled of the chart, which copies directx-visible.exe and \
                 directx-visible-filter.dll to %ProgramFiles%\\directx-visible; or copy them there \
                 or beside the plugin, or set visibility: off"
            }
            LauncherError::NotWindows => {
                "run the plugin on Windows, or set visibility: off; `simulate` shows what containers \
                 get there"
            }
            LauncherError::Removed(_) => {
                "look for an antivirus program that removes them; the plugin writes them again, and \
                 uses them if they still exist after ten seconds"
            }
            LauncherError::OnHost(_) => {
                "remove this file, which may also be in System32 of containers"
            }
            LauncherError::File { .. } => {
                "remove the folder if it is a link, is in the place of a file or can be changed by \
                 others, and look for an antivirus program that locks the file; the plugin tries \
                 again every ten seconds"
            }
        }
    }
}

impl DaemonError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            DaemonError::Configuration(error) => error.hint(),
            DaemonError::Host(error) => error.hint(),
            DaemonError::Launcher(error) => Some(error.hint()),
            DaemonError::ConfigurationGone(_) => Some(
                "restore the file and its access rights, or restart the plugin to run without it",
            ),
            DaemonError::List { .. } => Some(
                "a kubelet accepts 4 MiB for one resource: lower `multitenancy`, or spread the \
                 devices over several resources with `resources:`",
            ),
            DaemonError::Process(error) => error.hint(),
            DaemonError::Panic(_) | DaemonError::Serve(_) => None,
        }
    }

    /// Whether the program needs other options or another configuration.
    fn is_wrong_usage(&self) -> bool {
        match self {
            DaemonError::Configuration(_)
            | DaemonError::ConfigurationGone(_)
            | DaemonError::List { .. } => true,
            DaemonError::Host(error) => error.is_wrong_usage(),
            DaemonError::Process(error) => error.is_wrong_usage(),
            DaemonError::Launcher(_) | DaemonError::Panic(_) | DaemonError::Serve(_) => false,
        }
    }
}

/// How a program ends that cannot go on.
impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Failure {
        let hint = error.hint().map(str::to_owned);
        let is_usage = error.is_wrong_usage();
        Failure::of(error, is_usage, hint)
    }
}
