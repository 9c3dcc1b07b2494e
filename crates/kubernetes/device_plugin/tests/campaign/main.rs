//! The fault campaign: repeated random faults of the plugin's kubelet and host. After each round
//! the plugin must be registered with the correct lists, and must not hold more tasks, sockets and
//! memory than before.
//!
//! The seed is always the same, so that a failure is due to the change under test.
//! `CAMPAIGN_SEED` chooses another seed, and `CAMPAIGN_ROUNDS` makes the campaign longer, as
//! `cargo xtask test campaign` does every night:
//! `CAMPAIGN_SEED=$RANDOM CAMPAIGN_ROUNDS=20000 cargo test --release -p device-plugin --test
//! campaign -- --nocapture`.
//!
//! The campaign runs in memory and with a paused clock, so a seed gives the same run each time,
//! except for the iteration order of the standard library's maps.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod memory;
#[path = "../life/plugin.rs"]
#[allow(dead_code, reason = "shared with the tests of single faults")]
mod plugin;
mod real_files;
mod simulation;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use kubelet_double::{Cleanup, KubeletOptions, Release};

use simulation::Simulation;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// The default number of rounds. The kubelet restarts about three times in each round.
const ROUNDS: u64 = 60;

/// The rounds after which buffers that grow once have reached their size.
const WARM_UP: usize = 10;

/// The number of rounds over which the minimum of the held memory is taken, because buffers come
/// and go.
const WINDOW: usize = 25;

/// By how many bytes the held memory may grow between the warm-up and the end: about a hundred for
/// each round.
const SLACK: usize = 8 * 1024;

/// The default seed, with the newest release of the kubelet.
const SEED: u64 = 2;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Held by each test, so that they run one at a time: the memory of the whole process is counted.
static SERIAL: Mutex<()> = Mutex::new(());

#[test]
fn recovers_from_random_faults() {
    if std::env::var_os("CAMPAIGN_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .init();
    }
    let _serial = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let rounds = number("CAMPAIGN_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("CAMPAIGN_SEED").unwrap_or(SEED);
    println!("CAMPAIGN_SEED={seed} CAMPAIGN_ROUNDS={rounds}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let totals = runtime.block_on(run(seed, rounds));
    println!("{totals}");
}

async fn run(seed: u64, rounds: u64) -> simulation::Totals {
    let mut rng = Rng::with_seed(seed);
    let releases = [Release::V1_26, Release::V1_36, Release::V1_37];
    let cleanups = [Cleanup::Sockets, Cleanup::EverythingButCheckpoint, Cleanup::OwnSocket];
    let mut options = KubeletOptions::default();
    options.release = releases[usize::try_from(seed % 3).unwrap()];
    options.cleanup = *rng.choice(&cleanups).unwrap();
    options.shuffled = Some(seed);
    let mut simulation = Simulation::new(options, rng).await;
    let tasks = simulation::tasks();
    let mut held = Vec::with_capacity(usize::try_from(rounds).unwrap());
    for round in 0..rounds {
        let context = || format!("CAMPAIGN_SEED={seed}, round {round}, {options:?}");
        simulation.inject_faults().await;
        simulation.heal().await;
        simulation.check(&context).await;
        simulation.reset(&context).await;
        assert_eq!(simulation::tasks(), tasks, "tasks leaked: {}", context());
        held.push(memory::held());
    }
    let [then, now] = [&held[WARM_UP..WARM_UP + WINDOW], &held[held.len() - WINDOW..]]
        .map(|rounds| rounds.iter().min().copied().unwrap());
    println!("bytes held after the warm-up {then}, at the end {now}");
    assert!(now <= then + SLACK, "memory leaked: CAMPAIGN_SEED={seed}, {options:?}");
    simulation.end().await
}

/// How long to wait for a condition. The clock is paused, so an hour of waiting takes no time.
const LIMIT: Duration = Duration::from_hours(1);
