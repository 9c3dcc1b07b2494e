//! `query-hcs-capabilities`: prints the Windows version and the schema versions that the
//! Host Compute Service supports.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _, Parser};
use command_line::{Failure, OutputFormat};
use host::HostFacts;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  Query this host:
    query-hcs-capabilities
  Query an inventory, for a script:
    query-hcs-capabilities --inventory host.yaml --output json

Schema 2.2 and newer can assign a single device to a container by its location path.";

/// Print the Windows version and the supported schema versions of the Host Compute Service
#[derive(Parser, Debug)]
#[command(name = "query-hcs-capabilities", version = devices::VERSION, after_help = EXAMPLES)]
struct Arguments {
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    output: OutputFormat,
    /// Inventory file to use instead of this host
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

/// Runs the program with this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    command_line::run(|| run(&command_line::parse(command())?))
}

/// The command line's definition.
pub(crate) fn command() -> Command {
    command_line::with_completions(Arguments::command())
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let facts = match &arguments.inventory {
        Some(file) => command_line::read_inventory(file)?.host,
        None => live()?,
    };
    if facts.hcs_schemas.is_empty() {
        let error = anyhow::anyhow!("the host has no HCS schema version");
        return Err(Failure::runtime(error));
    }
    match arguments.output {
        OutputFormat::Text => command_line::print(&text(&facts))?,
        OutputFormat::Json => command_line::print_json(&document(&facts))?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(windows)]
fn live() -> Result<HostFacts, Failure> {
    let hcs_schemas = win32::hcs::schemas().map_err(Failure::runtime)?;
    Ok(HostFacts { hcs_schemas, ..win32::constant_host_facts() })
}

#[cfg(not(windows))]
fn live() -> Result<HostFacts, Failure> {
    let error = anyhow::anyhow!("the Host Compute Service is available only on Windows");
    Err(Failure::runtime(error).hint(crate::host_argument::USE_INVENTORY))
}

fn text(facts: &HostFacts) -> String {
    let unknown = "unknown".to_owned();
    let mut text = format!(
        "Operating system version:\n{}, version {} (OS build {})\n\nSupported HCS schema versions:\n",
        facts.product.as_ref().unwrap_or(&unknown),
        facts.display_version.as_ref().unwrap_or(&unknown),
        facts.build.map_or(unknown.clone(), |build| build.to_string()),
    );
    for schema in &facts.hcs_schemas {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- {schema}");
    }
    text
}

fn document(facts: &HostFacts) -> Value {
    json!({
        "operatingSystem": {
            "product": facts.product,
            "displayVersion": facts.display_version,
            "build": facts.build.map(|build| build.to_string()),
        },
        "hcsSchemas": facts.hcs_schemas.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
