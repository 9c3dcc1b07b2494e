//! The fuzz targets of `testing/fuzz/`, built and run by libFuzzer on stable Rust.
//!
//! rustc's coverage passes are LLVM's own and need no nightly; only the sanitizers do,
//! which find faults of `unsafe` code, and no target runs any. What a target discovers
//! stays in `target/fuzz/corpus`, so later runs go on from there.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use crate::process::{self, run};
use crate::setup;
use crate::workspace::{self, cargo};

/// How long each target runs in `cargo xtask test`.
const SECONDS: u32 = 10;

/// The coverage that libFuzzer reads: a counter and an address for each edge, and the
/// operands of comparisons.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Bounds of one input: seconds until it hangs, and MiB until it leaks.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=2048"];

/// What `cargo xtask fuzz` was asked for.
#[derive(PartialEq, Eq, Debug)]
struct Request {
    targets: Vec<String>,
    seconds: u32,
    input: Option<PathBuf>,
}

/// `cargo xtask fuzz`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let request = request(arguments, &all_targets()?)?;
    let programs = Programs::build()?;
    match (&request.input, request.targets.as_slice()) {
        (None, targets) => programs.run_all(targets, request.seconds)?,
        (Some(input), [target]) => run(programs.command(target).args(LIMITS).arg(input))?,
        (Some(_), _) => bail!("`--input` is for one target\nhint: name it before `--input`"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs every target for a while.
pub(crate) fn perform() -> Result<()> {
    run(cargo().args(["fmt", "--check", "--manifest-path", "testing/fuzz/Cargo.toml"]))?;
    let programs = Programs::build()?;
    run(programs.cargo(&["clippy", "--lib", "--bins"]).args(["--", "--deny", "warnings"]))?;
    run(&mut programs.cargo(&["test", "--lib"]))?;
    programs.run_all(&all_targets()?, SECONDS)
}

fn request(arguments: &[OsString], all: &[String]) -> Result<Request> {
    let mut request = Request { targets: Vec::new(), seconds: SECONDS, input: None };
    let mut words = arguments.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        match &*word {
            "--seconds" => {
                let value = words.next().unwrap_or_default();
                request.seconds = value.parse().with_context(|| format!("`--seconds {value}`"))?;
            }
            "--input" => {
                let value = words.next().context("`--input` needs a file")?;
                request.input = Some(PathBuf::from(&*value));
            }
            name if all.iter().any(|target| target == name) => {
                request.targets.push(name.to_owned());
            }
            other => bail!("`{other}` is no fuzz target; they are {}", all.join(", ")),
        }
    }
    if request.targets.is_empty() {
        request.targets = all.to_vec();
    }
    Ok(request)
}

/// The names of all targets, sorted: the files in `testing/fuzz/targets`.
fn all_targets() -> Result<Vec<String>> {
    let folder = fuzz_folder().join("targets");
    let entries = std::fs::read_dir(&folder)
        .with_context(|| format!("cannot read the folder `{}`", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn fuzz_folder() -> PathBuf {
    workspace::root().join("testing/fuzz")
}

/// The built targets.
struct Programs {
    /// What they are built for: with it named, build scripts are built without coverage.
    platform: String,
    /// Their build output, corpora and failing inputs.
    folder: PathBuf,
}

impl Programs {
    fn build() -> Result<Programs> {
        if !cfg!(unix) {
            bail!("the fuzz targets run on Linux and other Unix systems alone");
        }
        setup::for_fuzz_builds()?;
        let version = process::answer(Command::new("rustc").arg("-vV")).unwrap_or_default();
        let platform = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("`rustc -vV` does not tell what it builds for")?
            .to_owned();
        let programs = Programs { platform, folder: workspace::target_dir().join("fuzz") };
        run(&mut programs.cargo(&["build", "--bins"]))?;
        Ok(programs)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo();
        command
            .args(arguments)
            .args([
                "--quiet",
                "--release",
                "--manifest-path",
                "testing/fuzz/Cargo.toml",
                "--target",
            ])
            .arg(&self.platform)
            .arg("--target-dir")
            .arg(&self.folder)
            .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
        command
    }

    fn command(&self, target: &str) -> Command {
        Command::new(self.folder.join(&self.platform).join("release").join(target))
    }

    /// Runs the targets, as many at once as there are processors.
    fn run_all(&self, targets: &[String], seconds: u32) -> Result<()> {
        let queue = Mutex::new(targets.iter());
        let failed = Mutex::new(Vec::new());
        let at_once = thread::available_parallelism().map_or(1, NonZero::get);
        let work = || {
            let next = || queue.lock().expect("no thread panics with the queue").next();
            while let Some(target) = next() {
                match self.run_one(target, seconds) {
                    Ok(inputs) => println!("{target:<16} {inputs} inputs in {seconds} s"),
                    Err(error) => {
                        println!("{target:<16} FAILED: {error:#}");
                        failed.lock().expect("no thread panics with the list").push(&**target);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..at_once.min(targets.len()) {
                scope.spawn(work);
            }
        });
        match failed.into_inner().expect("no thread panics with the list").as_slice() {
            [] => Ok(()),
            names => Err(anyhow!("failed: {}", names.join(", "))),
        }
    }

    /// Runs one target and returns how many inputs it was given.
    fn run_one(&self, target: &str, seconds: u32) -> Result<u64> {
        let corpus = self.folder.join("corpus").join(target);
        let failures = self.folder.join("failures");
        for folder in [&corpus, &failures] {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
        }
        let mut command = self.command(target);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/{target}-", failures.display()))
            .args(LIMITS)
            .arg(&corpus)
            .args(seeds(target))
            .stdin(Stdio::null());
        let output = command.output().with_context(|| format!("cannot run {target}"))?;
        judge(target, &output)
    }
}

/// Folders with inputs to begin with.
fn seeds(target: &str) -> Vec<PathBuf> {
    let own = fuzz_folder().join("seeds").join(target);
    let recorded = workspace::root().join("fixtures").join("inventories");
    let folders = [own, recorded];
    let count = if target == "inventories" { 2 } else { 1 };
    folders.into_iter().take(count).filter(|folder| folder.is_dir()).collect()
}

/// How many inputs a target took; or what it failed with, and how to see that again.
fn judge(target: &str, output: &Output) -> Result<u64> {
    let log = String::from_utf8_lossy(&output.stderr);
    let value =
        |key: &str| log.lines().find_map(|line| line.split_once(key)).map(|(_, value)| value);
    if output.status.success() {
        let runs = value("Done ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        return runs.with_context(|| format!("{target} does not tell how many inputs it took"));
    }
    let panic: Vec<&str> =
        log.lines().skip_while(|line| !line.contains("panicked at")).take(6).collect();
    let words =
        if panic.is_empty() { process::last_lines(&output.stderr, 6) } else { panic.join("\n") };
    let Some(path) = value("Test unit written to ").map(Path::new) else {
        bail!("{} without an input\n{words}", output.status);
    };
    let path = path.display();
    // libFuzzer spells short inputs alone.
    let spelled = value("Base64: ").map(|text| format!(", in base64 {text}")).unwrap_or_default();
    bail!(
        "{}\n{words}\nthe input is {path}{spelled}\n\
         hint: see it again with `cargo xtask fuzz {target} --input {path}`",
        output.status
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Result<Request> {
        let all = ["paths", "slot_ids"].map(str::to_owned);
        request(&words.iter().map(OsString::from).collect::<Vec<_>>(), &all)
    }

    #[test]
    fn every_target_runs_unless_some_are_named() {
        assert_eq!(asked(&[]).unwrap().targets, ["paths", "slot_ids"]);
        let named = asked(&["slot_ids", "--seconds", "600"]).unwrap();
        assert_eq!((named.targets, named.seconds), (vec!["slot_ids".to_owned()], 600));
        let input = asked(&["paths", "--input", "x"]).unwrap().input;
        assert_eq!(input, Some(PathBuf::from("x")));
        for bad in [&["path"][..], &["--seconds"], &["--seconds", "-1"], &["--input"]] {
            assert!(asked(bad).is_err(), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_failure_comes_with_its_input_and_a_way_to_see_it_again() {
        let ended = |script: &str| {
            let output = Command::new("sh").args(["-c", script]).output().unwrap();
            judge("paths", &output).map_err(|error| error.to_string())
        };
        assert_eq!(ended("echo 'Done 12 runs in 1 second(s)' >&2"), Ok(12));
        assert!(ended("true").is_err());
        let failed = "echo 'thread panicked at x' >&2; echo 'Test unit written to /a/b' >&2; \
                      echo 'Base64: QQ==' >&2; exit 77";
        let told = ended(failed).unwrap_err();
        for part in ["panicked at x", "QQ==", "`cargo xtask fuzz paths --input /a/b`"] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn every_target_is_built() {
        let manifest = std::fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
        for target in all_targets().unwrap() {
            assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
        }
    }
}
