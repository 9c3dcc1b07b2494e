//! Sets the variable `PAGES` for a package whose programs name pages: what comes before `docs/`.
//! Build scripts include this file.
//!
//! `cargo xtask image` and `cargo xtask release` set `REPOSITORY_URL` to the repository that they
//! build for, and the programs print addresses there. Other programs print the path in the
//! repository, because anybody could register an address that is guessed.

use std::env;

pub(crate) fn set() {
    println!("cargo::rerun-if-env-changed=REPOSITORY_URL");
    let pages = env::var("REPOSITORY_URL").map(|url| format!("{url}/blob/main/"));
    println!("cargo::rustc-env=PAGES={}", pages.unwrap_or_default());
}
