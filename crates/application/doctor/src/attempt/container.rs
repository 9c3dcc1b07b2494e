//! `container`: whether containers that containerd starts see the devices that they get. A program
//! in the container lists them. If this node has `directx-visible`, that checks in another
//! container whether it shows only the allocated devices.

mod ctr;
mod program;
mod sight;
mod visibility;

use std::collections::BTreeSet;
use std::process::Output;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use command_line::disk;
use config::{Config, ConfigError};
use devices::{
    Catalog, DeviceSet, Moment, Plan, PlanError, Policy, ResourceDevices, ResourceOrigin,
    ResourceRule, Visibility,
};
use host::{HostFacts, ReplicaId};

use self::ctr::Ctr;
use self::program::{Kind, Program};
use super::{discovery, last_lines};
use crate::finding::{Finding, Status, millis, number_of};
use crate::request::Request;
use crate::step::Step;
use crate::stop::Stop;

/// How many seconds one container may take: Windows unpacks layers on the first start.
pub(super) const SECONDS: u64 = 300;

/// Tests a container for one device and one for all devices of each resource.
pub(super) async fn run(
    request: &Request,
    config: Result<&Config, &ConfigError>,
    stop: &Stop,
) -> anyhow::Result<Vec<Finding>> {
    let config = config.map_err(|error| anyhow!(command_line::error_chain(error)));
    let policy = config.context("the configuration is not valid")?.policy.clone();
    let inventory = request.input.inventory.clone();
    let (_, host) = discovery::read(inventory, 1, stop).await?.swap_remove(0);
    let program = Program::for_command(&request.command)
        .context("this program cannot be copied for the container")?;
    let check = if request.command.is_empty() {
        Program::check().context("directx-visible cannot be copied for the container")?
    } else {
        None
    };
    let hardware = host.adapters.iter().filter(|adapter| adapter.is_gpu_or_accelerator());
    let luids = hardware.map(|adapter| adapter.luid.0).collect();
    let bench = Bench { ctr: Ctr::new(request), luids, stop };
    let offer = Catalog::new(without_launcher(policy)).offer(&host);
    let set = DeviceSet::next(None, offer, Moment::default());
    let plans = set.resources.iter().flat_map(|resource| plans(resource, &host.host));
    let mut findings = Vec::new();
    for (number, (object, plan)) in plans.enumerate() {
        if stop.is_interrupted() {
            break;
        }
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => {
                let refused = Step::Container
                    .skipped("the plugin refuses such a container")
                    .of(object)
                    .detail([error.to_string()])
                    .hint("see `multiDevice` and `deviceClass` of the configuration");
                findings.push(refused);
                continue;
            }
        };
        let name = format!("directx-verify-{}-{number}", std::process::id());
        findings.push(bench.test(&plan, &name, &program).await.of(object.as_str()));
        if let Some(check) = &check {
            let finding = if plan.envs.keys().any(|name| name.starts_with(visibility::VARIABLE)) {
                bench.test(&plan, &format!("{name}-visible"), check).await
            } else {
                Step::Container
                    .skipped("the container gets no variables with its devices")
                    .hint("set `environmentHints: true` in the configuration")
            };
            findings.push(finding.of(format!("{object}, directx-visible")));
        }
    }
    if findings.is_empty() {
        let reason =
            if stop.is_interrupted() { "interrupted" } else { "this host has no healthy device" };
        findings.push(Step::Container.skipped(reason));
    }
    Ok(findings)
}

/// The policy, except that containers do not get `directx-visible`: this program copies it to them
/// itself.
fn without_launcher(mut policy: Policy) -> Policy {
    for model in &mut policy.models {
        Arc::make_mut(&mut model.container).visibility = Visibility::Off;
        let rules = model.rules.iter().cloned();
        model.rules = rules.map(|rule| ResourceRule { visibility: None, ..rule }).collect();
    }
    policy
}

