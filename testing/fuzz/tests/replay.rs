//! Every target with its seeds, and with the same generated inputs in each run.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// How many inputs are generated for each target.
const CASES: u32 = 512;

macro_rules! targets {
    ($($target:ident),*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target), fuzz::$target::check);
        })*

        #[test]
        fn every_target_is_replayed() {
            let programs = fs::read_dir(folder("src/bin")).unwrap().count();
            assert_eq!(programs, [$(stringify!($target)),*].len());
        }
    };
}

targets!(allocations, configurations, inventories, messages, paths, replica_ids, windows_data);

fn replay(name: &str, check: fn(&[u8])) {
    let mut seeds = files(&format!("seeds/{name}"));
    if name == "inventories" {
        seeds.extend(files("../../fixtures/inventories"));
        seeds.extend(files("../../fixtures/inventories/generated"));
    }
    for seed in &seeds {
        check(seed);
    }
    seeds.push(Vec::new());
    let changes = vec((any::<Index>(), 0..3_usize, any::<u8>()), 1..16);
    let inputs = prop_oneof![
        (select(seeds), changes).prop_map(|(seed, changes)| changes.into_iter().fold(seed, change)),
        vec(any::<u8>(), 0..512),
    ];
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let checked = runner.run(&inputs, |input| {
        check(&input);
        Ok(())
    });
    checked.unwrap();
}

/// Replaces, inserts or removes one byte.
fn change(mut input: Vec<u8>, (at, action, byte): (Index, usize, u8)) -> Vec<u8> {
    let at = at.index(input.len() + 1);
    let end = (at + usize::from(action != 1)).min(input.len());
    input.splice(at..end, (action != 2).then_some(byte));
    input
}

/// The contents of the files in a folder of this crate. Some targets have no seeds.
fn files(name: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder(name)).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
