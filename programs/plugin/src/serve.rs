//! `serve`: the daemon.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::Failure;
use command_line::options::{DevicePluginDir, DriverModels, Input};
use config::Flags;
use daemon::logging::{self, LogArguments, LogDestination};
use daemon::monitoring;
use daemon::run::{Daemon, Settings};
use devices::DriverModel;

/// The options of `serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    models: DriverModels,
    #[command(flatten)]
    daemon: DaemonArguments,
}

/// The options of the daemon under each of its names.
#[derive(Args, Debug)]
pub(crate) struct DaemonArguments {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    directory: DevicePluginDir,
    /// Log file to write instead of standard error; at 10 MiB it is renamed to `<FILE>.1`
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Address of /metrics, /healthz and /readyz, such as 127.0.0.1:9400; `:9400` for every address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = monitoring::parse_address)]
    listen: Option<SocketAddr>,
    /// Endpoint of the kubelet's `PodResources` API, which reports the pods that hold devices: a socket,
    /// or a named pipe on Windows [default: the kubelet's default]
    #[arg(long, value_name = "PATH")]
    pod_resources: Option<PathBuf>,
    /// Accepted for compatibility, without effect: a daemon waits until another one with the same
    /// resource has ended
    #[arg(long, hide = true)]
    replace: bool,
}

impl ServeArguments {
    /// Runs the daemon until it receives a shutdown signal.
    pub(crate) fn run(self, logs: &LogArguments) -> Result<(), Failure> {
        self.daemon.run(logs, self.models.driver_models)
    }

    /// Reads the inventory, if there is one, and the configuration.
    pub(crate) fn prepare(self) -> Result<Daemon, Failure> {
        self.daemon.prepare(self.models.driver_models)
    }

    /// Where the daemon's log lines go.
    pub(crate) fn log_destination(&self) -> LogDestination {
        self.daemon.log_destination()
    }

    /// The paths among the options, each with its option.
    pub(crate) fn paths(&self) -> Vec<(&'static str, &Path)> {
        let DaemonArguments { input, directory, log_file, listen: _, pod_resources: _, replace: _ } =
            &self.daemon;
        let paths = [
            ("--config", &input.config),
            ("--inventory", &input.inventory),
            ("--device-plugin-dir", &directory.device_plugin_dir),
            ("--log-file", log_file),
        ];
        paths.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))).collect()
    }
}

impl DaemonArguments {
    /// Runs the daemon for `driver_models` until it receives a shutdown signal. Its failure is printed
    /// to standard error, and also logged where the log is a file.
    pub(crate) fn run(
        self,
        logs: &LogArguments,
        driver_models: Vec<DriverModel>,
    ) -> Result<(), Failure> {
        let log = self.log_destination();
        let _flush = logging::start(logs, &log)?;
        self.prepare(driver_models).and_then(Daemon::run).inspect_err(|failure| {
            if let LogDestination::File(_) = log {
                let (error, hint) = (failure.chain(), failure.hint_text());
                tracing::error!(error, hint, "the daemon failed");
            }
        })
    }

    /// Where the daemon's log lines go.
    fn log_destination(&self) -> LogDestination {
        match &self.log_file {
            Some(path) => LogDestination::File(path.clone()),
            None => LogDestination::QueuedStderr,
        }
    }

    /// Reads the inventory, if there is one, and the configuration for `driver_models`.
    fn prepare(self, driver_models: Vec<DriverModel>) -> Result<Daemon, Failure> {
        Daemon::prepare(Settings {
            flags: Flags {
                driver_models,
                config: self.input.config,
                device_plugin_dir: self.directory.device_plugin_dir,
            },
            inventory: self.input.inventory,
            listen: self.listen,
            pod_resources: self.pod_resources,
        })
    }
}
