//! `cargo xtask`: tests, measures and packages this workspace.
//!
//! The product does not need anything in this crate.

mod bench;
mod book;
mod documentation;
mod image;
mod kubernetes_suites;
mod manifests;
mod nightly;
mod prerequisites;
mod process;
mod release;
mod steps;
mod test_run;
mod update;
mod visibility_filter;
mod windows_suites;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Command {
    /// Install what all tests, the quick ones or the named steps need on this machine
    Setup(test_run::Options),
    /// Run all tests, the quick ones or the named steps
    Test(test_run::Options),
    /// Run a step of the tests in this process
    #[command(hide = true)]
    Step { name: String },
    /// Update the snapshots and the generated parts of the documentation, or the manifests
    Update(update::Options),
    /// Measure the release program and write docs/maintainers/benchmarks.md
    Bench(PassedOn),
    /// Build the website of the documentation
    Book,
    /// Build the libraries that directx-visible puts into programs
    VisibilityFilter,
    /// Build a container image of this project, and push it
    Image(image::Options),
    /// Build every file of a release, or of the main branch
    Release(release::Options),
}

/// Arguments that the command reads itself.
#[derive(clap::Args)]
struct PassedOn {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    perform(Command::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn perform(command: Command) -> Result<ExitCode> {
    match command {
        Command::Setup(options) => test_run::set_up_only(&options)?,
        Command::Test(options) => return test_run::command(&options),
        Command::Step { name } => test_run::step(&name)?,
        Command::Update(options) => update::command(&options)?,
        Command::Bench(PassedOn { arguments }) => bench::command(&arguments)?,
        Command::Book => println!("{}", book::build()?.join("index.html").display()),
        Command::VisibilityFilter => {
            for library in visibility_filter::build()? {
                println!("{}", library.display());
            }
        }
        Command::Image(options) => image::command(&options)?,
        Command::Release(options) => release::command(options)?,
    }
    Ok(ExitCode::SUCCESS)
}
