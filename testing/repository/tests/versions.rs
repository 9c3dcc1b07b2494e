//! Every program, log and metric has the version of `devices`, which names the commit in a build of the
//! main branch. That of a package does not.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::fs;
use std::path::Path;

use walkdir::WalkDir;

#[test]
fn only_one_place_reads_the_version_of_the_package() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let files = WalkDir::new(&crates).into_iter().map(|entry| entry.unwrap().into_path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut uses = Vec::new();
    let mut programs = 0;
    for path in sources.filter(|path| !path.components().any(|part| part.as_os_str() == "tests")) {
        let text = fs::read_to_string(&path).unwrap();
        let commands = text.lines().filter(|line| line.trim().starts_with("#[command("));
        programs += commands.clone().filter(|line| line.contains("version = devices::")).count();
        // clap reads the version of the package by itself.
        let mut commands = commands.flat_map(|line| line.split(['(', ')', ',']));
        let is_default = commands.any(|option| option.trim() == "version");
        if is_default || text.contains("CARGO_PKG_VERSION") {
            uses.push(path.strip_prefix(&crates).unwrap().to_owned());
        }
    }
    assert_eq!(uses, [Path::new("core/devices/src/lib.rs")]);
    assert!(programs > 4, "{programs} programs have a version");
}
