//! `directx-feature-discovery`: labels a node with the properties of its DirectX devices.

mod arguments;
mod cleanup;
mod event_queue;
mod monitoring;
mod node_state;
mod reporter;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cluster::{Access, Client};
use command_line::{Failure, OutputFormat};
use config::Flags;
use daemon::configuration::{self, ConfigReload, ReloadStatus};
use daemon::cordon_file;
use daemon::host::HostAccess;
use daemon::logging::{self, LogDestination};
use daemon::node_devices::{Discovery, NodeDevices, NodeSources};
use daemon::{event_loop, signals};
use device_plugin::default_device_plugin_dir;
use devices::report::NodeReport;
use devices::{Catalog, DeviceSet, Moment};
use tokio::sync::watch;

use crate::arguments::{Command, CommandLine};
use crate::reporter::Reporter;

pub use arguments::command;
pub use node_state::MANAGER as FIELD_MANAGER;

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    command_line::run(|| run(&command_line::parse(command())?).map(|()| ExitCode::SUCCESS))
}

fn run(line: &CommandLine) -> Result<(), Failure> {
    if let Some(Command::Cleanup(arguments)) = &line.command {
        logging::start(&line.logs, &LogDestination::Stderr)?;
        return cleanup::run(arguments);
    }
    if line.print {
        logging::start(&line.logs, &LogDestination::Stderr)?;
        return print(line);
    }
    let _flush = logging::start(&line.logs, &LogDestination::QueuedStderr)?;
    let event_loop = event_loop::build()?;
    let host = HostAccess::of(line.input.inventory.as_deref())?;
    let flags = Flags {
        driver_models: line.models.driver_models.clone(),
        config: line.input.config.clone(),
        device_plugin_dir: line.device_plugin_dir.clone(),
    };
    let config = configuration::load(&flags)?;
    let _entered = event_loop.enter();
    let shutdown = signals::shutdown_signal(true)?;
    let directory = config.device_plugin_dir.clone().unwrap_or_else(default_device_plugin_dir);
    let cordons = Some(cordon_file::path_in(&directory));
    let client = client(line.kubeconfig.as_deref(), &node_name(line)?)?;
    let taint = line.startup_taint.clone();
    let reporter = Reporter::new(client, line.gfd_labels, taint, Some(directory));
    configuration::log(&config);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    if let Some(address) = line.listen {
        monitoring::start(address, reporter.requests())?;
    }
    let catalog = Catalog::new(config.policy.clone());
    let reload = ConfigReload::start(flags, config)?;
    // Labels have no UUIDs, and asking for them wakes up GPUs that sleep.
    let host = HostAccess { read_uuids: None, cordons, ..host };
    event_loop.block_on(async {
        let config_status = reload.status();
        let devices = NodeDevices::start(catalog, NodeSources::start(host, reload)?).await?;
        let sets = devices.discovery();
        tokio::select! {
            ended = devices.run() => Err(ended.into()),
            never = reporter.run(sets, config_status) => match never {},
            signal = shutdown => {
                tracing::info!(signal, "shutting down");
                Ok(())
            }
        }
    })
}

/// The name of the node that the options or the environment name.
fn node_name(line: &CommandLine) -> Result<String, Failure> {
    let node = line.node_name.clone().or_else(|| std::env::var("NODE_NAME").ok());
    node.filter(|name| !name.is_empty()).ok_or_else(|| {
        Failure::usage(anyhow::anyhow!("the name of the node is unknown"))
            .hint("use `--node-name NAME` or the variable NODE_NAME; `--print` needs no cluster")
    })
}

/// A client for this node of the cluster that the kubeconfig file or the environment describes.
fn client(kubeconfig: Option<&Path>, node: &str) -> Result<Client, Failure> {
    let access = match kubeconfig {
        Some(file) => Access::of_kubeconfig(file),
        None => Access::of_pod(|name| std::env::var(name).ok()),
    };
    access.and_then(|access| Client::new(access, FIELD_MANAGER, node)).map_err(|error| {
        let hint = error.hint();
        Failure::usage(error).hint(hint)
    })
}

/// What the program does without a host, for one of many simulated nodes: reports devices that
/// never change on the client's node object, until it is dropped.
pub async fn report_unchanging_devices(client: Client, devices: Arc<DeviceSet>) {
    let (_config, status) = watch::channel(ReloadStatus::default());
    let (_devices, sets) = watch::channel(Discovery::Done(devices));
    Box::pin(Reporter::new(client, false, None, None).run(sets, status)).await;
}

/// `--print`.
fn print(line: &CommandLine) -> Result<(), Failure> {
    let snapshot = command_line::read_host(line.input.inventory.as_deref())?;
    let config = configuration::load(&Flags {
        driver_models: line.models.driver_models.clone(),
        config: line.input.config.clone(),
        device_plugin_dir: None,
    })?;
    for notice in &config.notices {
        configuration::log_notice(notice);
    }
    let offer = Catalog::new(config.policy).offer(&snapshot);
    let set = DeviceSet::next(None, offer, Moment::default());
    let labels = devices::report::labels(&NodeReport::of(&set), line.gfd_labels);
    let lines = labels.iter().map(|(name, value)| format!("{name}={value}\n"));
    match line.output {
        OutputFormat::Text => command_line::print(&lines.collect::<String>()),
        OutputFormat::Json => command_line::print_json(&labels),
    }
}
