//! Tests of `cargo xtask image` with other people's tools: a registry, skopeo, containerd
//! and readers of registry hives.
//!
//! Everything listens on the loopback interface. The tests start the daemons on free ports
//! with folders of their own, and stop them.

mod base_image;
mod build;
mod containerd;
mod content;
mod daemon;
mod faulty_registry;
mod push;
mod push_faults;
mod registry;
mod skopeo;
mod test_case;
mod tools;

use std::time::Instant;

use anyhow::{Result, bail};

use self::build::Builds;
use self::test_case::{Context, TestCase};
use self::tools::Tools;

/// Runs every test, and prints a line for each.
pub(crate) fn check() -> Result<()> {
    let context = Context { tools: Tools::ready()?, builds: Builds::create()? };
    let tests: Vec<TestCase> =
        [content::tests(), push::tests(), push_faults::tests(), base_image::tests()]
            .into_iter()
            .flatten()
            .collect();
    let mut failed = 0;
    for test in &tests {
        let start = Instant::now();
        let result = (test.run)(&context);
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!("{verdict:<7} {:<58} {:>5.1} s", test.name, start.elapsed().as_secs_f64());
        if let Err(error) = result {
            failed += 1;
            println!("{error:#}");
        }
    }
    if failed > 0 {
        bail!("{failed} of {} tests failed", tests.len());
    }
    println!("{} passed", tests.len());
    Ok(())
}
