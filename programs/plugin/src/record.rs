//! `record`: this host's inventory, or a recording written anew.

use crate::flags::{Logs, Record};
use crate::{logging, output, source};
use cli::Failure;

/// Runs the command.
pub(crate) fn run(logs: &Logs, arguments: &Record) -> Result<(), Failure> {
    logging::start(logs);
    let mut source = source::open(arguments.inventory.as_deref())?;
    let mut snapshot = source.snapshot().map_err(output::source_failure)?;
    source::list_store_files(&mut snapshot);
    for warning in &snapshot.warnings {
        tracing::warn!(luid = %warning.luid, "{}", warning.text);
    }
    let text = inventory::to_yaml(&snapshot).map_err(Failure::runtime)?;
    match &arguments.output {
        None => cli::print(&text),
        Some(path) => std::fs::write(path, text).map_err(|error| {
            let what = format!("the inventory cannot be written to {}", path.display());
            Failure::runtime(anyhow::Error::new(error).context(what))
        }),
    }
}
