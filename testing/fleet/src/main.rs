//! Runs `directx-feature-discovery` for many nodes in one process, as many nodes would run it.
//!
//! A folder has one account for each node, and each program has its own account and connections.
//! `testing/kubernetes/cluster` starts this program, and counts the requests at the API server.
//!
//! It runs until it is killed. The line `started` is written when every program runs. SIGHUP ends
//! and starts the programs one after another; then the line `restarted` is written.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use cluster::{Access, Client};
use config::{Flags, ProcessEnvironment};
use devices::{Catalog, DeviceSet, Moment};
use feature_discovery::Settings;
use plugin_status::answering_daemons::{NodeListing, NodeState};
use process::logging::{self, LogArguments, LogDestination};
use report::NodeReport;
#[cfg(unix)]
use tokio::signal::unix;
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

/// Runs directx-feature-discovery for many nodes
#[derive(Parser)]
struct CommandLine {
    /// Folder with a folder for each node, which has the node's name and contains what a container
    /// of its pod sees as `/`
    #[arg(long, value_name = "DIR")]
    accounts: PathBuf,
    /// Port of the API server on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// Inventory that every node has
    #[arg(long, value_name = "FILE")]
    inventory: PathBuf,
    /// Time between the starts of two programs, also when SIGHUP restarts them
    #[arg(long, value_name = "MILLISECONDS")]
    pause: u64,
    #[command(flatten)]
    logs: LogArguments,
}

fn main() -> ExitCode {
    match run(&CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(line: &CommandLine) -> Result<()> {
    let logged = logging::start(&line.logs, &LogDestination::Stderr);
    let _flush = logged?;
    let report = report(&line.inventory)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(async {
        #[cfg(unix)]
        let mut restart = unix::signal(unix::SignalKind::hangup())?;
        let pause = Duration::from_millis(line.pause);
        let mut fleet = Fleet::start(line, &report, pause).await?;
        println!("started");
        loop {
            #[cfg(unix)]
            restart.recv().await;
            #[cfg(not(unix))]
            std::future::pending::<()>().await;
            fleet.restart(pause).await?;
            println!("restarted");
        }
    }))
}

/// What the plugin of every node reports.
fn report(inventory: &Path) -> Result<NodeReport> {
    let snapshot = config::inventory::read(inventory)
        .with_context(|| format!("cannot read the inventory `{}`", inventory.display()))?;
    let policy = config::load(&Flags::default(), &ProcessEnvironment)?.policy;
    let offer = Catalog::new(policy).offer(&snapshot);
    Ok(NodeReport::of(&DeviceSet::next(None, offer, Moment::default())))
}

/// The programs of all nodes.
struct Fleet {
    nodes: Vec<Node>,
}

/// One node and its program.
struct Node {
    name: String,
    /// What a container of the node's pod sees as `/`.
    root: PathBuf,
    port: u16,
    report: NodeReport,
    program: JoinHandle<()>,
}

impl Fleet {
    /// Starts the programs of all nodes one after another, with a pause after each.
    async fn start(line: &CommandLine, report: &NodeReport, pause: Duration) -> Result<Fleet> {
        let folder = &line.accounts;
        let unreadable = || format!("cannot read the folder `{}`", folder.display());
        let mut nodes = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(unreadable)? {
            let entry = entry.with_context(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let root = entry.path();
            let program = start(client(&name, &root, line.port)?, report);
            tokio::time::sleep(pause).await;
            nodes.push(Node { name, root, port: line.port, report: report.clone(), program });
        }
        Ok(Fleet { nodes })
    }

    /// Ends and starts the programs one after another, with a pause after each.
    async fn restart(&mut self, pause: Duration) -> Result<()> {
        for node in &mut self.nodes {
            node.program.abort();
            // The task was canceled, so the result says nothing.
            let _ = (&mut node.program).await;
            node.program = start(client(&node.name, &node.root, node.port)?, &node.report);
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }
}

fn start(client: Client, report: &NodeReport) -> JoinHandle<()> {
    let listing = NodeListing::registered(report.clone(), 1);
    let (_unchanging, states) = watch::channel(NodeState::Known(Box::new(listing)));
    spawn_local(async {
        feature_discovery::report(client, Settings::default(), states).await;
    })
}

/// A client with the account of one node, as the program makes it.
fn client(node: &str, root: &Path, port: u16) -> Result<Client> {
    let access = Access::of_pod(|name| match name {
        "KUBERNETES_SERVICE_HOST" => Some("127.0.0.1".to_owned()),
        "KUBERNETES_SERVICE_PORT" => Some(port.to_string()),
        _ => Some(root.display().to_string()),
    });
    Ok(Client::new(access?, feature_discovery::FIELD_MANAGER, node)?)
}
