//! What a report contains, in every format.

use devices::HostSnapshot;
use doctor::{Check, Inspection};

use super::node::{DeviceSummary, Versions};
use crate::step::{Finding, Outcome};

pub(super) struct Contents {
    pub(super) versions: Versions,
    pub(super) devices: Vec<DeviceSummary>,
    pub(super) findings: Vec<Finding>,
    pub(super) checks: Vec<Check>,
    pub(super) interrupted: bool,
}

impl Contents {
    pub(super) fn new(
        findings: Vec<Finding>,
        inspection: Option<Inspection>,
        snapshot: Option<&HostSnapshot>,
        interrupted: bool,
    ) -> Contents {
        let read = snapshot.or(inspection.as_ref().and_then(|i| i.adapters.as_ref()));
        Contents {
            versions: Versions::of(inspection.as_ref(), read),
            devices: read.map(DeviceSummary::all).unwrap_or_default(),
            findings,
            checks: inspection.map(|inspection| inspection.checks).unwrap_or_default(),
            interrupted,
        }
    }

    /// "1 failed, 0 warning, 3 ok, 2 skipped".
    pub(super) fn counts(&self) -> String {
        let count = |outcome: Outcome| format!("{} {}", self.count(outcome), outcome.name());
        Outcome::ALL.map(count).join(", ")
    }

    pub(super) fn count(&self, outcome: Outcome) -> usize {
        self.findings.iter().filter(|finding| finding.outcome == outcome).count()
    }
}
