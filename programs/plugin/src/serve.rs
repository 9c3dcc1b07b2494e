//! `serve`: the daemon.
//!
//! It registers every resource of the configuration and serves them until it receives a
//! shutdown signal, whether the host can be read or not. Two futures run side by side: [`NodeDevices`]
//! follows the host and the configuration, and the supervisor follows the kubelet. The end of either
//! ends both.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use config::Config;
use devices::{Catalog, DriverModel};
use kubelet::pod_resources::{PodAttribution, default_endpoint};
use kubelet::{UnixSockets, default_device_plugin_dir};
use node::cli::Failure;
use tokio::sync::watch;

use crate::container_processes::ContainerProcesses;
use crate::device_holders::ask_kubelet;
use crate::device_telemetry;
#[cfg(windows)]
use crate::launcher;
use crate::monitoring;
use crate::node_devices::NodeDevices;
use crate::scrape::{self, Sources};
use node::daemon::arguments::{DevicePluginDir, DriverModels, Input};
use node::daemon::config_reload::ConfigReload;
use node::daemon::config_source::ConfigSource;
use node::daemon::event_loop::EventLoop;
use node::daemon::host_access::HostAccess;
use node::daemon::logging::LogDestination;
#[cfg(windows)]
use node::daemon::read_schedule::HostKind;
use node::daemon::{config_source, event_loop, signals};

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

/// A daemon that is ready to run: its options and configuration are valid.
pub(crate) struct Daemon {
    event_loop: EventLoop,
    host: HostAccess,
    config: Config,
    source: ConfigSource,
    listen: Option<SocketAddr>,
    pod_resources: PathBuf,
}

impl ServeArguments {
    /// Reads the inventory, if there is one, and the configuration.
    pub(crate) fn prepare(self) -> Result<Daemon, Failure> {
        self.daemon.prepare(&self.models.driver_models)
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

/// Runs the daemon until it receives a shutdown signal.
pub(crate) fn run(arguments: ServeArguments) -> Result<(), Failure> {
    let log = arguments.log_destination();
    run_logged(&log, || arguments.prepare()?.run())
}

/// Runs a daemon that logs to `log`. Its failure is printed to standard error, and also logged
/// where the log is a file.
pub(crate) fn run_logged(
    log: &LogDestination,
    daemon: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    daemon().inspect_err(|failure| {
        if let LogDestination::File(_) = log {
            let (error, hint) = (failure.chain(), failure.hint_text());
            tracing::error!(error, hint, "the daemon failed");
        }
    })
}

impl DaemonArguments {
    /// Where the daemon's log lines go.
    pub(crate) fn log_destination(&self) -> LogDestination {
        match &self.log_file {
            Some(path) => LogDestination::File(path.clone()),
            None => LogDestination::QueuedStderr,
        }
    }

    /// Reads the inventory, if there is one, and the configuration for `driver_models`.
    pub(crate) fn prepare(self, driver_models: &[DriverModel]) -> Result<Daemon, Failure> {
        let Input { config, inventory } = self.input;
        let source = ConfigSource::new(driver_models, config, self.directory.device_plugin_dir);
        Ok(Daemon {
            event_loop: event_loop::build()?,
            host: HostAccess::of(inventory.as_deref())?,
            config: source.read().result?,
            source,
            listen: self.listen,
            pod_resources: self.pod_resources.unwrap_or_else(default_endpoint),
        })
    }
}

impl Daemon {
    /// Runs the daemon until it receives a shutdown signal.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Daemon { event_loop, host, config, source, listen, pod_resources } = self;
        let _entered = event_loop.enter();
        // Before the first log line: whoever has seen one may ask for a shutdown.
        let signal = signals::shutdown_signal(true)?;
        config_source::log(&config);
        let catalog = Catalog::new(config.policy.clone());
        let directory = config.device_plugin_dir.clone();
        let directory = directory.unwrap_or_else(default_device_plugin_dir);
        let kind = host.kind;
        let telemetry = device_telemetry::of(kind);
        let mut devices = event_loop.block_on(NodeDevices::start(catalog, host))?;
        let pods = Arc::new(PodAttribution::new(pod_resources));
        devices.ask_holders(ask_kubelet(Arc::clone(&pods)));
        devices.provide_cdi();
        #[cfg(windows)]
        if kind == HostKind::Live {
            devices.provide_launcher(launcher::of_this_host());
        }
        let reload = ConfigReload::start(source, config)?;
        let (readiness, observed) = watch::channel(kubelet::Readiness::default());
        if let Some(address) = listen {
            let sources = Sources {
                event_loop: event_loop.handle().clone(),
                readiness: observed,
                devices: devices.published(),
                reloads: reload.status(),
                host_name: scrape::host_name(),
                pods,
                processes: ContainerProcesses::of_host(),
                telemetry,
            };
            monitoring::start(address, sources)?;
        }
        devices.follow(reload);
        event_loop.block_on(serve(devices, directory, signal, readiness))
    }
}

async fn serve(
    devices: NodeDevices,
    directory: PathBuf,
    signal: impl Future<Output = &'static str>,
    readiness: watch::Sender<kubelet::Readiness>,
) -> Result<(), Failure> {
    let shutdown = async {
        let signal = signal.await;
        tracing::info!(signal, "shutting down");
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        directory = %directory.display(),
        "starting"
    );
    tokio::select! {
        ended = kubelet::run(directory, devices.served(), UnixSockets, shutdown, readiness) => {
            ended.map_err(Failure::runtime)
        }
        ended = devices.run() => Err(ended),
    }
}
