//! Builds the fuzz targets in `testing/fuzz` on stable Rust and runs them with libFuzzer.
//!
//! rustc's coverage passes are LLVM's own and need no nightly compiler. Only the
//! sanitizers do; they find errors in `unsafe` code, and no target runs any. The build
//! output lies in the user's cache. The inputs that a target discovers stay in
//! `target/fuzz/corpus`, and later runs continue from there.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use crate::cache::Cache;
use crate::prerequisites;
use crate::process::{self, run};
use crate::process_lock::ProcessLock;
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

/// Limits for one input: seconds of time, and MiB of memory.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=2048"];

/// The arguments of `cargo xtask fuzz`.
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
        (Some(_), _) => bail!("`--input` needs exactly one target\nhint: name it before `--input`"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks the code of the fuzz targets and runs each one for a short time.
pub(crate) fn check() -> Result<()> {
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
                request.seconds = value
                    .parse()
                    .with_context(|| format!("invalid value in `--seconds {value}`"))?;
            }
            "--input" => {
                let value = words.next().context("`--input` needs a file")?;
                request.input = Some(PathBuf::from(&*value));
            }
            name if all.iter().any(|target| target == name) => {
                request.targets.push(name.to_owned());
            }
            other => {
                bail!("unknown fuzz target `{other}`\nhint: the targets are {}", all.join(", "))
            }
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
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
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
    /// The machine's target triple. If it is named, cargo builds build scripts without
    /// coverage.
    platform: String,
    /// cargo's target folder for them, which all clones on the machine share.
    build: PathBuf,
    /// The built programs, corpora and failing inputs of this clone.
    folder: PathBuf,
}

impl Programs {
    fn build() -> Result<Programs> {
        if !cfg!(unix) {
            bail!("the fuzz targets run on Unix systems only");
        }
        prerequisites::for_fuzz_builds()?;
        let version = process::stdout(Command::new("rustc").arg("-vV")).unwrap_or_default();
        let platform = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("`rustc -vV` prints no host")?
            .to_owned();
        let lock_file = std::fs::read_to_string(fuzz_folder().join("Cargo.lock"))?;
        let made_from = [&*version, &lock_file, &COVERAGE.concat()];
        let build = Cache::open()?.tool_folder("fuzz-build", &made_from)?;
        let programs = Programs { platform, build, folder: workspace::target_dir().join("fuzz") };
        // Another clone would replace the programs of this one.
        let _lock = ProcessLock::wait(&programs.build)?;
        run(&mut programs.cargo(&["build", "--bins"]))?;
        programs.copy_from_build()?;
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
            .arg(&self.build)
            .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
        command
    }

    fn command(&self, target: &str) -> Command {
        Command::new(self.folder.join("programs").join(target))
    }

    fn copy_from_build(&self) -> Result<()> {
        let programs = self.folder.join("programs");
        std::fs::create_dir_all(&programs)
            .with_context(|| format!("cannot create {}", programs.display()))?;
        for target in all_targets()? {
            let built = self.build.join(&self.platform).join("release").join(&target);
            std::fs::copy(&built, programs.join(target))
                .with_context(|| format!("cannot copy {}", built.display()))?;
        }
        Ok(())
    }

    /// Runs the targets, as many at the same time as there are processors.
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

    /// Runs one target and returns the number of inputs it has processed.
    fn run_one(&self, target: &str, seconds: u32) -> Result<u64> {
        let corpus = self.folder.join("corpus").join(target);
        let failures = self.folder.join("failures");
        for folder in [&corpus, &failures] {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
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
        inputs_or_failure(target, &output)
    }
}

/// Folders with initial inputs.
fn seeds(target: &str) -> Vec<PathBuf> {
    let own = fuzz_folder().join("seeds").join(target);
    let recorded = workspace::root().join("fixtures").join("inventories");
    let folders = [own, recorded];
    let count = if target == "inventories" { 2 } else { 1 };
    folders.into_iter().take(count).filter(|folder| folder.is_dir()).collect()
}

/// The number of inputs in the output of a target; or its failure, and how to reproduce it.
fn inputs_or_failure(target: &str, output: &Output) -> Result<u64> {
    let log = String::from_utf8_lossy(&output.stderr);
    let value =
        |key: &str| log.lines().find_map(|line| line.split_once(key)).map(|(_, value)| value);
    if output.status.success() {
        let runs = value("Done ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        return runs.with_context(|| format!("{target} does not print its number of inputs"));
    }
    let panic: Vec<&str> =
        log.lines().skip_while(|line| !line.contains("panicked at")).take(6).collect();
    let message =
        if panic.is_empty() { process::last_lines(&output.stderr, 6) } else { panic.join("\n") };
    let Some(path) = value("Test unit written to ").map(Path::new) else {
        bail!("{}, and no input was written\n{message}", output.status);
    };
    let path = path.display();
    // libFuzzer prints only short inputs.
    let spelled = value("Base64: ").map(|text| format!(", in base64 {text}")).unwrap_or_default();
    bail!(
        "{}\n{message}\nthe input is {path}{spelled}\n\
         hint: reproduce it with `cargo xtask fuzz {target} --input {path}`",
        output.status
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Request> {
        let all = ["paths", "slot_ids"].map(str::to_owned);
        request(&words.iter().map(OsString::from).collect::<Vec<_>>(), &all)
    }

    #[test]
    fn all_targets_run_if_none_is_named() {
        assert_eq!(parsed(&[]).unwrap().targets, ["paths", "slot_ids"]);
        let named = parsed(&["slot_ids", "--seconds", "600"]).unwrap();
        assert_eq!((named.targets, named.seconds), (vec!["slot_ids".to_owned()], 600));
        let input = parsed(&["paths", "--input", "x"]).unwrap().input;
        assert_eq!(input, Some(PathBuf::from("x")));
        for bad in [&["path"][..], &["--seconds"], &["--seconds", "-1"], &["--input"]] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_failure_is_reported_with_its_input_and_a_command() {
        let result_of = |script: &str| {
            let output = Command::new("sh").args(["-c", script]).output().unwrap();
            inputs_or_failure("paths", &output).map_err(|error| error.to_string())
        };
        assert_eq!(result_of("echo 'Done 12 runs in 1 second(s)' >&2"), Ok(12));
        assert!(result_of("true").is_err());
        let failed = "echo 'thread panicked at x' >&2; echo 'Test unit written to /a/b' >&2; \
                      echo 'Base64: QQ==' >&2; exit 77";
        let message = result_of(failed).unwrap_err();
        for part in ["panicked at x", "QQ==", "`cargo xtask fuzz paths --input /a/b`"] {
            assert!(message.contains(part), "{message}");
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
