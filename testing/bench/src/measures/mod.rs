//! The measurements, in groups, and their budgets.

mod calls;
mod changes;
mod decisions;
mod fleet;
mod idle;
mod restarts;
mod scrape;
mod size;
mod startup;

use anyhow::{Context, Result};
use strum::{IntoStaticStr, VariantArray};

use crate::group::{Effort, Group};
use crate::programs;

/// A group of measurements, in the order of the report.
#[derive(IntoStaticStr, VariantArray, Clone, Copy, PartialEq, Eq, Debug)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Measure {
    Size,
    Startup,
    Calls,
    Changes,
    Restarts,
    Idle,
    Decisions,
    Scrape,
    Fleet,
}

impl Measure {
    /// The group with this name.
    pub(crate) fn named(name: &str) -> Result<Measure> {
        let names = Measure::VARIANTS.iter().map(<&str>::from).collect::<Vec<_>>().join(", ");
        let found = Measure::VARIANTS.iter().find(|measure| <&str>::from(*measure) == name);
        found.copied().with_context(|| format!("unknown group `{name}`, expected one of: {names}"))
    }

    /// Builds what the group needs, and runs its measurements.
    pub(crate) async fn run(self, effort: Effort) -> Result<Group> {
        let plugin = || programs::release("plugin", "directx-device-plugin");
        match self {
            Measure::Size => {
                size::measure(&plugin()?, &programs::release("gpu_probe", "gpu-probe")?)
            }
            Measure::Startup => startup::measure(&plugin()?, effort).await,
            Measure::Calls => calls::measure(&plugin()?, effort).await,
            Measure::Changes => changes::measure(&plugin()?, effort).await,
            Measure::Restarts => restarts::measure(&plugin()?, effort).await,
            Measure::Idle => idle::measure(&plugin()?, effort).await,
            Measure::Decisions => decisions::measure(effort),
            Measure::Scrape => scrape::measure(&plugin()?, effort).await,
            Measure::Fleet => fleet::measure(&programs::fleet_figures(effort)?),
        }
    }
}
