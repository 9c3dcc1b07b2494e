//! `record`: writes the inventory of this host, with the software of its node, or rewrites an
//! inventory.

use std::path::PathBuf;

use clap::Args;
use node::cli::Failure;

use node::daemon::change_log;

/// The options of `record`.
#[derive(Args, Debug)]
pub(crate) struct RecordArguments {
    /// File to write instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Inventory (a recorded host) to rewrite instead of this host's
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &RecordArguments) -> Result<(), Failure> {
    let mut snapshot = node::cli::read_host(arguments.inventory.as_deref())?;
    #[cfg(windows)]
    if arguments.inventory.is_none() {
        snapshot.node = crate::doctor::node_software(&snapshot.host, &snapshot.adapters);
    }
    node::cli::list_store_files(&mut snapshot);
    change_log::log_adapter_warnings(&[], &snapshot.warnings);
    let text = config::inventory::to_yaml(&snapshot).map_err(Failure::runtime)?;
    match &arguments.output {
        None => node::cli::print(&text),
        Some(path) => std::fs::write(path, text).map_err(|error| {
            let what = format!("cannot write `{}`", path.display());
            Failure::runtime(anyhow::Error::new(error).context(what))
                .hint("name a file that you may write, on a disk with enough space")
        }),
    }
}
