//! Tries what the daemon needs, one step after the other.

mod container;
mod discovery;
mod events;
mod kubelet;
mod socket;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use config::{Config, ConfigError};
use futures_util::FutureExt as _;
use host::HostSnapshot;
use strum::VariantArray as _;
use tokio::sync::watch;

use crate::finding::{Finding, Status, counts};
use crate::output::Report;
use crate::request::Request;
use crate::step::Step;
use crate::stop::{PANICKED, Stop};
use crate::{collect, evaluate};

/// Looks at a node and tries it. When `interrupt` completes, the step that runs cleans up and ends,
/// and the others are skipped.
pub(crate) async fn attempt(
    request: &Request,
    interrupt: impl Future<Output = &'static str> + Send + 'static,
) -> Report {
    let (interrupted, interruption) = watch::channel(false);
    tokio::spawn(async move {
        let signal = interrupt.await;
        tracing::warn!(signal, "interrupted; removing what was created");
        interrupted.send_replace(true);
    });
    let config = request.configuration();
    let attempt = Attempt {
        request,
        interrupted: interruption,
        directory: request.directory(config.as_ref().ok()),
        config,
        checks: Vec::new(),
        snapshot: None,
    };
    attempt.run().await
}

struct Attempt<'r> {
    request: &'r Request,
    interrupted: watch::Receiver<bool>,
    config: Result<Config, ConfigError>,
    /// The kubelet's device plugin directory.
    directory: Option<PathBuf>,
    checks: Vec<Finding>,
    snapshot: Option<HostSnapshot>,
}

impl Attempt<'_> {
    /// Runs each step within its limit in seconds: a program or driver of the node may hang.
    async fn run(mut self) -> Report {
        let mut findings = Vec::new();
        for &step in Step::VARIANTS {
            if let Some(reason) = self.reason_to_skip(step) {
                findings.push(step.skipped(reason));
                continue;
            }
            let seconds = match step {
                Step::Doctor => 120,
                Step::Socket => 15,
                Step::Discovery => 60,
                Step::Events => 60 + self.request.wait_for_event.unwrap_or_default(),
                Step::Kubelet => 30,
                Step::Container => container::SECONDS,
            };
            let stop = Stop::new(&self.interrupted, Duration::from_secs(seconds));
            let ended = AssertUnwindSafe(self.run_step(step, &stop)).catch_unwind().await;
            let found = ended.unwrap_or_else(|_panic| Err(anyhow!(PANICKED)));
            findings.extend(found.unwrap_or_else(|error| vec![step.error(&error)]));
        }
        Report {
            snapshot: self.snapshot.unwrap_or_default(),
            checks: self.checks,
            steps: Some(findings),
            interrupted: *self.interrupted.borrow(),
        }
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
            Step::Container if request.image.is_none() => Some("not requested; use --image IMAGE"),
            Step::Socket | Step::Kubelet if self.directory.is_none() => {
                Some("an inventory has no kubelet; use --device-plugin-dir DIR")
            }
            Step::Kubelet if !device_plugin::unix_sockets::is_supported() => {
                Some("this host does not support AF_UNIX sockets")
            }
            _ => None,
        }
    }

    async fn run_step(&mut self, which: Step, stop: &Stop) -> anyhow::Result<Vec<Finding>> {
        let inventory = self.request.input.inventory.clone();
        let directory = self.directory.as_deref().unwrap_or("".as_ref());
        let finding = match which {
            Step::Doctor => self.look(stop).await,
            Step::Socket => socket::run(directory, stop).await,
            Step::Discovery => {
                let (finding, snapshot) = discovery::run(inventory, stop).await?;
                self.snapshot.get_or_insert(snapshot);
                Ok(finding)
            }
            Step::Events => {
                let wait = Duration::from_secs(self.request.wait_for_event.unwrap_or_default());
                events::run(inventory, wait, stop).await
            }
            Step::Kubelet => kubelet::run(directory, stop).await,
            Step::Container => {
                return container::run(self.request, self.config.as_ref(), stop).await;
            }
        };
        Ok(vec![finding?])
    }

    async fn look(&mut self, stop: &Stop) -> anyhow::Result<Finding> {
        let request = self.request.clone();
        let collected = stop.or_on_thread(move || collect::collect(&request)).await?;
        let facts = collected.map_err(|failure| anyhow!(failure.chain()))?;
        self.checks = evaluate::evaluate(&facts);
        self.snapshot = Some(facts.snapshot);
        let [problems, warnings, ok, unchecked] = counts(&self.checks);
        let (status, what) = match (problems, warnings) {
            (0, 0) => (Status::Ok, "no problem found"),
            (0, _) => (Status::Warning, "warnings found"),
            _ => (Status::Failed, "problems found"),
        };
        let bad = self.checks.iter().filter(|check| check.status >= Status::Warning);
        let lines = bad.map(|check| {
            format!("{}: {}: {}", check.status.verdict(), check.name, check.sentence())
        });
        let finding = Step::Doctor.finding(status, what).detail(lines);
        Ok(finding.measured([
            ("problems", problems.into()),
            ("warnings", warnings.into()),
            ("ok", ok.into()),
            ("notChecked", unchecked.into()),
        ]))
    }
}

/// The last lines of a program's output, which a report contains.
fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(20)..].iter().map(ToString::to_string).collect()
}
