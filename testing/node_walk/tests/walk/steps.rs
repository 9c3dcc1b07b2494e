//! What can happen to a node.

use fastrand::Rng;

use crate::node::{CONFIGURATIONS, Node};

/// Something that happens to a node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    /// The host has this adapter, or no longer.
    Plug(usize, bool),
    /// The device of this adapter is in MCDM mode, or in WDDM mode.
    Mode(usize, bool),
    /// Windows reports this problem code for the device of this adapter.
    Problem(usize, u32),
    /// This is the configuration.
    Configure(usize),
    /// The annotation of the node takes the devices of these adapters out of service.
    Cordon(Vec<usize>),
    /// A pod requests a device of this resource; the number chooses one.
    StartPod(usize),
    /// The pod that runs longest ends.
    EndPod,
    /// This plugin is killed or started.
    Plugin(usize, bool),
    /// This plugin hangs, or goes on.
    Hang(usize, bool),
    /// Feature discovery is killed or started.
    Discovery(bool),
    /// The kubelet is killed or started.
    Kubelet(bool),
    /// The API server ends or starts.
    ApiServer(bool),
    /// Another program removes labels and conditions of the node.
    Spoil,
    /// Time passes.
    Wait(u64),
    /// Every program runs.
    RepairEverything,
}

impl Step {
    pub(crate) fn random(rng: &mut Rng, node: &Node) -> Step {
        let adapters = node.adapters();
        let plugin = rng.usize(..node.plugins.len());
        match rng.u32(..29) {
            0..=3 => Step::Plug(rng.usize(..adapters), rng.u32(..3) > 0),
            4..=5 => Step::Problem(rng.usize(..adapters), if rng.bool() { 43 } else { 0 }),
            6..=8 => Step::Configure(configuration(rng, node)),
            9..=10 => Step::Cordon((0..adapters).filter(|_| rng.u32(..3) == 0).collect()),
            11..=12 => Step::StartPod(rng.usize(..8)),
            13 => Step::EndPod,
            14..=15 => Step::Plugin(plugin, rng.u32(..3) > 0),
            16 => Step::Hang(plugin, rng.bool()),
            17 => Step::Discovery(rng.u32(..3) > 0),
            18..=19 => Step::Kubelet(rng.u32(..3) > 0),
            20 => Step::ApiServer(rng.u32(..3) > 0),
            21 => Step::Spoil,
            22 => Step::Wait(rng.u64(..600)),
            23..=27 => Step::Mode(rng.usize(..adapters), rng.bool()),
            _ => Step::RepairEverything,
        }
    }
}

/// The number of a configuration. Two plugins get none with rules: a rule for both driver models is
/// served by the plugin that comes first, and the other one waits.
fn configuration(rng: &mut Rng, node: &Node) -> usize {
    let has_rules = |number: &usize| CONFIGURATIONS[*number].contains("resources:");
    let numbers = 0..CONFIGURATIONS.len();
    let allowed: Vec<usize> =
        numbers.filter(|number| node.plugins.len() == 1 || !has_rules(number)).collect();
    allowed[rng.usize(..allowed.len())]
}
