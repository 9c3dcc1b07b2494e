//! `container`: whether containers that containerd starts see the devices that they get.
//!
//! The devices are planned as for `Allocate`, under the configuration of the daemon, and
//! given to `ctr run`. A program in the container lists the devices that it sees. If
//! `directx-visible` lies beside this program, it checks in another container whether it shows
//! the allocated devices only.

mod ctr;
mod planned;
mod sight;
mod visibility;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use devices::{HostSnapshot, Policy};

use crate::process::{Ended, RunError};
use crate::request::ContainerRequest;
use crate::step::{Finding, Measurement, Outcome, Step};
use crate::steps::discovery;
use crate::stop::{Reason, Stop};
use ctr::{Ctr, Program};
use planned::{Case, Planned, cases};
use sight::{host_luids, judge, seen_luids};

/// How long one container may take: Windows unpacks layers on the first start.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// How many lines of a container's output a report contains.
const OUTPUT_LINES: usize = 20;

/// Tests a container for one device and one for all devices of each resource.
pub(crate) async fn run(
    request: &ContainerRequest,
    policy: Policy,
    inventory: Option<PathBuf>,
    stop: &Stop,
) -> Vec<Finding> {
    let failed =
        |what: &str, error: String| vec![Finding::failed(Step::Container, what).detail([error])];
    let host = match stop.or_on_thread(move || snapshot(inventory.as_deref())).await {
        Ok(Ok(host)) => host,
        Ok(Err(error)) => return failed("the adapters cannot be read", error),
        Err(reason) => return vec![Finding::unfinished(Step::Container, reason)],
    };
    let program = match Program::for_command(&request.command) {
        Ok(program) => program,
        Err(error) => {
            return failed("this program cannot be copied for the container", error.to_string());
        }
    };
    let check = match Program::check() {
        Ok(check) => check.filter(|_| request.command.is_empty()),
        Err(error) => {
            return failed("directx-visible cannot be copied for the container", error.to_string());
        }
    };
    let planned = cases(policy, &host);
    if planned.is_empty() {
        return vec![Finding::skipped(Step::Container, "this host has no healthy device")];
    }
    let bench = Bench { ctr: Ctr::new(request), host, stop };
    let mut findings = Vec::new();
    for (number, planned) in planned.into_iter().enumerate() {
        let case = match planned {
            Planned::Refused { object, reason } => {
                findings.push(refused(object, reason));
                continue;
            }
            Planned::Case(case) => case,
        };
        let name = format!("directx-verify-{}-{number}", std::process::id());
        findings.push(bench.test(&case, &name, &program).await);
        if let Some(check) = &check {
            let case = visibility::case(case);
            findings.push(match visibility::reason_to_skip(&case) {
                Some(skipped) => skipped,
                None => bench.test(&case, &format!("{name}-visible"), check).await,
            });
        }
    }
    findings
}

fn snapshot(inventory: Option<&Path>) -> Result<HostSnapshot, String> {
    discovery::open(inventory)?.snapshot().map_err(|error| cli::error_chain(&*error))
}

fn refused(object: String, reason: String) -> Finding {
    Finding::skipped(Step::Container, "the plugin refuses such a container")
        .of(object)
        .detail([reason])
        .hint("see `multiDevice` and `deviceClass` of the configuration")
}

/// What every container is tested with.
struct Bench<'s> {
    ctr: Ctr,
    host: HostSnapshot,
    stop: &'s Stop,
}

impl Bench<'_> {
    /// Runs a container of `case`, which is called `name`.
    async fn test(&self, case: &Case, name: &str, program: &Program) -> Finding {
        if self.stop.is_interrupted() {
            let object = case.object.clone();
            return Finding::unfinished(Step::Container, Reason::Interrupted).of(object);
        }
        let arguments = self.ctr.run_arguments(&case.plan, program, name);
        let began = Instant::now();
        let ran = self.ctr.run(&arguments, &self.stop.restarted()).await;
        let taken = Measurement::time("containerMs", began.elapsed());
        let is_left = match &ran {
            // `ctr run --rm` has removed the container, or there is no `ctr`.
            Ok(ended) if ended.status.success() => false,
            Err(RunError::Start(_)) => false,
            // It failed, and a containerd that does not answer is the usual reason.
            Ok(_) => self.ctr.remove(name).await == Some(true),
            Err(RunError::Stopped(_)) => self.ctr.remove(name).await != Some(false),
        };
        let finding = match ran {
            Ok(ended) => finding(&ended, case, program, &self.host).measured([taken]),
            Err(RunError::Start(error)) => {
                Finding::failed(Step::Container, "`ctr` cannot be started")
                    .detail([error.to_string()])
                    .hint("install `ctr`, or add its folder to PATH")
            }
            Err(RunError::Stopped(reason)) => Finding::unfinished(Step::Container, reason),
        };
        let finding = finding.of(case.object.clone()).detail([ctr::display(&arguments)]);
        if !is_left {
            return finding;
        }
        let command = self.ctr.delete_command(name);
        finding
            .detail([format!("the container {name} could not be removed")])
            .hint(format!("remove the container with `{command}`"))
    }
}

fn finding(ended: &Ended, case: &Case, program: &Program, host: &HostSnapshot) -> Finding {
    if matches!(program, Program::Check(_))
        && let Some(finding) = visibility::judge(&ended.stdout)
    {
        return finding;
    }
    if !ended.status.success() {
        let code = ended
            .status
            .code()
            .map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
        return Finding::failed(Step::Container, format!("the container failed: {code}"))
            .detail(last_lines(&ended.stderr))
            .detail(last_lines(&ended.stdout));
    }
    let Some(seen) = seen_luids(&ended.stdout) else {
        let (outcome, what) = match program {
            Program::This(_) => (Outcome::Failed, "the container did not list its devices"),
            Program::Check(_) => (Outcome::Failed, "directx-visible did not print its report"),
            Program::Probe(..) | Program::Given(_) => {
                (Outcome::Ok, "the command ended with exit code 0")
            }
        };
        return Finding::new(Step::Container, outcome, what).detail(last_lines(&ended.stdout));
    };
    let allocated = case.plan.devices.iter().map(|device| device.luid.0).collect();
    let (outcome, what) = judge(&seen, &allocated, &host_luids(host));
    Finding::new(Step::Container, outcome, what).measured([
        Measurement::count("allocated", allocated.len()),
        Measurement::count("seen", seen.len()),
    ])
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let start = lines.len().saturating_sub(OUTPUT_LINES);
    lines[start..].iter().map(|line| (*line).to_owned()).collect()
}
