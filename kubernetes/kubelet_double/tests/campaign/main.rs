//! The fault campaign: everything that can go wrong between a plugin and its kubelets,
//! at random and over and over. After each round of it the plugin must be registered,
//! with the right lists, and hold no more tasks, sockets and memory than before.
//!
//! Each run prints its seed. `CAMPAIGN_SEED` plays one again, and `CAMPAIGN_ROUNDS` makes
//! a run longer: `CAMPAIGN_ROUNDS=20000 cargo test --release -p kubelet_double --test
//! campaign -- --nocapture`. It runs in memory and on a clock that stands still, so a
//! seed gives the same run each time, less what the standard library's maps do.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod memory;
#[path = "../life/plugin.rs"]
#[allow(dead_code, reason = "shared with the tests of single faults")]
mod plugin;
#[cfg(unix)]
mod real_files;
mod trouble;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kubelet_double::{Cleanup, Iteration, Options, Platform, Release, Rng};

use trouble::World;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Rounds of a run that is not asked to be longer. The kubelet starts again about three
/// times in each.
const ROUNDS: u64 = 100;

/// Rounds after which everything that grows once has grown.
const WARM_UP: usize = 10;

/// How many rounds are looked at for the least that was held: buffers come and go.
const WINDOW: usize = 25;

/// What may be held more at the end than after the warm-up, in bytes: about a hundred for
/// each round between the two.
const SLACK: usize = 8 * 1024;

/// Seeds that are always run; each release of the kubelet is among them.
const SEEDS: [u64; 3] = [1, 2, 3];

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// A seed that was not used before.
fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// One test at a time: what the process holds is counted.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn nothing_is_lost_whatever_goes_wrong() {
    if std::env::var_os("CAMPAIGN_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .init();
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let rounds = number("CAMPAIGN_ROUNDS").unwrap_or(ROUNDS);
    let seeds = match number("CAMPAIGN_SEED") {
        Some(seed) => vec![seed],
        None => SEEDS.into_iter().chain([fresh_seed()]).collect(),
    };
    for seed in seeds {
        println!("CAMPAIGN_SEED={seed} CAMPAIGN_ROUNDS={rounds}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let totals = runtime.block_on(run(seed, rounds));
        println!("{totals}");
    }
}

async fn run(seed: u64, rounds: u64) -> trouble::Totals {
    let mut rng = Rng::new(seed);
    let releases = [Release::V1_26, Release::V1_36, Release::V1_37];
    let cleanups = [Cleanup::Sockets, Cleanup::EverythingButCheckpoint, Cleanup::OwnSocket];
    let options = Options {
        release: releases[usize::try_from(seed % 3).unwrap()],
        cleanup: *rng.pick(&cleanups).unwrap(),
        platform: Platform::Windows,
        iteration: Iteration::Shuffled(seed),
    };
    let mut world = World::new(options, rng).await;
    let tasks = trouble::tasks();
    let mut held = Vec::with_capacity(usize::try_from(rounds).unwrap());
    for round in 0..rounds {
        let context = || format!("CAMPAIGN_SEED={seed}, round {round}, {options:?}");
        world.trouble().await;
        world.heal().await;
        world.check(&context).await;
        world.rest(&context).await;
        assert_eq!(trouble::tasks(), tasks, "tasks were left behind: {}", context());
        held.push(memory::held());
    }
    let [then, now] = [&held[WARM_UP..WARM_UP + WINDOW], &held[held.len() - WINDOW..]]
        .map(|rounds| rounds.iter().min().copied().unwrap());
    println!("bytes held after the warm-up {then}, at the end {now}");
    assert!(now <= then + SLACK, "memory was left behind: CAMPAIGN_SEED={seed}, {options:?}");
    world.end().await
}

/// The clock stands still, so an hour of waiting costs nothing.
const PATIENCE: Duration = Duration::from_secs(3600);
