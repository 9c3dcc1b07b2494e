//! What can happen to a node.

use fastrand::Rng;

use crate::node::{CONFIGURATIONS, Node};

/// Something that happens to a node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    /// The host has this adapter, or no longer.
    Plug(usize, bool),
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
    /// The plugin is killed or started.
    Plugin(bool),
    /// The plugin hangs, or goes on.
    Hang(bool),
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
        match rng.u32(..24) {
            0..=3 => Step::Plug(rng.usize(..adapters), rng.u32(..3) > 0),
            4..=5 => Step::Problem(rng.usize(..adapters), if rng.bool() { 43 } else { 0 }),
            6..=8 => Step::Configure(rng.usize(..CONFIGURATIONS.len())),
            9..=10 => Step::Cordon((0..adapters).filter(|_| rng.u32(..3) == 0).collect()),
            11..=12 => Step::StartPod(rng.usize(..8)),
            13 => Step::EndPod,
            14..=15 => Step::Plugin(rng.u32(..3) > 0),
            16 => Step::Hang(rng.bool()),
            17 => Step::Discovery(rng.u32(..3) > 0),
            18..=19 => Step::Kubelet(rng.u32(..3) > 0),
            20 => Step::ApiServer(rng.u32(..3) > 0),
            21 => Step::Spoil,
            22 => Step::Wait(rng.u64(..600)),
            _ => Step::RepairEverything,
        }
    }
}
