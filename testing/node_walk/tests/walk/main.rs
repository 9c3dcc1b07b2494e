//! A random walk over a node, with the daemon, a kubelet, feature discovery and an API server in
//! one process and on a paused clock.
//!
//! GPUs come, go, fail and change their driver model, the configuration changes, devices are cordoned, pods come and go, and
//! each of the programs is killed, hangs and starts again. At rest, everything that says which
//! devices the node has must agree: what the kubelet can allocate, the plugin's status, its
//! metrics, the labels and conditions of the node, and what the same host and configuration give
//! without a past.
//!
//! `NODE_WALK_SEED=N` repeats one walk, `NODE_WALK_SEEDS=N` sets how many there are.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up should panic")]

mod checks;
mod node;
mod steps;

use std::time::Duration;

use fastrand::Rng;
use tokio::time::sleep;

use crate::node::Node;
use crate::steps::Step;

/// How many walks there are, unless a variable says otherwise.
const SEEDS: u64 = 6;

/// How many steps a walk has.
const STEPS: usize = 40;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

#[test]
fn everything_that_says_which_devices_a_node_has_agrees() {
    let seeds = match variable("NODE_WALK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("NODE_WALK_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let mut taken = Vec::new();
        if let Err(difference) = runtime.block_on(walk(seed, &mut taken)) {
            let steps: Vec<String> = taken.iter().map(|step| format!("  {step:?}\n")).collect();
            panic!("seed {seed}:\n{}{difference}", steps.concat());
        }
    }
}

/// Takes the steps of this seed, and returns what does not agree at rest.
async fn walk(seed: u64, taken: &mut Vec<Step>) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    // As many walks have one plugin for both driver models as one for each.
    let mut node = Node::start(seed % 2 == 1).await;
    for _ in 0..STEPS {
        let step = Step::random(&mut rng, &node);
        taken.push(step.clone());
        node.take(step).await;
        // The next step may come before everything has reacted to this one.
        if rng.u32(..3) > 0 {
            sleep(Duration::from_millis(rng.u64(..3000))).await;
            node.pass(Duration::ZERO).await;
        } else {
            node.rest().await;
            node.check()?;
        }
    }
    // A walk seldom rests while a device that has changed its driver model is listed twice.
    let last = [
        Step::RepairEverything,
        Step::Plug(1, true),
        Step::Problem(1, 0),
        Step::Mode(1, false),
        Step::Mode(1, true),
    ];
    for step in last {
        taken.push(step.clone());
        node.take(step).await;
        node.rest().await;
        node.check()?;
    }
    Ok(())
}
