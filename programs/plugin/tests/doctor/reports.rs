//! What `doctor` prints, and how it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/inventories")
}

fn recorded(name: &str) -> String {
    recordings().join(name).display().to_string()
}

/// Every recorded host in a folder of the recordings, as `folder/name.yaml`.
fn recordings_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(recordings().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_recording = |name: &String| Path::new(name).extension().is_some_and(|e| e == "yaml");
    let mut names: Vec<String> =
        names.filter(is_recording).map(|name| format!("{folder}{name}")).collect();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    names
}

/// Exit status, standard output and standard error of `doctor`, run where no settings are.
fn doctor(words: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_directx-device-plugin"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.contains("DEVICE_PLUGIN") || text.starts_with("DIRECTX") {
            command.env_remove(&name);
        }
    }
    command.env_remove("PLUGIN_SOCK_DIR").current_dir(folder.path()).stdin(Stdio::null());
    let output = command.arg("doctor").args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The JSON report, and the exit status.
fn report(words: &[&str]) -> (Option<i32>, Value) {
    let (status, out, err) = doctor(&[words, &["--output", "json"]].concat());
    assert_eq!(err, "");
    (status, serde_json::from_str(&out).unwrap())
}

fn checks<'a>(report: &'a Value, subject: &str) -> Vec<&'a Value> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["subject"] == subject).collect()
}

#[test]
fn recorded_hosts_are_told_for_people() {
    for name in recordings_in("") {
        let (_, out, err) = doctor(&["--inventory", &recorded(&name)]);
        assert_eq!(err, "", "{name}");
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!(format!("text-{name}"), out);
        });
    }
}

#[test]
fn a_recorded_host_is_told_for_programs() {
    let (status, out, err) = doctor(&[
        "--inventory",
        &recorded("made-up-npu-beside-gpu.yaml"),
        "--image-os-version",
        "10.0.17763.x",
        "--output",
        "json",
    ]);
    assert_eq!((status, err.as_str()), (Some(1), ""));
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("json", out);
    });
}

#[test]
fn both_forms_tell_the_same_and_end_alike() {
    for name in [recordings_in(""), recordings_in("generated/")].concat() {
        let path = recorded(&name);
        let (status, out, err) = doctor(&["--inventory", &path]);
        assert_eq!(err, "", "{name}");
        let (json_status, report) = report(&["--inventory", &path]);
        assert_eq!(status, json_status);
        assert_eq!(status, Some(i32::from(report["counts"]["problem"] != 0)), "{name}");
        let mut shown = out.lines();
        let mut counts = std::collections::BTreeMap::<String, u64>::new();
        for check in report["checks"].as_array().unwrap() {
            let text = |key: &str| check[key].as_str();
            let line = shown.next().unwrap();
            let verdict = text("verdict").unwrap().replace('-', " ");
            assert!(line.starts_with(&verdict), "{line}");
            let what = text("what").unwrap();
            let object = text("object").map(|object| format!("{object}: ")).unwrap_or_default();
            assert!(line.ends_with(&format!("  {object}{what}")), "{line}");
            if let Some(advice) = text("advice") {
                assert_eq!(shown.next().unwrap().trim(), format!("-> {advice}"));
            }
            *counts.entry(verdict.replace("not checked", "notChecked")).or_default() += 1;
        }
        for (verdict, count) in counts {
            assert_eq!(report["counts"][&verdict], count, "{verdict}");
        }
    }
}

#[test]
fn warnings_alone_are_no_failure() {
    let (status, report) = report(&["--inventory", &recorded("aws-t4-two.yaml")]);
    assert_eq!((status, &report["counts"]["warning"]), (Some(0), &1.into()));
}

#[test]
fn an_image_of_another_windows_is_a_problem() {
    let image = |version: &str| {
        let path = recorded("made-up-l4-2025.yaml");
        let words = ["--inventory", &path, "--image-os-version", version];
        let (status, report) = report(&words);
        (status, checks(&report, "image")[0]["verdict"].as_str().unwrap().to_owned())
    };
    assert_eq!(image("10.0.26100.1"), (Some(0), "ok".to_owned()));
    assert_eq!(image("10.0.20348.x"), (Some(0), "ok".to_owned()));
    assert_eq!(image("10.0.17763.4010"), (Some(1), "problem".to_owned()));
}

#[test]
fn a_configuration_that_serve_would_refuse_is_one_of_the_problems() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "multitenancies: 4\n").unwrap();
    let config = config.display().to_string();
    let path = recorded("aws-t4-two.yaml");
    let (status, report) = report(&["--inventory", &path, "--config", &config]);
    assert_eq!(status, Some(1));
    let configuration = checks(&report, "configuration")[0];
    assert_eq!(configuration["verdict"], "problem");
    assert!(configuration["what"].as_str().unwrap().contains("multitenancies"), "{configuration}");
    assert_eq!(checks(&report, "resources")[0]["verdict"], "not-checked");
    assert_eq!(checks(&report, "device").len(), 2);
}

#[test]
fn a_configuration_is_told_value_by_value_and_changes_what_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "multitenancy: 4\n").unwrap();
    let config = config.display().to_string();
    let path = recorded("aws-t4-two.yaml");
    let (status, report) = report(&["--inventory", &path, "--config", &config]);
    assert_eq!(status, Some(0));
    let told = checks(&report, "configuration")[0]["what"].as_str().unwrap();
    assert!(told.contains("wddm multitenancy = 4") && told.contains("config.yaml:1"), "{told}");
    let offered = checks(&report, "resources")[0]["what"].as_str().unwrap();
    assert_eq!(offered, "2 of 2 devices healthy, each shared by 4 containers");
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_named_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, path) = (folder.path().display().to_string(), recorded("aws-t4-two.yaml"));
    let words = ["--inventory", path.as_str(), "--device-plugin-dir", directory.as_str()];
    let verdicts = || {
        let (status, report) = report(&words);
        let verdict = |subject| checks(&report, subject)[0]["verdict"].clone();
        (status, verdict("kubelet-directory"), verdict("kubelet-socket"))
    };
    assert_eq!(verdicts(), (Some(1), "ok".into(), "problem".into()));
    let kubelet =
        std::os::unix::net::UnixListener::bind(folder.path().join("kubelet.sock")).unwrap();
    assert_eq!(verdicts(), (Some(0), "ok".into(), "ok".into()));
    drop(kubelet);
    assert_eq!(verdicts(), (Some(1), "ok".into(), "problem".into()));
    std::fs::remove_file(folder.path().join("kubelet.sock")).unwrap();
    drop(folder);
    assert_eq!(verdicts(), (Some(1), "problem".into(), "problem".into()));
}

#[cfg(not(windows))]
#[test]
fn elsewhere_than_on_windows_a_recording_is_needed() {
    let (status, out, err) = doctor(&[]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(err.contains("--inventory FILE"), "{err}");
}

#[test]
fn wrong_usage_exits_2() {
    let path = recorded("aws-t4-two.yaml");
    for (words, says) in [
        (&["--inventory", &path, "--image-os-version", "ltsc2022"][..], "10.0.20348.1547"),
        (&["--inventory", "/no/such/host.yaml"], "/no/such/host.yaml"),
        (&["--inventory", &path, "--output", "yaml"], "json"),
    ] {
        let (status, out, err) = doctor(words);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{words:?}");
        assert!(err.contains(says), "{err}");
    }
}
