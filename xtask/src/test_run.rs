//! `cargo xtask test`: checks the whole workspace, step by step.
//!
//! Each step is one row of [`STEPS`] and can be run by its name. A run continues after a
//! failed step, so that one run reports every failure.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process::run;
use crate::workspace::{self, cargo};
use crate::{
    book, clients, deny, doc_commands, fuzz, image_suite, import_cycles, kubelet_suite, layers,
    manifests, prerequisites, release, version_info, wine_suite,
};

/// One check.
struct Step {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    run: fn() -> Result<()>,
}

/// Whether `--quick` runs a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Needs only Rust, and at most a few minutes on a fresh clone.
    Quick,
    /// Needs other tools or more time.
    Full,
}

/// The checks in the order they run: the cheapest first.
const STEPS: &[Step] = &[
    Step { name: "fmt", about: "formatting", kind: Kind::Quick, run: formatting },
    Step {
        name: "layers",
        about: "dependencies between the folders of the workspace",
        kind: Kind::Quick,
        run: layers::check,
    },
    Step {
        name: "cycles",
        about: "import cycles between the files of a crate",
        kind: Kind::Quick,
        run: import_cycles::check,
    },
    Step { name: "clippy", about: "lints for this machine", kind: Kind::Quick, run: lints },
    Step {
        name: "unit",
        about: "tests of every crate, with the kubelet double",
        kind: Kind::Quick,
        run: tests,
    },
    Step { name: "rustdoc", about: "Rust documentation", kind: Kind::Full, run: documentation },
    Step {
        name: "docs",
        about: "commands in README.md and docs",
        kind: Kind::Full,
        run: doc_commands::check,
    },
    Step {
        name: "book",
        about: "links in Markdown files; the book made from docs",
        kind: Kind::Full,
        run: book::check,
    },
    Step {
        name: "deny",
        about: "licences and advisories of dependencies",
        kind: Kind::Full,
        run: deny::check,
    },
    Step {
        name: "fuzz",
        about: "parsers of untrusted input, with generated inputs",
        kind: Kind::Full,
        run: fuzz::check,
    },
    Step {
        name: "kubelet",
        about: "the kubelet's own device manager",
        kind: Kind::Full,
        run: kubelet_suite::check,
    },
    Step {
        name: "manifests",
        about: "deployment manifests and the Helm chart",
        kind: Kind::Full,
        run: manifests::check,
    },
    Step {
        name: "clippy-windows",
        about: "lints for Windows",
        kind: Kind::Full,
        run: windows_lints,
    },
    Step {
        name: "windows-build",
        about: "every crate, built for Windows",
        kind: Kind::Full,
        run: windows_build,
    },
    Step {
        name: "clients",
        about: "C++ and Go clients of the discovery library",
        kind: Kind::Full,
        run: clients::check,
    },
    Step {
        name: "image",
        about: "container images, with a registry, containerd and skopeo",
        kind: Kind::Full,
        run: image_suite::check,
    },
    Step {
        name: "release",
        about: "a dry run of the release, and the archives that it writes",
        kind: Kind::Full,
        run: release::check,
    },
    Step {
        name: "wine",
        about: "the Windows programs under Wine",
        kind: Kind::Full,
        run: wine_suite::check,
    },
];

/// What `cargo xtask test` is to do.
enum Request {
    List,
    Run(Vec<&'static Step>),
}

pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    match request(arguments)? {
        Request::List => {
            for step in STEPS {
                let quick = if step.kind == Kind::Quick { "quick" } else { "" };
                println!("{:<15} {:<6} {}", step.name, quick, step.about);
            }
            Ok(ExitCode::SUCCESS)
        }
        Request::Run(steps) => {
            if let Some(document) = std::env::var_os(doc_commands::DOCUMENT_VARIABLE) {
                // Else the step `docs` would start itself without end.
                bail!(
                    "a command in {} starts the tests that run it\nhint: mark the block `console`",
                    document.display()
                );
            }
            Ok(perform_all(&steps))
        }
    }
}

/// Reads the arguments. Named steps run in the order of [`STEPS`].
fn request(arguments: &[OsString]) -> Result<Request> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let (options, names): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.starts_with('-'));
    if let Some(option) = options.iter().find(|o| !["--list", "--quick"].contains(&o.as_ref())) {
        bail!("unknown option `{option}`\nhint: the options are `--list` and `--quick`");
    }
    if let Some(name) = names.iter().find(|name| STEPS.iter().all(|s| ***name != *s.name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("unknown step `{name}`\nhint: the steps are {}", known.join(", "));
    }
    if let Some(option) = options.first()
        && let Some(other) = words.iter().find(|word| word != option)
    {
        bail!("`{option}` cannot be combined with `{other}`");
    }
    let is_chosen = |step: &&Step| names.iter().any(|name| ***name == *step.name);
    Ok(match options.first().map(AsRef::as_ref) {
        Some("--list") => Request::List,
        Some(_) => Request::Run(STEPS.iter().filter(|s| s.kind == Kind::Quick).collect()),
        None if names.is_empty() => Request::Run(STEPS.iter().collect()),
        None => Request::Run(STEPS.iter().filter(is_chosen).collect()),
    })
}

