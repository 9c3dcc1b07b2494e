//! `cargo xtask`: sets up, tests and measures this workspace.
//!
//! Each command is one row of [`COMMANDS`] and one module. The product does not need
//! anything in this crate.

mod attack;
mod bench;
mod build_flags;
mod cache;
mod clients;
mod cluster_suite;
mod documentation;
mod folder_users;
mod gpu_suite;
mod image;
mod image_suite;
mod imports;
mod kubelet_suite;
mod machine;
mod manifests;
mod metrics_suite;
mod nightly;
mod prerequisites;
mod process;
mod process_lock;
mod release;
mod setup;
mod skipped_part;
mod stable_hash;
mod test_run;
mod version_info;
mod version_resource;
mod visibility_filter;
mod wine;
mod wine_command;
mod wine_suite;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

/// One `cargo xtask NAME`.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> Result<ExitCode>,
}

/// The commands of `cargo xtask`, in the order its help lists them.
const COMMANDS: &[Command] = &[
    Command {
        name: "setup",
        arguments: "",
        about: "install what the tests need on this machine",
        run: setup::command,
    },
    Command {
        name: "test",
        arguments: "[--list | --quick | STEP...]",
        about: "run all test steps, the quick ones or the named ones; `--list` shows the steps",
        run: test_run::command,
    },
    Command {
        name: "bench",
        arguments: "[--quick] [--only GROUP]",
        about: "measure the release program and write docs/benchmarks.md",
        run: bench::command,
    },
    Command {
        name: "attack",
        arguments: "[--short] [--only ATTACK]",
        about: "attack the release program and write the table of docs/security.md",
        run: attack::command,
    },
    Command {
        name: "wine",
        arguments: "[--prefix NAME] [--inventory FILE] (PROGRAM [ARGUMENT]... | --stop)",
        about: "run a Windows program under Wine, optionally with the devices of an inventory",
        run: wine_command::command,
    },
    Command {
        name: "wine-suite",
        arguments: "[PART-OF-A-NAME]",
        about: "run the tests of the Windows programs under Wine, or those with matching names",
        run: wine_suite::command,
    },
    Command {
        name: "visibility-filter",
        arguments: "",
        about: "build the libraries that directx-visible puts into programs",
        run: visibility_filter::command,
    },
    Command {
        name: "image",
        arguments: "[--output DIR] [--tag TAG] [--programs DIR]\n\
            \x20       [--example NAME --base-manifest FILE --base-config FILE [--base-name IMAGE]]\n\
            \x20       [--push REGISTRY/REPOSITORY[:TAG] [--replace] [--plain-http]]",
        about: "build the container image of the plugin or of an example, and push it",
        run: image::command,
    },
    Command {
        name: "release",
        arguments: "[--dry-run] [--output DIR] [--registry REGISTRY/PATH] [--plain-http]",
        about: "build every file of a release, and push the image and the chart unless it is a dry run",
        run: release::command,
    },
    Command {
        name: "cache",
        arguments: "[clear]",
        about: "show or remove the downloads and builds in the user's cache directory",
        run: cache::command,
    },
];

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((name, arguments)) = words.split_first() else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    if is_help(name) || name == "help" {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|c| name == c.name) else {
        eprint!("error: unknown command `{}`\n\n{}", name.display(), usage());
        return ExitCode::from(2);
    };
    if arguments.first().is_some_and(is_help) {
        print!("usage: cargo xtask {}", command.usage());
        return ExitCode::SUCCESS;
    }
    (command.run)(arguments).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

impl Command {
    fn usage(&self) -> String {
        let call = format!("{} {}", self.name, self.arguments);
        format!("{}\n      {}\n", call.trim_end(), self.about)
    }
}

fn is_help(argument: &OsString) -> bool {
    argument == "--help" || argument == "-h"
}

fn usage() -> String {
    let rows = COMMANDS.iter().map(|command| format!("  {}", command.usage()));
    format!("usage: cargo xtask COMMAND\n\n{}", rows.collect::<String>())
}
