//! `container`: whether containers that containerd starts see the devices that they get.
//!
//! The devices are planned as for `Allocate`, under the configuration of the daemon, and
//! given to `ctr run`. A program in the container lists the devices that it sees. If
//! `directx-visible` is in the folder of this program, it checks in another container whether it shows
//! the allocated devices only.

mod ctr;
mod planned;
mod program;
mod sight;
mod visibility;

use std::time::{Duration, Instant};

use config::Config;
use devices::{HostSnapshot, Platform, Policy};
use node::cli::Failure;

use super::discovery;
use crate::doctor::finding::{Finding, Status, Subject, Value};
use crate::doctor::process::{Ended, RunError};
use crate::doctor::request::Request;
use crate::doctor::stop::{Reason, Stop, on_thread};
use ctr::Ctr;
use planned::{Case, cases};
pub(super) use program::folder;
use program::{Kind, Program};
use sight::{host_luids, judge, seen_luids};

pub(super) const SUBJECT: Subject = Subject("container");

/// How long one container may take: Windows unpacks layers on the first start.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// How many lines of a container's output a report contains.
const OUTPUT_LINES: usize = 20;

/// Tests a container for one device and one for all devices of each resource.
pub(super) async fn run(
    request: &Request,
    config: Result<&Config, &Failure>,
    stop: Stop,
) -> Vec<Finding> {
    let policy = match config {
        Ok(config) => config.policy.clone(),
        Err(error) => return failed("the configuration is not valid", error.chain()),
    };
    let inventory = request.input.inventory.clone();
    let read = stop.or_on_thread(move || {
        discovery::open(inventory.as_deref())
            .and_then(|mut source| discovery::snapshot(&mut *source))
    });
    let host = match read.await {
        Ok(Ok(host)) => host,
        Ok(Err(error)) => return failed("the adapters cannot be read", error),
        Err(reason) => return vec![SUBJECT.unfinished(reason)],
    };
    let request = request.clone();
    // Ends by itself at an interruption, after it has removed the container.
    let findings = on_thread(move || run_all(&request, policy, host, stop)).await;
    findings.unwrap_or_else(|reason| vec![SUBJECT.unfinished(reason)])
}

fn failed(what: &str, error: String) -> Vec<Finding> {
    vec![SUBJECT.finding(Status::Failed, what).detail([error])]
}

fn run_all(request: &Request, policy: Policy, host: HostSnapshot, stop: Stop) -> Vec<Finding> {
    if host.host.platform == Platform::LinuxDxg {
        return vec![SUBJECT.skipped("starts only Windows containers")];
    }
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
        return vec![SUBJECT.skipped("this host has no healthy device")];
    }
    let bench = Bench { ctr: Ctr::new(request), host, stop };
    let mut findings = Vec::new();
    for (number, (object, plan)) in planned.into_iter().enumerate() {
        let case = match plan {
            Ok(plan) => Case { object, plan },
            Err(error) => {
                let refused = SUBJECT
                    .skipped("the plugin refuses such a container")
                    .of(object)
                    .detail([error.to_string()])
                    .hint("see `multiDevice` and `deviceClass` of the configuration");
                findings.push(refused);
                continue;
            }
        };
        let name = format!("directx-verify-{}-{number}", std::process::id());
        findings.push(bench.test(&case, &name, &program));
        if let Some(check) = &check {
            let case = visibility::case(case);
            findings.push(match visibility::reason_to_skip(&case) {
                Some(skipped) => skipped,
                None => bench.test(&case, &format!("{name}-visible"), check),
            });
        }
    }
    findings
}

/// What every container is tested with.
struct Bench {
    ctr: Ctr,
    host: HostSnapshot,
    stop: Stop,
}

impl Bench {
    /// Runs a container of `case`, which is called `name`.
    fn test(&self, case: &Case, name: &str, program: &Program) -> Finding {
        let stop = self.stop.restarted();
        if stop.is_interrupted() {
            return SUBJECT.unfinished(Reason::Interrupted).of(case.object.clone());
        }
        let arguments = self.ctr.run_arguments(&case.plan, program, name);
        let began = Instant::now();
        let ran = self.ctr.run(&arguments, &stop);
        let taken = ("containerMs", Value::Time(began.elapsed()));
        let is_left = match &ran {
            // `ctr run --rm` has removed the container, or there is no `ctr`.
            Ok(ended) if ended.status.success() => false,
            Err(RunError::Start(_)) => false,
            // It failed, and a containerd that does not answer is the usual reason.
            Ok(_) => self.ctr.remove(name) == Some(true),
            Err(RunError::Stopped(_)) => self.ctr.remove(name) != Some(false),
        };
        let finding = match ran {
            Ok(ended) => finding(&ended, case, program, &self.host).measured([taken]),
            Err(RunError::Start(error)) => SUBJECT
                .failed("`ctr` cannot be started", "install `ctr`, or add its folder to PATH")
                .detail([error.to_string()]),
            Err(RunError::Stopped(reason)) => SUBJECT.unfinished(reason),
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
    if program.kind == Kind::Check
        && let Some(finding) = visibility::judge(&ended.stdout)
    {
        return finding;
    }
    if !ended.status.success() {
        let code = ended.status.code();
        let code = code.map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
        return SUBJECT
            .finding(Status::Failed, format!("the container failed: {code}"))
            .detail(last_lines(&ended.stderr))
            .detail(last_lines(&ended.stdout));
    }
    let Some(seen) = seen_luids(&ended.stdout) else {
        let (status, what) = match program.kind {
            Kind::List => (Status::Failed, "the container did not list its devices"),
            Kind::Check => (Status::Failed, "directx-visible did not print its report"),
            Kind::Other => (Status::Ok, "the command ended with exit code 0"),
        };
        return SUBJECT.finding(status, what).detail(last_lines(&ended.stdout));
    };
    let allocated = case.plan.devices.iter().map(|device| device.luid.0).collect();
    let (status, what) = judge(&seen, &allocated, &host_luids(host));
    SUBJECT.finding(status, what).measured([
        ("allocated", Value::Count(allocated.len())),
        ("seen", Value::Count(seen.len())),
    ])
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let start = lines.len().saturating_sub(OUTPUT_LINES);
    lines[start..].iter().map(|line| (*line).to_owned()).collect()
}
