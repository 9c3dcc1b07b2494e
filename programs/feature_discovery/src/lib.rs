//! `directx-feature-discovery`: labels a node with what is known about its DirectX devices.

mod cluster_access;
mod command_line;
mod delays;
mod event_queue;
mod node_devices;
mod node_state;
mod plugin_status;
mod rejections;
mod reporter;
mod simulated_node;

use std::process::ExitCode;

use clap::FromArgMatches;
use cli::Failure;
use daemon::config::{ConfigSource, Reading};
use daemon::config_reload::{ConfigReload, ReloadParts};
use daemon::event_loop::EventLoop;
use daemon::host_access::HostAccess;
use daemon::logging::{self, LogDestination, LogLevel};
use daemon::signals::ReloadSignal;
use daemon::{config, event_loop, signals};
use devices::{Catalog, DeviceSet, Moment};

use crate::command_line::CommandLine;
use crate::node_devices::NodeDevices;
use crate::plugin_status::PluginStatus;

pub use node_state::MANAGER as FIELD_MANAGER;
pub use simulated_node::report_unchanging_devices;

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    cli::run(|| {
        let matches = command_line::command().get_matches();
        let line = CommandLine::from_arg_matches(&matches).map_err(Failure::usage)?;
        if let Some(shell) = line.completions.shell {
            cli::write_completions(shell, command_line::command())?;
            return Ok(ExitCode::SUCCESS);
        }
        run(&line).map(|()| ExitCode::SUCCESS)
    })
}

/// The definition that parses the arguments, for the reference page.
#[must_use]
pub fn command() -> clap::Command {
    command_line::command()
}

fn run(line: &CommandLine) -> Result<(), Failure> {
    if line.print {
        logging::start(&line.logs, LogLevel::Warn, &LogDestination::Stderr)?;
        return print(line);
    }
    let _flush = logging::start(&line.logs, LogLevel::Info, &LogDestination::QueuedStderr)?;
    let event_loop = event_loop::build()?;
    let _entered = event_loop.enter();
    let reporter = cluster_access::reporter(line)?;
    follow(line, &event_loop, async |devices| {
        let config_status = devices.config_status();
        let plugin = PluginStatus::new(devices.device_plugin_dir());
        let reporter = reporter.with_plugin(plugin);
        reporter.run(async || devices.next().await, config_status).await.into()
    })
}

/// `--print`.
fn print(line: &CommandLine) -> Result<(), Failure> {
    let snapshot = cli::read_host(line.input.inventory.as_deref())?;
    let config = config::load(&line.models.driver_models, line.input.config.clone())?;
    let offer = Catalog::new(config.policy).offer(&snapshot);
    let set = DeviceSet::next(None, offer, Moment::default());
    let labels = devices::node_report::labels(&set, line.family());
    let lines = labels.iter().map(|(name, value)| format!("{name}={value}\n"));
    cli::print(&lines.collect::<String>())
}

/// Follows the devices with `work` until it fails, or until a shutdown signal.
fn follow(
    line: &CommandLine,
    event_loop: &EventLoop,
    work: impl AsyncFnOnce(&mut NodeDevices) -> Failure,
) -> Result<(), Failure> {
    let shutdown = signals::shutdown_signal().map_err(|error| {
        Failure::runtime(anyhow::Error::new(error).context("cannot listen for shutdown signals"))
    })?;
    let mut devices = devices(line, event_loop)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    event_loop.block_on(async {
        tokio::select! {
            failure = work(&mut devices) => Err(failure),
            signal = shutdown => {
                tracing::info!(signal, "shutting down");
                Ok(())
            }
        }
    })
}

/// Starts to follow the host and the configuration.
fn devices(line: &CommandLine, _entered: &EventLoop) -> Result<NodeDevices, Failure> {
    let signal = ReloadSignal::listen().map_err(|error| {
        Failure::runtime(anyhow::Error::new(error).context("cannot listen for SIGHUP"))
    })?;
    let host = HostAccess::of(line.input.inventory.as_deref())?;
    let models = &line.models.driver_models;
    let directory = line.device_plugin_dir.clone();
    let source = ConfigSource::new(models, line.input.config.clone(), directory);
    let Reading { result, files } = source.read();
    let active = result?;
    config::log(&active);
    let config = active.clone();
    let reload = ConfigReload::start(ReloadParts { source, files, signal }, active)?;
    NodeDevices::start(config, host, reload).map_err(|error| {
        let what = "cannot start the thread that reads adapters";
        Failure::runtime(anyhow::Error::new(error).context(what))
    })
}