/// What the daemon would answer to a container with one device, and to one with all devices, of a
/// resource with healthy devices. The name of a resource may be private, so it is not used.
fn plans(resource: &ResourceDevices, host: &HostFacts) -> Vec<(String, Result<Plan, PlanError>)> {
    let healthy = resource.entries().iter().filter(|entry| entry.health.is_healthy());
    let slots: Vec<String> = healthy
        .map(|entry| ReplicaId { device: entry.device.id.clone(), number: 0 }.to_string())
        .collect();
    let label = match resource.spec.origin {
        ResourceOrigin::Model(model) => model.to_string(),
        ResourceOrigin::Rule(number) => format!("rule {number}"),
    };
    let counts = match slots.len() {
        0 => vec![],
        1 => vec![1],
        all => vec![1, all],
    };
    let plans = counts.into_iter().map(|count| {
        let some = slots[..count].iter().map(String::as_str);
        let plan = devices::plan_on_disk(resource, some, host, disk());
        (format!("{label}, {}", number_of(count, "device")), plan)
    });
    plans.collect()
}

struct Bench<'s> {
    ctr: Ctr,
    /// The LUIDs of the hardware of the host.
    luids: BTreeSet<i64>,
    stop: &'s Stop,
}

impl Bench<'_> {
    /// Runs a container with the devices of `plan`, which is called `name`.
    async fn test(&self, plan: &Plan, name: &str, program: &Program) -> Finding {
        let arguments = self.ctr.run_arguments(plan, program, name);
        let began = Instant::now();
        let ran = self.ctr.run(&arguments, &self.stop.restarted()).await;
        let taken = ("containerMs", millis(began.elapsed()));
        let is_left = match &ran {
            // `ctr run --rm` has removed the container, or there is no `ctr`.
            Ok(Ok(ended)) if ended.status.success() => false,
            Ok(Err(_)) => false,
            // `ctr` failed, usually because containerd does not answer.
            Ok(Ok(_)) => self.ctr.remove(name).await == Some(true),
            Err(_) => self.ctr.remove(name).await != Some(false),
        };
        let finding = match ran {
            Ok(Ok(ended)) => self.finding(&ended, plan, program).measured([taken]),
            Ok(Err(error)) => Step::Container
                .failed("`ctr` cannot be started", "install `ctr`, or add its folder to PATH")
                .detail([error.to_string()]),
            Err(reason) => Step::Container.error(&reason.into()),
        }
        .detail([format!("`{}`", ctr::display(&arguments))]);
        if !is_left {
            return finding;
        }
        let command = ctr::display(&self.ctr.with_options(&["containers", "delete", name]));
        finding
            .detail([format!("the container {name} could not be removed")])
            .hint(format!("remove the container with `{command}`"))
    }

    fn finding(&self, ended: &Output, plan: &Plan, program: &Program) -> Finding {
        let stdout = String::from_utf8_lossy(&ended.stdout);
        if program.kind == Kind::Check
            && let Some(finding) = visibility::judge(&stdout)
        {
            return finding;
        }
        if !ended.status.success() {
            let end = match ended.status.code() {
                Some(code) => format!("exit code {code}"),
                None => "no exit code".to_owned(),
            };
            return Step::Container
                .finding(Status::Failed, format!("the container failed: {end}"))
                .detail(last_lines(&String::from_utf8_lossy(&ended.stderr)))
                .detail(last_lines(&stdout));
        }
        let allocated = plan.devices.iter().map(|device| device.luid.0).collect();
        let (status, what) = match program.kind {
            Kind::List => match sight::judge(&stdout, &allocated, &self.luids) {
                Some(finding) => return finding,
                None => (Status::Failed, "the container did not list its devices"),
            },
            Kind::Check => (Status::Failed, "directx-visible did not print its report"),
            Kind::Other => (Status::Ok, "the command ended with exit code 0"),
        };
        Step::Container.finding(status, what).detail(last_lines(&stdout))
    }
}

#[cfg(test)]
mod tests {
    use config::{EmptyEnvironment, Flags};

    use super::*;

    /// A node that does not provide `directx-visible` could test none of its devices.
    #[test]
    fn the_containers_of_this_step_do_not_need_the_files_that_the_plugin_provides() {
        let mut policy = config::load(&Flags::default(), &EmptyEnvironment).unwrap().policy;
        let model = &mut policy.models[0];
        Arc::make_mut(&mut model.container).visibility = Visibility::Required;
        model.rules = Arc::new([ResourceRule {
            name: "a/b".parse().unwrap(),
            matches: devices::DeviceMatch::default(),
            replicas: None,
            allocation: None,
            visibility: Some(Visibility::Required),
        }]);
        assert!(Catalog::new(policy.clone()).mounts_launcher());
        assert!(!Catalog::new(without_launcher(policy)).mounts_launcher());
    }
}
