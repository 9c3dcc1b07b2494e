//! Tries what the daemon needs, one step after the other.

mod container;
mod daemons;
mod differences;
mod discovery;
mod events;
mod kubelet;
mod socket;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use config::Config;
use devices::HostSnapshot;
use node::cli::Failure;
use tokio::sync::watch;

use crate::doctor::facts::NodeFacts;
use crate::doctor::finding::{Finding, Status, Subject, Value, count};
use crate::doctor::report::Report;
use crate::doctor::request::{Request, Step};
use crate::doctor::stop::Stop;
use crate::doctor::{collect, evaluate};

/// The longest that each step may take. A live host has programs that may hang.
const DOCTOR_LIMIT: Duration = Duration::from_secs(120);
const SOCKET_LIMIT: Duration = Duration::from_secs(15);
const DISCOVERY_LIMIT: Duration = Duration::from_secs(60);
const KUBELET_LIMIT: Duration = Duration::from_secs(30);
const DAEMONS_LIMIT: Duration = Duration::from_secs(60);

/// Looks at a node and tries it. When `interrupt` completes, the step that runs cleans up and ends,
/// and the others are skipped.
///
/// # Errors
/// The inventory cannot be read, or there is none and this host has no DirectX devices.
pub(crate) async fn attempt(
    request: &Request,
    interrupt: impl Future<Output = &'static str>,
) -> Result<Report, Failure> {
    let inventory = request.input.inventory.as_deref();
    // A Windows host that cannot be read is a finding.
    if inventory.is_some() || !cfg!(windows) {
        node::cli::open_host(inventory)?;
    }
    let (interrupted, interruption) = watch::channel(false);
    let mut interrupt = pin!(interrupt);
    let mut steps = pin!(Attempt::new(request, interruption).run());
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

/// An attempt in progress.
struct Attempt<'r> {
    request: &'r Request,
    interrupted: watch::Receiver<bool>,
    config: Result<Config, Failure>,
    /// The kubelet's device plugin directory.
    directory: Option<PathBuf>,
    checks: Vec<Finding>,
    snapshot: Option<HostSnapshot>,
}

impl<'r> Attempt<'r> {
    fn new(request: &'r Request, interrupted: watch::Receiver<bool>) -> Attempt<'r> {
        let config = request.configuration();
        Attempt {
            request,
            interrupted,
            directory: request.directory(config.as_ref().ok()),
            config,
            checks: Vec::new(),
            snapshot: None,
        }
    }

    async fn run(mut self) -> Result<Report, Failure> {
        let mut findings = Vec::new();
        for (step, subject) in [
            (Step::Doctor, Subject("doctor")),
            (Step::Socket, socket::SUBJECT),
            (Step::Discovery, discovery::SUBJECT),
            (Step::Events, events::SUBJECT),
            (Step::Kubelet, Subject::KUBELET),
            (Step::Daemons, daemons::SUBJECT),
            (Step::Container, container::SUBJECT),
        ] {
            match self.reason_to_skip(step) {
                Some(reason) => findings.push(subject.skipped(reason)),
                None => findings.extend(self.run_step(step, subject).await?),
            }
        }
        let interrupted = *self.interrupted.borrow();
        let report = Report::new(self.snapshot, self.checks);
        Ok(report.tried(findings, interrupted))
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
            Step::Daemons if !request.daemons => Some("not requested; use --daemons"),
            Step::Container if request.image.is_none() => Some("not requested; use --image IMAGE"),
            Step::Socket | Step::Kubelet if self.directory.is_none() => {
                Some("an inventory has no kubelet; use --device-plugin-dir DIR")
            }
            _ => None,
        }
    }

    async fn run_step(&mut self, which: Step, subject: Subject) -> Result<Vec<Finding>, Failure> {
        let within = |limit| Stop::new(&self.interrupted, limit);
        let inventory = self.request.input.inventory.clone();
        let directory = self.directory.as_deref().unwrap_or("".as_ref());
        let finding = match which {
            Step::Doctor => {
                let request = self.request.clone();
                let stop = within(DOCTOR_LIMIT);
                match stop.or_on_thread(move || collect::collect(&request)).await {
                    Ok(facts) => self.looked(subject, facts?),
                    Err(reason) => subject.unfinished(reason),
                }
            }
            Step::Socket => socket::run(directory, &within(SOCKET_LIMIT)).await,
            Step::Discovery => {
                let stop = within(DISCOVERY_LIMIT);
                let (finding, snapshot) = discovery::run(inventory, &stop).await;
                self.snapshot = self.snapshot.take().or(snapshot);
                finding
            }
            Step::Events => {
                let wait = self.request.event_wait().unwrap_or_default();
                events::run(inventory, wait, &within(events::limit(wait))).await
            }
            Step::Kubelet => kubelet::run(directory, &within(KUBELET_LIMIT)).await,
            Step::Daemons => daemons::run(inventory.as_deref(), &within(DAEMONS_LIMIT)).await,
            Step::Container => {
                let (request, config) = (self.request, self.config.as_ref());
                return Ok(container::run(request, config, within(container::LIMIT)).await);
            }
        };
        Ok(vec![finding])
    }

    /// What the step `doctor` found.
    fn looked(&mut self, subject: Subject, facts: NodeFacts) -> Finding {
        self.checks = evaluate::evaluate(&facts);
        self.snapshot = Some(facts.snapshot);
        let count = |status| count(&self.checks, status);
        let (problems, warnings) = (count(Status::Failed), count(Status::Warning));
        let (status, what) = match (problems, warnings) {
            (0, 0) => (Status::Ok, "no problem found"),
            (0, _) => (Status::Warning, "warnings found"),
            _ => (Status::Failed, "problems found"),
        };
        let bad = self.checks.iter().filter(|check| check.status >= Status::Warning);
        subject
            .finding(status, what)
            .measured([
                ("problems", Value::Count(problems)),
                ("warnings", Value::Count(warnings)),
                ("ok", Value::Count(count(Status::Ok))),
                ("notChecked", Value::Count(count(Status::Skipped))),
            ])
            .detail(bad.map(crate::doctor::report::line))
    }
}
