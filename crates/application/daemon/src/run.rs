//! Runs the daemon.
//!
//! It registers every resource of the configuration and serves them until it receives a shutdown
//! signal, whether the host can be read or not. Two futures run side by side: [`NodeDevices`]
//! follows the host and the configuration, and the supervisor follows the kubelet. The end of
//! either ends both.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use config::{Config, Flags};
use device_plugin::pod_resources::{PodAttribution, default_endpoint};
use device_plugin::{DevicePlugin, default_device_plugin_dir};
use devices::Catalog;
use process::event_loop::{self, EventLoop};
use process::signals;

use crate::DaemonError;
use crate::configuration::{self, ConfigReload};
use crate::launcher::NodeLauncher;
use crate::monitoring;
use crate::monitoring::scrape::{self, Sources};
use crate::node_devices::{DEMONSTRATION, NodeDevices, NodeSources};
use crate::readers::container_processes::ContainerProcesses;
use crate::readers::{HostAccess, telemetry};
use plugin_status::cordon_file;

/// What a daemon is started with.
#[derive(Debug)]
pub struct Settings {
    /// The flags of the configuration.
    pub flags: Flags,
    /// The inventory to read instead of this host.
    pub inventory: Option<PathBuf>,
    /// The address of metrics and probes; `None`: they are not served.
    pub listen: Option<SocketAddr>,
    /// The endpoint of the kubelet's `PodResources` API; `None`: the kubelet's default.
    pub pod_resources: Option<PathBuf>,
    /// The state folder of containerd; `None`: the one that its service names.
    pub containerd_state: Option<PathBuf>,
}

/// A daemon that is ready to run: its options and configuration are valid.
pub struct Daemon {
    event_loop: EventLoop,
    host: HostAccess,
    config: Config,
    settings: Settings,
}

impl Daemon {
    /// Reads the inventory, if there is one, and the configuration.
    ///
    /// # Errors
    /// One of them is missing or invalid.
    pub fn prepare(settings: Settings) -> Result<Daemon, DaemonError> {
        Ok(Daemon {
            event_loop: event_loop::build()?,
            host: HostAccess::of(settings.inventory.as_deref(), settings.flags.demonstration)?,
            config: command_line::configuration::load(&settings.flags)?,
            settings,
        })
    }

    /// Runs the daemon until it receives a shutdown signal.
    pub fn run(self) -> Result<(), DaemonError> {
        let Daemon { event_loop, mut host, config, settings } = self;
        let _entered = event_loop.enter();
        // Before the first log line: a test or service manager may send the signal when it reads it.
        let signal = signals::shutdown_signal(Some(configuration::read_again))?;
        configuration::log(&config);
        let catalog = Catalog::new(config.policy.clone());
        let directory = config.device_plugin_dir.clone().unwrap_or_else(default_device_plugin_dir);
        host.cordons = Some(cordon_file::path_in(&directory));
        let telemetry = telemetry::of(settings.inventory);
        if settings.flags.demonstration {
            tracing::warn!("{DEMONSTRATION}");
        }
        let reload = ConfigReload::start(settings.flags, config)?;
        let reloads = reload.status();
        let sources = NodeSources {
            launcher: NodeLauncher::of_this_machine(),
            ..NodeSources::start(host, reload)?
        };
        let devices = event_loop.block_on(NodeDevices::start(catalog, sources))?;
        let plugin = DevicePlugin::following(&directory, devices.served());
        if let Some(address) = settings.listen {
            let endpoint = settings.pod_resources.unwrap_or_else(default_endpoint);
            let sources = Sources {
                event_loop: event_loop.handle().clone(),
                readiness: plugin.readiness(),
                devices: devices.published(),
                reloads,
                host_name: scrape::host_name(),
                pods: PodAttribution::new(endpoint),
                processes: ContainerProcesses::of_host(settings.containerd_state.as_deref()),
                telemetry,
            };
            monitoring::start(address, sources)?;
        }
        event_loop.block_on(serve(devices, plugin, &directory, signal))
    }
}

async fn serve(
    devices: NodeDevices,
    plugin: DevicePlugin,
    directory: &Path,
    signal: impl Future<Output = &'static str>,
) -> Result<(), DaemonError> {
    let shutdown = async {
        let signal = signal.await;
        tracing::info!(signal, "shutting down");
    };
    tracing::info!(
        version = devices::VERSION,
        directory = %directory.display(),
        "starting"
    );
    tokio::select! {
        ended = plugin.with_graceful_shutdown(shutdown).run() => Ok(ended?),
        ended = devices.run() => Err(ended),
    }
}