/// A step that has run.
struct Outcome {
    step: &'static Step,
    time: Duration,
    result: Result<()>,
}

fn perform_all(steps: &[&'static Step]) -> ExitCode {
    let start = Instant::now();
    let mut outcomes = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let place = format!("[{}/{}]", index + 1, steps.len());
        println!("{place} {}: {} ({} elapsed)", step.name, step.about, clock(start.elapsed()));
        let outcome = perform(step);
        if let Err(error) = &outcome.result {
            println!("error: {error:#}");
        }
        println!("{place} {}: {} in {}", step.name, outcome.verdict(), clock(outcome.time));
        outcomes.push(outcome);
    }
    report(&outcomes, start.elapsed())
}

fn perform(step: &'static Step) -> Outcome {
    let start = Instant::now();
    let result = (step.run)();
    Outcome { step, time: start.elapsed(), result }
}

impl Outcome {
    fn verdict(&self) -> &'static str {
        if self.result.is_ok() { "ok" } else { "FAILED" }
    }
}

/// Prints a line for each step and the totals; the exit code is a failure if any step
/// failed.
fn report(outcomes: &[Outcome], total: Duration) -> ExitCode {
    println!();
    for outcome in outcomes {
        println!("{:<7} {:<15} {:>6}", outcome.verdict(), outcome.step.name, clock(outcome.time));
    }
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
    println!("{} passed, {failed} failed in {}", outcomes.len() - failed, clock(total));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Minutes and seconds, such as `2:05`.
fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

fn formatting() -> Result<()> {
    prerequisites::for_lints()?;
    run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> std::process::Command {
    let mut clippy = cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
    clippy
}

const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];

fn lints() -> Result<()> {
    prerequisites::for_lints()?;
    run(clippy().args(DENY_WARNINGS))
}

fn windows_lints() -> Result<()> {
    prerequisites::for_lints()?;
    prerequisites::for_windows_builds()?;
    run(clippy().args(["--target", workspace::WINDOWS_TARGET]).args(DENY_WARNINGS))
}

fn documentation() -> Result<()> {
    let arguments = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    run(cargo().args(arguments).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn tests() -> Result<()> {
    run(cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast"]))
}

fn windows_build() -> Result<()> {
    prerequisites::for_windows_builds()?;
    let arguments = ["build", "--quiet", "--workspace", "--target", workspace::WINDOWS_TARGET];
    run(cargo().args(arguments))?;
    version_info::perform()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(words: &[&str]) -> Vec<&'static str> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        match request(&arguments).unwrap() {
            Request::Run(steps) => steps.iter().map(|step| step.name).collect(),
            Request::List => panic!("{words:?} lists the steps"),
        }
    }

    fn error(words: &[&str]) -> String {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        request(&arguments).err().unwrap().to_string()
    }

    #[test]
    fn named_steps_run_in_the_order_of_the_list() {
        assert_eq!(steps(&["unit", "fmt"]), ["fmt", "unit"]);
        assert_eq!(steps(&[]).len(), STEPS.len());
    }

    #[test]
    fn quick_runs_only_what_rust_brings() {
        assert_eq!(steps(&["--quick"]), ["fmt", "layers", "cycles", "clippy", "unit"]);
    }

    #[test]
    fn list_runs_nothing() {
        assert!(matches!(request(&["--list".into()]), Ok(Request::List)));
    }

    #[test]
    fn invalid_arguments_are_named_with_a_hint() {
        assert!(error(&["lint"]).starts_with("unknown step `lint`\nhint: the steps are fmt, "));
        assert!(error(&["--fast"]).starts_with("unknown option `--fast`\nhint: "));
        for words in [["--quick", "kubelet"], ["kubelet", "--quick"]] {
            assert_eq!(error(&words), "`--quick` cannot be combined with `kubelet`");
        }
        let options = error(&["--quick", "--list"]);
        assert_eq!(options, "`--quick` cannot be combined with `--list`");
    }

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_millis(5_999)), "0:05");
        assert_eq!(clock(Duration::from_secs(754)), "12:34");
    }
}
