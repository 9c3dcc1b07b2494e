//! `record`: writes the inventory of this host, with the software of its node, or rewrites an
//! inventory.

use std::path::PathBuf;

use clap::Args;
use command_line::Failure;

use crate::devices::warn_of_adapters;

#[derive(Args, Debug)]
pub(crate) struct RecordArguments {
    /// File to write instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Inventory (a recorded host) to rewrite instead of this host's
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

pub(crate) fn run(arguments: &RecordArguments) -> Result<(), Failure> {
    let mut snapshot = command_line::read_host(arguments.inventory.as_deref())?;
    if arguments.inventory.is_none() {
        command_line::add_nvidia(&mut snapshot);
    }
    #[cfg(windows)]
    if arguments.inventory.is_none() {
        snapshot.node = doctor::node_software(&snapshot.host, &snapshot.adapters);
    }
    command_line::list_store_files(&mut snapshot);
    warn_of_adapters(&snapshot);
    let text = config::inventory::to_yaml(&snapshot).map_err(Failure::runtime)?;
    match &arguments.output {
        None => command_line::print(&text),
        Some(path) => std::fs::write(path, text).map_err(|error| {
            let what = format!("cannot write `{}`", path.display());
            Failure::runtime(anyhow::Error::new(error).context(what))
                .hint("name a file that you may write, on a disk with enough space")
        }),
    }
}
