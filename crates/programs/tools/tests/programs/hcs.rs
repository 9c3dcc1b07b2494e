//! `query-hcs-capabilities`.

use crate::fixtures::{MadeUp, inventories, inventory};
use crate::outcome::{Outcome, QUERY_HCS_CAPABILITIES, program};

fn query(arguments: &[&str]) -> Outcome {
    Outcome::of(&mut program(QUERY_HCS_CAPABILITIES, arguments))
}

#[test]
fn output_equals_the_published_output() {
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
fn every_inventory_is_printed_in_both_formats() {
    for (name, path) in inventories() {
        for format in ["text", "json"] {
            let outcome = query(&["--output", format, "--inventory", path.to_str().unwrap()]);
            assert_eq!(outcome.code, Some(0), "{name}: {outcome}");
            // The text is the published one.
            if (name.as_str(), format) == ("aws-t4-two", "json") {
                insta::assert_snapshot!("hcs_aws-t4-two_json", outcome);
            }
        }
    }
}

#[test]
fn an_inventory_without_schemas_is_an_error() {
    let host = MadeUp::new(" []");
    let outcome = query(&["--inventory", host.path().to_str().unwrap()]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert_eq!(outcome.stderr, "error: the host has no HCS schema version\n");
}

#[cfg(not(windows))]
#[test]
fn other_systems_need_an_inventory() {
    let outcome = query(&[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        outcome.stderr,
        "error: the Host Compute Service is available only on Windows\n\
         hint: use `--inventory FILE` with a file that `directx-device-plugin record` wrote on \
         Windows\n"
    );
}
