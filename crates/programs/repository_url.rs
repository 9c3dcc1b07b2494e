//! Sets the variable `REPOSITORY_URL` for a package whose programs print addresses of pages. Build
//! scripts include this file.
//!
//! `cargo xtask image` and `cargo xtask release` set it to the repository that they build for.
//! Otherwise it is `repository` in `Cargo.toml`.

use std::env;

pub(crate) fn set() {
    println!("cargo::rerun-if-env-changed=REPOSITORY_URL");
    let given = env::var("REPOSITORY_URL");
    let url = given.unwrap_or_else(|_| env!("CARGO_PKG_REPOSITORY").to_owned());
    println!("cargo::rustc-env=REPOSITORY_URL={url}");
}
