//! `status`: whether a kubelet has what the daemon on this host offers.
//!
//! It asks the daemon over its own sockets, so that an exec probe learns of a daemon
//! that hangs or was killed as surely as of one that waits for its kubelet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cli::Failure;
use devices::DriverModel;
use kubelet::UnixSockets;
use kubelet::status::{Phase, ResourceStatus, is_socket_of};
use serde::Serialize;

use crate::flags::{Logs, Output, StatusArguments};
use crate::{logging, offered, output, serve};

/// Runs the command.
pub(crate) fn run(logs: &Logs, arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    logging::start(logs);
    let directory = arguments.device_plugin_dir.clone().unwrap_or_else(serve::default_directory);
    let models = match arguments.models.driver_models.as_slice() {
        [] => vec![DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy],
        some => some.to_vec(),
    };
    let sockets = sockets(&directory, &models)?;
    let resources = serve::runtime()?.block_on(ask(&sockets));
    let report = Report::of(&resources);
    match arguments.output {
        Output::Text => cli::print(&text(&report, &directory))?,
        Output::Json => output::print_json(&report)?,
    }
    Ok(if report.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The sockets of daemons that offer one of `models`.
fn sockets(directory: &Path, models: &[DriverModel]) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        let what = format!("the device plugin directory `{}` cannot be read", directory.display());
        Failure::at_work(anyhow::Error::new(error).context(what))
            .hint("name the daemon's directory with --device-plugin-dir")
    };
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if models.iter().any(|model| is_socket_of(offered::model_prefix(*model), &name)) {
            sockets.push(entry.path());
        }
    }
    sockets.sort();
    Ok(sockets)
}

/// What each resource's daemon says, by name; the best of several daemons, since the
/// old one of a rolling update is still there when the new one is ready.
async fn ask(sockets: &[PathBuf]) -> BTreeMap<String, ResourceStatus> {
    let mut resources: BTreeMap<String, ResourceStatus> = BTreeMap::new();
    for socket in sockets {
        match kubelet::status::query(UnixSockets, socket).await {
            Ok(report) => {
                for resource in report.resources {
                    let known = resources.get(&resource.name);
                    if known.is_none_or(|known| known.phase() < resource.phase()) {
                        resources.insert(resource.name.clone(), resource);
                    }
                }
            }
            Err(error) => {
                tracing::info!(socket = %socket.display(), %error, "socket passed over");
            }
        }
    }
    resources
}

/// The JSON document.
#[derive(Serialize)]
struct Report {
    ready: bool,
    resources: Vec<View>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    name: String,
    ready: bool,
    state: &'static str,
    waiting_ms: u64,
    last_error: String,
}

impl Report {
    fn of(resources: &BTreeMap<String, ResourceStatus>) -> Report {
        let view = |resource: &ResourceStatus| View {
            name: resource.name.clone(),
            ready: resource.is_ready(),
            state: match resource.phase() {
                Phase::Starting => "starting",
                Phase::WaitingForKubelet => "waiting for the kubelet",
                Phase::Registered => "registered; the kubelet has not asked for the list yet",
                Phase::Ready => "the kubelet has the list",
            },
            waiting_ms: resource.waiting_ms,
            last_error: resource.last_error.clone(),
        };
        Report {
            ready: !resources.is_empty() && resources.values().all(ResourceStatus::is_ready),
            resources: resources.values().map(view).collect(),
        }
    }
}

fn text(report: &Report, directory: &Path) -> String {
    let mut text = String::new();
    if report.resources.is_empty() {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "no daemon answers in {}", directory.display());
    }
    for resource in &report.resources {
        let _ = write!(text, "{}: {}", resource.name, resource.state);
        if resource.waiting_ms > 0 {
            let _ = write!(text, " for {} s", resource.waiting_ms / 1000);
        }
        if !resource.last_error.is_empty() {
            let _ = write!(text, ": {}", resource.last_error);
        }
        text.push('\n');
    }
    text
}
