//! What the commands print, and how wrong usage is told.

use std::process::Stdio;

use crate::harness::{outcome, program, recorded, recordings};

/// Without the log, and with the folder of the recordings left out.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let output = program().args(["--log-level", "error"]).args(words).output().unwrap();
    let (status, out, err) = outcome(&output);
    let folder = recorded("").display().to_string();
    (status, out, err.replace(&folder, "FIXTURES/"))
}

#[test]
fn devices_are_listed_for_people_and_for_programs() {
    for name in recordings() {
        let path = recorded(&name).display().to_string();
        for form in ["text", "json"] {
            let (status, out, err) = run(&["devices", "--inventory", &path, "--output", form]);
            assert_eq!((status, err.as_str()), (Some(0), ""));
            insta::assert_snapshot!(format!("devices-{name}-{form}"), out);
        }
    }
}

#[test]
fn simulations_are_told_in_words() {
    for name in recordings() {
        let path = recorded(&name).display().to_string();
        let (status, out, err) = run(&["simulate", "--inventory", &path]);
        assert_eq!((status, err.as_str()), (Some(0), ""));
        insta::assert_snapshot!(format!("simulate-{name}"), out);
    }
}

#[test]
fn with_nothing_given_two_gpus_meet_three_pods() {
    let (status, out, _) = run(&["simulate"]);
    assert_eq!(status, Some(0));
    let verdicts: Vec<&str> = out.lines().filter(|line| line.starts_with("pod ")).collect();
    assert_eq!(
        verdicts,
        [
            "pod pod-1 asks for 1 of directx.microsoft.com/display: admitted",
            "pod pod-2 asks for 1 of directx.microsoft.com/display: admitted",
            "pod pod-3 asks for 1 of directx.microsoft.com/display: refused",
        ]
    );
}

#[test]
fn what_is_recorded_reads_back_the_same() {
    for name in recordings() {
        let path = recorded(&name);
        let (status, out, _) = run(&["record", "--inventory", &path.display().to_string()]);
        assert_eq!(status, Some(0));
        let again = inventory::parse("again", &out).unwrap();
        assert_eq!(again, inventory::read(&path).unwrap());
    }
}

#[test]
fn wrong_usage_exits_2_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.yaml");
    std::fs::write(&broken, "schema: directx-inventory/v1\nadapters:\n- luid: seven\n").unwrap();
    let broken = broken.display().to_string();
    let t4 = recorded("aws-t4-two.yaml").display().to_string();
    let cases: &[&[&str]] = &[
        &["serve"],
        &["devices"],
        &["record"],
        &["devices", "--filter", "gpus", "--inventory", &t4],
        &["devices", "--inventory", "/no/such/file.yaml"],
        &["simulate", "--inventory", &broken],
        &["simulate", "--pod", "x"],
        &["simulate", "--pod", "x=directx.microsoft.com/display:0"],
        &["simulate", "--pod", "x=gpu:1"],
        &["simulate", "--driver-model", "vulkan"],
        &["simulate", "--driver-model", "legacy", "--driver-model", "wddm"],
        &["simulate", "--config", "/no/such/config.yaml"],
    ];
    for words in cases {
        let (status, out, err) = run(words);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{words:?}: {err}");
        let told = err.replace(&folder.path().display().to_string(), "FOLDER");
        let name = words.join(" ").replace(&folder.path().display().to_string(), "FOLDER");
        let name = name.replace(&recorded("").display().to_string(), "FIXTURES/");
        insta::with_settings!({description => name.clone(), omit_expression => true}, {
            let id = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            insta::assert_snapshot!(format!("wrong-{id}"), told);
        });
    }
}

#[test]
fn configuration_variables_that_are_wrong_are_named() {
    let t4 = recorded("aws-t4-two.yaml").display().to_string();
    for (name, value) in [
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", "relative.yaml"),
        ("WDDM_DEVICE_PLUGIN_CONFIG_FILE", "/no/such/file.yaml"),
        ("MCDM_DEVICE_PLUGIN_MULTITENANCY", "-1"),
        ("WDDM_DEVICE_PLUGIN_INCLUDE_INTEGRATED", "maybe"),
    ] {
        let output =
            program().env(name, value).args(["simulate", "--inventory", &t4]).output().unwrap();
        let (status, _, err) = outcome(&output);
        assert_eq!(status, Some(2), "{name}={value}: {err}");
        assert!(err.contains(name) && err.contains(value), "{err}");
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    let mut child = program()
        .args(["simulate", "--log-level", "error"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (status, _, err) = outcome(&child.wait_with_output().unwrap());
    assert_eq!((status, err.as_str()), (Some(0), ""));
}

#[test]
fn the_thin_programs_are_the_daemon_for_one_driver_model() {
    for program in
        [env!("CARGO_BIN_EXE_device-plugin-wddm"), env!("CARGO_BIN_EXE_device-plugin-mcdm")]
    {
        let output = std::process::Command::new(program).output().unwrap();
        let (status, _, err) = outcome(&output);
        assert_eq!(status, Some(2));
        assert!(err.contains("--inventory FILE"), "{err}");
    }
}
