//! No file names an address of this project below an account that anybody could register: the account
//! is a placeholder.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Where accounts are given to those who come first.
const HOSTS: [&str; 6] =
    ["github.com/", "githubusercontent.com/", "gitlab.com/", "ghcr.io/", "docker.io/", "quay.io/"];

/// Placeholders of files and tests, the account of a reader in examples, and those of other plugins.
const ACCOUNTS: [&str; 7] =
    ["OWNER", "Owner", "owner", "your-company", "aarnaud", "TensorWorks", "tensorworks"];

#[test]
fn no_address_of_this_project_can_be_registered() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut git = Command::new("git");
    // In a container, the checkout may belong to another user.
    git.current_dir(&root).args(["-c", "safe.directory=*", "ls-files", "-z"]);
    let list = String::from_utf8(git.output().unwrap().stdout).unwrap();
    let mut faults = Vec::new();
    let mut checked = 0;
    for name in list.split_terminator('\0') {
        // A file that is no text names no address.
        let text = fs::read_to_string(root.join(name)).unwrap_or_default();
        checked += addresses(&text).filter(|address| is_ours(address)).count();
        let addresses = addresses(&text).filter(|address| is_ours(address) && !is_safe(address));
        faults.extend(addresses.map(|address| format!("{name}: {address}")));
    }
    assert!(checked > 10, "only {checked} addresses");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn addresses_are_recognized() {
    let safe = "https://github.com/OWNER/directx-device-plugin and ghcr.io/owner/directx-visible:1";
    assert!(addresses(safe).all(|address| is_ours(address) && is_safe(address)));
    assert_eq!(addresses(safe).count(), 2);
    let unsafe_address = ["github.com", "directx-project/plugin"].join("/");
    assert!(addresses(&unsafe_address).all(|address| is_ours(address) && !is_safe(address)));
    assert!(!addresses("https://github.com/kubernetes/kubernetes").any(is_ours));
}

/// What follows the host in each address.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    HOSTS.iter().flat_map(move |host| text.match_indices(host)).map(move |(start, host)| {
        let rest = &text[start + host.len()..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())]
    })
}

fn is_ours(address: &str) -> bool {
    address.contains("directx-")
}

fn is_safe(address: &str) -> bool {
    ACCOUNTS.contains(&address.split('/').next().unwrap_or_default())
}
