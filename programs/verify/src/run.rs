//! Runs the steps, one after the other.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use cli::Failure;
use devices::HostSnapshot;
use doctor::Inspection;
use kubelet::default_device_plugin_dir;
use settings::Config;
use tokio::sync::watch;

use crate::report::Report;
use crate::request::Request;
use crate::step::{Finding, Step};
use crate::steps;
use crate::stop::Stop;

/// The longest that each step may take. A live doctor runs programs that may hang.
const DOCTOR_LIMIT: Duration = Duration::from_secs(120);
const SOCKET_LIMIT: Duration = Duration::from_secs(15);
const DISCOVERY_LIMIT: Duration = Duration::from_secs(60);
const KUBELET_LIMIT: Duration = Duration::from_secs(30);

/// Verifies a node. When `interrupt` completes, the step that runs cleans up and ends, and the
/// others are skipped.
///
/// # Errors
/// The inventory cannot be read, or there is none and this host is not Windows.
pub async fn run(
    request: &Request,
    interrupt: impl Future<Output = &'static str>,
) -> Result<Report, Failure> {
    check(request)?;
    let (interrupted, interruption) = watch::channel(false);
    let mut interrupt = pin!(interrupt);
    let mut steps = pin!(Verification::new(request, interruption).run());
    loop {
        tokio::select! {
            biased;
            report = &mut steps => return report,
            signal = &mut interrupt, if !*interrupted.borrow() => {
                tracing::warn!(signal, "interrupted; removing what was created");
                interrupted.send_replace(true);
            }
        }
    }
}

/// An inventory that cannot be read is wrong usage, and so is none on a system other than
/// Windows. A Windows host that cannot be read is a finding.
fn check(request: &Request) -> Result<(), Failure> {
    let inventory = request.node.inventory.as_deref();
    if inventory.is_some() || !cfg!(windows) {
        cli::open_host(inventory)?;
    }
    Ok(())
}

/// A verification in progress.
struct Verification<'r> {
    request: &'r Request,
    interrupted: watch::Receiver<bool>,
    config: Result<Config, String>,
    findings: Vec<Finding>,
    inspection: Option<Inspection>,
    snapshot: Option<HostSnapshot>,
}

impl<'r> Verification<'r> {
    fn new(request: &'r Request, interrupted: watch::Receiver<bool>) -> Verification<'r> {
        let flags = settings::Flags {
            driver_models: request.node.driver_models.clone(),
            config: request.node.config.clone(),
            device_plugin_dir: request.node.device_plugin_dir.clone(),
        };
        let config = settings::load(&flags, &settings::ProcessEnvironment);
        Verification {
            request,
            interrupted,
            config: config.map_err(|error| cli::error_chain(&error)),
            findings: Vec::new(),
            inspection: None,
            snapshot: None,
        }
    }

    async fn run(mut self) -> Result<Report, Failure> {
        for step in [
            Step::Doctor,
            Step::Socket,
            Step::Discovery,
            Step::Events,
            Step::Kubelet,
            Step::Container,
        ] {
            let findings = match self.reason_to_skip(step) {
                Some(reason) => vec![Finding::skipped(step, reason)],
                None => self.run_step(step).await?,
            };
            self.findings.extend(findings);
        }
        let interrupted = *self.interrupted.borrow();
        Ok(Report::new(self.findings, self.inspection, self.snapshot.as_ref(), interrupted))
    }

    fn reason_to_skip(&self, step: Step) -> Option<&'static str> {
        let request = self.request;
        if *self.interrupted.borrow() {
            return Some("interrupted");
        }
        if request.skip.contains(&step) {
            return Some("skipped by --skip");
        }
        match step {
            Step::Events if request.wait_for_event.is_none() => {
                Some("not requested; use --wait-for-event SECONDS")
            }
            Step::Container if request.container.is_none() => {
                Some("not requested; use --image IMAGE")
            }
            Step::Socket | Step::Kubelet if self.directory().is_none() => {
                Some("an inventory has no kubelet; use --device-plugin-dir DIR")
            }
            _ => None,
        }
    }

    /// The kubelet's device plugin directory. An inventory has none, unless the request names one
    /// of this machine.
    fn directory(&self) -> Option<PathBuf> {
        let configured = match &self.config {
            Ok(config) => config.device_plugin_dir.clone(),
            Err(_) => self.request.node.device_plugin_dir.clone(),
        };
        let live = self.request.node.inventory.is_none();
        configured.or_else(|| live.then(default_device_plugin_dir))
    }

    fn within(&self, limit: Duration) -> Stop {
        Stop::new(&self.interrupted, limit)
    }

    async fn run_step(&mut self, step: Step) -> Result<Vec<Finding>, Failure> {
        let inventory = self.request.node.inventory.clone();
        let directory = self.directory().unwrap_or_default();
        let finding = match step {
            Step::Doctor => {
                let end = self.within(DOCTOR_LIMIT);
                let (finding, inspection) = steps::doctor::run(&self.request.node, &end).await?;
                self.inspection = inspection;
                finding
            }
            Step::Socket => steps::socket::run(&directory, &self.within(SOCKET_LIMIT)).await,
            Step::Discovery => {
                let end = self.within(DISCOVERY_LIMIT);
                let (finding, snapshot) = steps::discovery::run(inventory, &end).await;
                self.snapshot = snapshot;
                finding
            }
            Step::Events => {
                let wait = self.request.wait_for_event.unwrap_or_default();
                let end = self.within(steps::events::limit(wait));
                steps::events::run(inventory, wait, &end).await
            }
            Step::Kubelet => steps::kubelet::run(&directory, &self.within(KUBELET_LIMIT)).await,
            Step::Container => return Ok(self.containers(inventory).await),
        };
        Ok(vec![finding])
    }

    async fn containers(&self, inventory: Option<PathBuf>) -> Vec<Finding> {
        let Some(request) = &self.request.container else { return Vec::new() };
        let policy = match &self.config {
            Ok(config) => config.policy.clone(),
            Err(error) => {
                let what = "the configuration is not valid";
                return vec![Finding::failed(Step::Container, what).detail([error.clone()])];
            }
        };
        let end = self.within(steps::container::LIMIT);
        steps::container::run(request, policy, inventory, &end).await
    }
}
