//! Results on standard output.

use devices::SourceError;
use serde::Serialize;

use cli::Failure;

/// Prints a JSON document.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::runtime)?;
    cli::print(&(text + "\n"))
}

/// A source that cannot be read, as a failure of the command that needs it.
pub(crate) fn source_failure(error: SourceError) -> Failure {
    let error = anyhow::Error::from_boxed(error);
    Failure::runtime(error.context("this host's adapters cannot be read"))
}
