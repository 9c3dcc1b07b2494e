//! `serve`: the daemon.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::options::{DevicePluginDir, DriverModels, Input};
use command_line::{Failure, error_chain};
use config::Flags;
use daemon::DaemonError;
use daemon::run::{Daemon, Settings};
use devices::DriverModel;
use process::logging::{self, LogArguments, LogDestination};
use process::monitoring;

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) models: DriverModels,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// The options of the daemon under each of its names.
#[derive(Args, Debug)]
pub(crate) struct DaemonArguments {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    directory: DevicePluginDir,
    /// Advertise the devices of the inventory on a Linux node to try the plugin; containers get only
    /// their variables
    #[arg(long, requires = "inventory")]
    demonstration: bool,
    /// Log file to write instead of standard error; at 10 MiB it is renamed to `<FILE>.1`
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Address of /metrics, /healthz and /readyz, such as 127.0.0.1:9400; `:9400` for every address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = monitoring::parse_address)]
    listen: Option<SocketAddr>,
    /// Endpoint of the kubelet's `PodResources` API, which reports the pods that hold devices: a
    /// socket, or a named pipe on Windows [default: the kubelet's default]
    #[arg(long, value_name = "PATH")]
    pod_resources: Option<PathBuf>,
    /// State folder of containerd on Windows, which names the pods of processes in metrics [default:
    /// the one that containerd's service names, or that of RKE2]
    #[arg(long, value_name = "DIRECTORY")]
    containerd_state: Option<PathBuf>,
}

impl DaemonArguments {
    /// Runs the daemon for `driver_models` until it receives a shutdown signal. Its failure is
    /// printed to standard error, and also logged where the log is a file.
    pub(crate) fn run(
        self,
        logs: &LogArguments,
        driver_models: Vec<DriverModel>,
    ) -> Result<(), Failure> {
        let log = self.log_destination();
        let _flush = logging::start(logs, &log)?;
        let ended = self.prepare(driver_models).and_then(Daemon::run);
        if let Err(error) = &ended
            && let LogDestination::File(_) = log
        {
            let hint = error.hint();
            tracing::error!(error = error_chain(error), hint, "the daemon failed");
        }
        Ok(ended?)
    }

    /// The paths among the options, each with its option.
    pub(crate) fn paths(&self) -> Vec<(&'static str, &Path)> {
        let paths = [
            ("--config", &self.input.config),
            ("--inventory", &self.input.inventory),
            ("--device-plugin-dir", &self.directory.device_plugin_dir),
            ("--log-file", &self.log_file),
            ("--containerd-state", &self.containerd_state),
        ];
        paths.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))).collect()
    }

    /// Where the daemon's log lines go.
    pub(crate) fn log_destination(&self) -> LogDestination {
        match &self.log_file {
            Some(path) => LogDestination::File(path.clone()),
            None => LogDestination::QueuedStderr,
        }
    }

    /// Reads the inventory, if there is one, and the configuration for `driver_models`.
    pub(crate) fn prepare(self, driver_models: Vec<DriverModel>) -> Result<Daemon, DaemonError> {
        Daemon::prepare(Settings {
            flags: Flags {
                driver_models,
                config: self.input.config,
                device_plugin_dir: self.directory.device_plugin_dir,
                demonstration: self.demonstration,
            },
            inventory: self.input.inventory,
            listen: self.listen,
            pod_resources: self.pod_resources,
            containerd_state: self.containerd_state,
        })
    }
}
