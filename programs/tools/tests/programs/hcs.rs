//! `query-hcs-capabilities`.

use crate::fixtures::{MadeUp, inventories, inventory};
use crate::outcome::{Outcome, QUERY_HCS_CAPABILITIES, program};

fn query(arguments: &[&str]) -> Outcome {
    Outcome::of(&mut program(QUERY_HCS_CAPABILITIES, arguments))
}

#[test]
fn the_published_output_is_given_to_the_letter() {
    let host = inventory("aws-t4-two.yaml");
    let outcome = query(&["--inventory", host.to_str().unwrap()]);
    let published = "Operating system version:\n\
                     Microsoft Windows Server 2022 Datacenter, version 21H2 (OS build 10.0.20348.1547)\n\
                     \n\
                     Supported HCS schema versions:\n\
                     - 2.5\n";
    assert_eq!(outcome.stdout, published);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

#[test]
fn every_recorded_host_is_told_in_both_forms() {
    for (name, path) in inventories() {
        for form in ["text", "json"] {
            let outcome = query(&["--output", form, "--inventory", path.to_str().unwrap()]);
            insta::assert_snapshot!(format!("hcs_{name}_{form}"), outcome);
        }
    }
}

#[test]
fn a_recording_without_schemas_fails_in_one_line() {
    let host = MadeUp::new(" []");
    let outcome = query(&["--inventory", host.path().to_str().unwrap()]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert_eq!(outcome.stderr, "error: the inventory records no HCS schema version\n");
}

#[cfg(not(windows))]
#[test]
fn elsewhere_than_on_windows_one_line_says_so() {
    let outcome = query(&[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert_eq!(outcome.stderr, "error: only Windows has a Host Compute Service to ask\n");
}
