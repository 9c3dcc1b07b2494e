//! `gen-device-mounts`: the flags that give a container DirectX devices outside
//! Kubernetes, as the device plugin would give them inside.

mod choice;
mod frontend;
mod grants;
mod run;
mod shell;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use cli::{Completions, Failure};
use devices::{Criteria, Device, DeviceScope, Fate, Filter, HostSnapshot, RuntimeMounts, discover};

use crate::host::Host;
use crate::notes;
use choice::{Choice, ChoiceError};
use frontend::{Environment, Frontend, fragment};
use grants::{GrantError, Grants, grants};

const EXAMPLES: &str = "\
Examples:
  Run a command in a container that has every device of this host:
    gen-device-mounts --all --run example.com/my-image:latest test nvidia-smi
  Print the flags for one device, for a script:
    gen-device-mounts --index 0 --format json
  See on any machine what a recorded host would give, and why:
    gen-device-mounts --all --inventory host.yaml --verbose

Put `--` before arguments that start with a dash and are meant for the front end or
for the container's command. The first `--` is dropped:
    gen-device-mounts --all --run -- --cni IMAGE NAME COMMAND
    gen-device-mounts --all --run IMAGE NAME -- COMMAND --option";

/// Print the flags that give a container DirectX devices and their runtime files
#[derive(Parser, Debug)]
#[command(name = "gen-device-mounts", version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// Form of the flags: text that PowerShell and cmd both take back, or a JSON array
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Program that runs the container
    #[arg(long, value_enum, default_value_t = Frontend::Ctr)]
    frontend: Frontend,
    /// Run the container with the flags, in this terminal, and exit with its exit code
    #[arg(long)]
    run: bool,
    /// When to mount runtime files: auto is below Windows build 26100
    #[arg(long, value_enum, default_value_t = Mounting::Auto, value_name = "WHEN")]
    runtime_mounts: Mounting,
    /// Tell the container which devices are its own, in the plugin's environment variables
    #[arg(long)]
    hints: bool,
    #[command(flatten)]
    host: Host,
    /// Say on standard error what is left out and why
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    completions: Completions,
    /// Image, container name, command and its arguments, for `--run`; options after `--`
    #[arg(value_name = "ARGUMENT")]
    free: Vec<String>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Text,
    Json,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Mounting {
    Auto,
    Always,
    Never,
}

/// Runs the program with this process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    cli::run(|| run(&arguments()))
}

/// The command line's definition.
pub(crate) fn command() -> Command {
    cli::with_boolean_values(Arguments::command())
}

fn arguments() -> Arguments {
    let matches = command().get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(shell) = arguments.completions.shell {
        cli::write_completions(shell, command())?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.run && arguments.frontend == Frontend::Crictl {
        let error = anyhow!("`crictl` runs containers from files, so `--run` cannot be used");
        return Err(Failure::usage(error)
            .hint("put the printed fragment into the file for `crictl create`"));
    }
    let grants = decide(arguments)?;
    grants.warnings.iter().for_each(notes::warn);
    if let Some(shortcoming) = arguments.frontend.shortcoming(&grants) {
        notes::warn(shortcoming);
    }
    let environment = if arguments.hints { Environment::Told } else { Environment::NotTold };
    if arguments.run {
        let flags = arguments.frontend.flags(&grants, environment);
        return run::run(arguments.frontend, &flags, &arguments.free);
    }
    if !arguments.free.is_empty() {
        notes::warn("without `--run` the image, name and command are not used");
    }
    cli::print(&printed(arguments, &grants, environment)?)?;
    Ok(ExitCode::SUCCESS)
}

/// What the program prints where it does not run anything.
fn printed(
    arguments: &Arguments,
    grants: &Grants,
    environment: Environment,
) -> Result<String, Failure> {
    let flags = arguments.frontend.flags(grants, environment);
    match (arguments.frontend, arguments.format) {
        (Frontend::Crictl, _) => Ok(fragment(grants, environment)),
        (_, Format::Json) => Ok(format!("{}\n", serde_json::json!(flags))),
        (_, Format::Text) => text(&flags),
    }
}

fn text(flags: &[String]) -> Result<String, Failure> {
    let line = shell::line(flags.iter().map(String::as_str));
    let line = line.map_err(|error| {
        Failure::at_work(error).hint("`--format json` and `--run` need no quoting")
    })?;
    Ok(line + "\n")
}

fn decide(arguments: &Arguments) -> Result<Grants, Failure> {
    let choice = &arguments.choice;
    if *choice == Choice::default() {
        let hint = "choose with `--all`, `--index N`, `--luid N` or `--path LOCATION`; \
                    test-device-discovery lists what there is";
        return Err(Failure::usage(ChoiceError::Nothing).hint(hint));
    }
    let snapshot = arguments.host.snapshot()?;
    let everything = Criteria {
        filter: Filter::All,
        integrated: DeviceScope::Include,
        detachable: DeviceScope::Include,
    };
    let selection = discover(&snapshot, everything);
    if arguments.verbose {
        for note in notes::of_discovery(&snapshot, &selection) {
            notes::line(&note);
        }
    }
    let chosen = choice.of(&selection.devices).map_err(|e| not_chosen(e, &selection.devices))?;
    let mounts = RuntimeMounts::from(arguments.runtime_mounts);
    let grants =
        grants(&snapshot, &selection.devices, choice, &chosen, mounts).map_err(not_given)?;
    if arguments.verbose {
        explain(&snapshot, &grants);
    }
    Ok(grants)
}

fn not_chosen(error: ChoiceError, devices: &[Device]) -> Failure {
    match error {
        ChoiceError::Nothing => Failure::usage(error),
        ChoiceError::NoDevices => Failure::at_work(error),
        ChoiceError::NoSuchDevice(_) => {
            Failure::at_work(error).hint(format!("this host has\n{}", choice::listing(devices)))
        }
    }
}

fn not_given(error: GrantError) -> Failure {
    let hint = match &error {
        GrantError::None(why) => Some(why.join("\n  ")),
        _ => None,
    };
    let failure = Failure::at_work(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Says what became of every device and file that is not mounted.
fn explain(snapshot: &HostSnapshot, grants: &Grants) {
    if let Some(build) = snapshot.host.build {
        notes::line(&format!("the host is Windows build {build}"));
    }
    for line in &grants.left_out {
        notes::line(line);
    }
    for (luid, why) in &grants.mounts.without {
        notes::line(&format!("adapter {luid}: no runtime files are mounted: {why}"));
    }
    for file in &grants.mounts.files {
        let path = &file.file.host_path;
        match &file.fate {
            Fate::Missing => notes::line(&format!("{path} does not exist")),
            Fate::Excluded => notes::line(&format!("{path} is not wanted")),
            // Told as a warning already.
            Fate::Mounted | Fate::Shadowed { .. } => {}
        }
    }
}

impl From<Mounting> for RuntimeMounts {
    fn from(mounting: Mounting) -> RuntimeMounts {
        match mounting {
            Mounting::Auto => RuntimeMounts::Auto,
            Mounting::Always => RuntimeMounts::Always,
            Mounting::Never => RuntimeMounts::Never,
        }
    }
}
