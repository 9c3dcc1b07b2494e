//! `gen-device-mounts`: generates the flags that assign DirectX devices to a container
//! outside Kubernetes, with the same decisions as the device plugin.

mod assignment;
mod quoting;
mod run;
mod selector;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Command, CommandFactory as _, Parser};
use command_line::frontends::{Container, Frontend, cri_config};
use command_line::{Failure, OutputFormat, with_boolean_values, with_completions};
use devices::{Criteria, MountOutcome, RuntimeMounts, discover};
use host::HostSnapshot;

use crate::host_argument::Host;
use crate::mounts::assignment::{Assignment, assign};
use crate::mounts::selector::DeviceSelector;
use crate::stderr;

const EXAMPLES: &str = "\
Examples:
  Run a command in a container with every device of this host:
    gen-device-mounts --all --run example.com/my-image:latest test nvidia-smi
  Print the flags for one device, for a script:
    gen-device-mounts --index 0 --output json
  Print the flags for the host of an inventory, with the reasons, on any machine:
    gen-device-mounts --all --inventory host.yaml --verbose

Options after `--` belong to the front end or to the container's command. The first
`--` is dropped:
    gen-device-mounts --all --run -- --cni IMAGE NAME COMMAND
    gen-device-mounts --all --run IMAGE NAME -- COMMAND --option";

/// Print the flags that assign DirectX devices and their runtime files to a container
#[derive(Parser, Debug)]
#[command(name = "gen-device-mounts", version = devices::VERSION, after_help = EXAMPLES)]
// Otherwise an error shows only the options of the wrong command line.
#[command(override_usage = "gen-device-mounts [OPTIONS] [ARGUMENT]...")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selector: DeviceSelector,
    /// Output format: text with quotes for PowerShell and cmd, or a JSON array
    #[arg(long, alias = "format", value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    output: OutputFormat,
    /// Program that runs the container
    #[arg(long, value_enum, default_value_t = Frontend::Ctr)]
    frontend: Frontend,
    /// Run the container with the flags in this terminal, and exit with its exit code
    #[arg(long)]
    run: bool,
    /// Runtime files to mount; auto mounts all below Windows build 26100, and extra those that the
    /// driver does not name, such as nvidia-smi.exe
    #[arg(long, value_parser = runtime_mounts(), default_value_t, value_name = "WHICH")]
    runtime_mounts: RuntimeMounts,
    /// Set the device plugin's environment variables that name the container's devices
    #[arg(long)]
    hints: bool,
    #[command(flatten)]
    host: Host,
    /// Print selected devices, and skipped adapters and files with reasons, to standard error
    #[arg(long, short)]
    verbose: bool,
    /// Image, container name, command and its arguments, for `--run`; options after `--`
    #[arg(value_name = "ARGUMENT")]
    container: Vec<String>,
}

fn runtime_mounts() -> impl TypedValueParser<Value = RuntimeMounts> {
    PossibleValuesParser::new(["auto", "always", "never", "extra"])
        .map(|text| text.parse().unwrap_or_default())
}

/// Runs the program with this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    command_line::run(|| run(&command_line::parse(command())?))
}

/// The command line's definition.
pub(crate) fn command() -> Command {
    with_completions(with_boolean_values(Arguments::command()))
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.run && arguments.frontend == Frontend::Crictl {
        let error = anyhow!(
            "`--run` cannot be combined with `--frontend crictl`, which runs containers from files"
        );
        return Err(Failure::usage(error)
            .hint("omit `--run` and add the printed fragment to the file for `crictl create`"));
    }
    let assignment = plan(arguments)?;
    assignment.warnings.iter().for_each(stderr::warn);
    let container = assignment.container(arguments.hints);
    if let Some(limitation) = arguments.frontend.limitation(container) {
        stderr::warn(limitation);
    }
    if arguments.run {
        let flags = arguments.frontend.flags(container);
        return run::run(arguments.frontend, &flags, &arguments.container);
    }
    if !arguments.container.is_empty() {
        stderr::warn("image, name and command are ignored without `--run`");
    }
    command_line::print(&output(arguments, container)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The program's output without `--run`.
fn output(arguments: &Arguments, container: Container<'_>) -> Result<String, Failure> {
    let flags = arguments.frontend.flags(container);
    match (arguments.frontend, arguments.output) {
        (Frontend::Crictl, _) => Ok(cri_config(container)),
        (_, OutputFormat::Json) => Ok(format!("{}\n", serde_json::json!(flags))),
        (_, OutputFormat::Text) => Ok(quoting::line(flags.iter().map(String::as_str))? + "\n"),
    }
}

fn plan(arguments: &Arguments) -> Result<Assignment, Failure> {
    let selector = &arguments.selector;
    if *selector == DeviceSelector::default() {
        let hint = "select devices with `--all`, `--index N`, `--luid N` or `--path LOCATION`; \
                    `test-device-discovery` lists the devices";
        return Err(Failure::usage(anyhow!("no device selected")).hint(hint));
    }
    if arguments.verbose {
        stderr::line(&format!("selection criteria: {selector}"));
    }
    let snapshot = arguments.host.snapshot()?;
    // The indexes are those that `test-device-discovery` prints.
    let selection = discover(&snapshot, Criteria { include_basic: true, ..Criteria::ALL });
    if arguments.verbose {
        selection.left_out(&snapshot).iter().for_each(|line| stderr::line(line));
    }
    let selected = selector.select(&selection.devices)?;
    let assignment = assign(&snapshot, &selection.devices, &selected, arguments.runtime_mounts)?;
    if arguments.verbose {
        explain(&snapshot, &assignment);
    }
    Ok(assignment)
}

/// Prints which devices are assigned, and why others and files are not.
fn explain(snapshot: &HostSnapshot, assignment: &Assignment) {
    if let Some(build) = snapshot.host.build {
        stderr::line(&format!("Windows build {build}"));
    }
    for line in assignment.selected.iter().chain(&assignment.not_advertised) {
        stderr::line(line);
    }
    for (luid, reason) in &assignment.mounts.devices_without_mounts {
        stderr::line(&format!("not mounting runtime files of adapter {luid}: {reason}"));
    }
    for file in &assignment.mounts.files {
        let why = match file.outcome {
            MountOutcome::Missing => "file does not exist",
            MountOutcome::NoWow64 => "the host does not run 32-bit programs",
            MountOutcome::NotApplied => {
                "left out with the driver's files; `--runtime-mounts extra` mounts it"
            }
            // Conflicts are printed as warnings. This program has no configuration.
            MountOutcome::Mounted
            | MountOutcome::NotOneMatch(_)
            | MountOutcome::DestinationTaken { .. }
            | MountOutcome::Excluded
            | MountOutcome::Wow64Omitted => continue,
        };
        stderr::line(&format!("not mounting {}: {why}", file.file.host_path));
    }
}
