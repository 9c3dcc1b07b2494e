//! `serve`: the daemon.
//!
//! It reads the host, registers every resource of the configuration and serves them
//! until it is asked to end. Two futures run side by side, the fleet that follows the
//! host and the supervisor that follows the kubelet; the end of either ends both.

use std::path::PathBuf;

use devices::Catalog;
use kubelet::{RunConfig, UnixSockets};
use tokio::sync::watch;

use crate::flags::{Logs, ServeRequest};
use crate::fleet::{Fleet, StartError};
use crate::{config, logging, offered, signals, source};
use cli::Failure;

/// Runs the daemon until it is asked to end.
pub(crate) fn run(logs: &Logs, request: &ServeRequest) -> Result<(), Failure> {
    let source = source::open(request.input.inventory.as_deref())?;
    let directory = request.device_plugin_dir.clone();
    let config = config::load(&request.models, request.input.config.as_deref(), directory)?;
    logging::start(logs);
    config::tell(&config);
    let runtime = runtime()?;
    let _entered = runtime.enter();
    let catalog = Catalog::new(config.policy);
    let uuids = source::uuid_reader(request.input.inventory.as_deref());
    let fleet = Fleet::start(catalog.clone(), source, uuids).map_err(start_failure)?;
    let resources = offered::resources(&catalog, &fleet.published());
    let directory = config.device_plugin_dir.unwrap_or_else(default_directory);
    runtime.block_on(serve(fleet, resources, directory))
}

async fn serve(
    fleet: Fleet,
    resources: Vec<std::sync::Arc<dyn kubelet::Resource>>,
    directory: PathBuf,
) -> Result<(), Failure> {
    let end = signals::end_requested().map_err(|error| {
        Failure::runtime(anyhow::Error::new(error).context("signals cannot be received"))
    })?;
    let shutdown = async {
        let signal = end.await;
        tracing::info!(signal, "asked to end");
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        directory = %directory.display(),
        "starting"
    );
    let (readiness, _) = watch::channel(kubelet::Readiness::default());
    let config = RunConfig { directory };
    tokio::select! {
        ended = kubelet::run(config, resources, UnixSockets, shutdown, readiness) => {
            ended.map_err(Failure::runtime)
        }
        ended = fleet.run() => Err(Failure::runtime(ended)),
    }
}

/// One thread: nothing the daemon does takes long enough to need another.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| {
        Failure::runtime(anyhow::Error::new(error).context("the event loop cannot be started"))
    })
}

/// A fleet that cannot start, as the failure it is.
pub(crate) fn start_failure(error: StartError) -> Failure {
    match error {
        StartError::List { .. } => Failure::usage(error).hint(
            "a kubelet takes 4 MiB for one resource: lower `multitenancy`, or spread the devices \
             over several resources with `resources:`",
        ),
        other => Failure::runtime(other),
    }
}

/// Where kubelets keep their device plugin sockets.
pub(crate) fn default_directory() -> PathBuf {
    if cfg!(windows) {
        let drive = std::env::var_os("SystemDrive").unwrap_or_else(|| "C:".into());
        let mut path = drive;
        path.push(r"\var\lib\kubelet\device-plugins");
        PathBuf::from(path)
    } else {
        PathBuf::from("/var/lib/kubelet/device-plugins")
    }
}
