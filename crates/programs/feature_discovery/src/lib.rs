//! `directx-feature-discovery`: labels a node with the properties of its DirectX devices.
//!
//! It asks the device plugin on the node, and reads neither the host nor the configuration.

mod arguments;
mod cleanup;
mod cordon_writer;
mod desired;
mod event_queue;
mod known_node;
mod license_wait;
mod monitoring;
mod plugin_history;
mod policy_check;
mod reconcile;
mod reporter;
mod taint_wait;

use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use cluster::{Access, Client};
use command_line::{Failure, OutputFormat};
use device_plugin::default_device_plugin_dir;
use plugin_status::answering_daemons::NodeState;
use plugin_status::plugin_client::PluginClient;
use process::logging::{self, LogDestination};
use process::{event_loop, signals};
use tokio::sync::watch;

use crate::arguments::{Command, CommandLine};
use crate::reporter::Reporter;

pub use arguments::command;
pub use reconcile::MANAGER as FIELD_MANAGER;
pub use reporter::Settings;

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    command_line::run(|| run(&command_line::parse(command())?).map(|()| ExitCode::SUCCESS))
}

fn run(line: &CommandLine) -> Result<(), Failure> {
    line.refuse_options_of_the_plugin()?;
    if let Some(Command::Cleanup(arguments)) = &line.command {
        logging::start(&line.logs, &LogDestination::Stderr)?;
        return cleanup::run(arguments);
    }
    let directory = line.directory.device_plugin_dir.clone();
    let directory = directory.unwrap_or_else(default_device_plugin_dir);
    if line.print {
        logging::start(&line.logs, &LogDestination::Stderr)?;
        return print(line, &directory);
    }
    let _flush = logging::start(&line.logs, &LogDestination::QueuedStderr)?;
    let event_loop = event_loop::build()?;
    let _entered = event_loop.enter();
    let shutdown = signals::shutdown_signal(None)?;
    let client = client(line.kubeconfig.as_deref(), &node_name(line)?)?;
    let reporter = Reporter::new(
        client,
        Settings {
            gfd_labels: line.gfd_labels,
            startup_taint: line.startup_taint.clone(),
            plugin: Some(directory.clone()),
            // The policy is for the account of the pod.
            check_policy: !line.no_policy_check && line.kubeconfig.is_none(),
        },
    );
    tracing::info!(version = devices::VERSION, directory = %directory.display(), "starting");
    if let Some(address) = line.listen {
        monitoring::start(address, reporter.requests())?;
    }
    event_loop.block_on(async {
        let (states, follow) = watch::channel(NodeState::NotServed);
        tokio::select! {
            never = PluginClient::new(directory).follow(states) => match never {},
            never = reporter.run(follow) => match never {},
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
        Failure::usage(anyhow!("the name of the node is unknown"))
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

/// What the program does with what plugins report, without an end: keeps the client's node object
/// up to date.
pub async fn report(
    client: Client,
    settings: Settings,
    states: watch::Receiver<NodeState>,
) -> Infallible {
    Box::pin(Reporter::new(client, settings).run(states)).await
}

/// `--print`.
fn print(line: &CommandLine, directory: &Path) -> Result<(), Failure> {
    let runtime = event_loop::build()?;
    let _entered = runtime.enter();
    let mut plugin = PluginClient::new(directory.to_owned());
    let state = runtime.block_on(async { plugin.ask().await.node_state() });
    let listing = match state {
        NodeState::Known(listing) => {
            for daemon in &listing.silent {
                tracing::warn!(reason = %daemon.message(), "the labels lack the devices of a plugin");
            }
            listing
        }
        other => return Err(not_reported(&other, directory)),
    };
    let labels = report::labels(&listing.node, line.gfd_labels);
    let lines = labels.iter().map(|(name, value)| format!("{name}={value}\n"));
    match line.output {
        OutputFormat::Text => command_line::print(&lines.collect::<String>()),
        OutputFormat::Json => command_line::print_json(&labels),
    }
}

/// Why there are no labels.
fn not_reported(state: &NodeState, directory: &Path) -> Failure {
    let directory = directory.display();
    let error = match state {
        NodeState::NotServed | NodeState::Known(_) => {
            anyhow!("no device plugin serves devices in `{directory}`")
        }
        NodeState::NotReported(daemon) => anyhow!("{}", daemon.message()),
    };
    Failure::runtime(error).hint(
        "`directx-device-plugin status` reports the plugin; `directx-device-plugin simulate \
         --gfd-labels --inventory FILE` prints the labels of a recorded host",
    )
}
