//! The output and the exit status of `doctor`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use device_plugin::{Transport as _, UnixSockets};
use serde_json::Value;

fn inventories() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories")
}

fn recorded(name: &str) -> String {
    inventories().join(name).display().to_string()
}

/// Every recorded host in a folder of the inventories, as `folder/name.yaml`.
fn inventories_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(inventories().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_inventory = |name: &String| Path::new(name).extension().is_some_and(|e| e == "yaml");
    let mut names: Vec<String> =
        names.filter(is_inventory).map(|name| format!("{folder}{name}")).collect();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    names
}

/// Exit status, standard output and standard error of `doctor`, run without a configuration.
fn doctor(arguments: &[&str]) -> (Option<i32>, String, String) {
    doctor_in(110, arguments)
}

/// The same in lines of at most this width.
fn doctor_in(width: usize, arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_directx-device-plugin"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.contains("DEVICE_PLUGIN") || text.starts_with("DIRECTX") {
            command.env_remove(&name);
        }
    }
    command
        .env_remove("PLUGIN_SOCK_DIR")
        .env("COLUMNS", width.to_string())
        .current_dir(folder.path())
        .stdin(Stdio::null());
    let output = command.arg("doctor").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The JSON report, and the exit status.
fn report(arguments: &[&str]) -> (Option<i32>, Value) {
    let (status, out, err) = doctor(&[arguments, &["--output", "json"]].concat());
    assert_eq!(err, "");
    (status, serde_json::from_str(&out).unwrap())
}

fn checks<'a>(report: &'a Value, subject: &str) -> Vec<&'a Value> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["subject"] == subject).collect()
}

/// Other hosts differ in single findings, which are tested in the crate `doctor`.
#[test]
fn text_report_of_a_host() {
    let name = "made-up-two-vendors.yaml";
    let (_, out, err) = doctor(&["--inventory", &recorded(name)]);
    assert_eq!(err, "");
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!(format!("text-{name}"), out);
    });
}

#[test]
fn json_report_of_a_recorded_host() {
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
fn text_and_json_have_the_same_checks_and_exit_status() {
    for name in [inventories_in(""), inventories_in("generated/")].concat() {
        let path = recorded(&name);
        let (status, out, err) = doctor_in(1000, &["--inventory", &path]);
        assert_eq!(err, "", "{name}");
        let (json_status, report) = report(&["--inventory", &path]);
        assert_eq!(status, json_status);
        assert_eq!(status, Some(i32::from(report["counts"]["problem"] != 0)), "{name}");
        let mut shown = out.lines();
        let mut counts = std::collections::BTreeMap::<String, u64>::new();
        for check in report["checks"].as_array().unwrap() {
            let text = |key: &str| check[key].as_str();
            let verdict = text("verdict").unwrap().replace('-', " ");
            let what = text("what").unwrap();
            *counts.entry(verdict.replace("not checked", "notChecked")).or_default() += 1;
            if verdict == "not checked" {
                let subject = text("subject").unwrap();
                let is_named =
                    |line: &&str| line.ends_with(&format!(": {what}")) && line.contains(subject);
                let lines = out.lines().filter(|line| line.starts_with("not checked  "));
                assert_eq!(lines.filter(is_named).count(), 1, "{check}: {out}");
                continue;
            }
            let line = shown.next().unwrap();
            assert!(line.starts_with(&verdict), "{line}");
            let object = text("object").map(|object| format!("{object}: ")).unwrap_or_default();
            assert!(line.ends_with(&format!("  {object}{what}")), "{line}");
            if let Some(advice) = text("advice") {
                assert_eq!(shown.next().unwrap().trim(), format!("-> {advice}"));
            }
        }
        for (verdict, count) in counts {
            assert_eq!(report["counts"][&verdict], count, "{verdict}");
        }
    }
}

#[test]
fn lines_fit_in_120_columns_unless_a_word_or_a_command_is_longer() {
    for name in [inventories_in(""), inventories_in("generated/")].concat() {
        let (_, out, _) = doctor(&["--inventory", &recorded(&name)]);
        assert!(out.lines().all(|line| line.chars().count() <= 120), "{name}: {out}");
        assert!(!out.contains(" \n"), "{name}: {out}");
    }
}

#[test]
fn warnings_exit_with_0() {
    let (status, report) = report(&["--inventory", &recorded("aws-t4-two.yaml")]);
    assert_eq!((status, &report["counts"]["warning"]), (Some(0), &1.into()));
}

#[test]
fn an_image_that_the_host_cannot_run_is_a_problem() {
    let image = |version: &str| {
        let path = recorded("made-up-l4-2025.yaml");
        let arguments = ["--inventory", &path, "--image-os-version", version];
        let (status, report) = report(&arguments);
        (status, checks(&report, "image")[0]["verdict"].as_str().unwrap().to_owned())
    };
    assert_eq!(image("10.0.26100.1"), (Some(0), "ok".to_owned()));
    assert_eq!(image("10.0.20348.x"), (Some(0), "ok".to_owned()));
    assert_eq!(image("10.0.17763.4010"), (Some(1), "problem".to_owned()));
}

#[test]
fn the_recorded_software_of_a_node_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.yaml");
    let node = "\
schema: directx-inventory/v1
node:
  hcsError: {kind: missing, message: no Host Compute Service}
  containerd: {notFoundIn: [the service `containerd`, PATH]}
  kubelet: {path: 'C:\\k\\kubelet.exe', version: 1.25.16}
  nvml: {gpusError: nvidia-smi.exe not found}
adapters: []
";
    std::fs::write(&path, node).unwrap();
    let (status, report) = report(&["--inventory", &path.display().to_string()]);
    assert_eq!(status, Some(1));
    for (subject, verdict, what) in [
        ("hcs", "problem", "no Host Compute Service"),
        ("containerd", "problem", "no containerd found in the service `containerd`, PATH"),
        ("kubelet", "problem", "kubelet 1.25.16 (C:\\k\\kubelet.exe) is older than 1.26"),
        ("nvml", "ok", "not needed: the host lists no NVIDIA device"),
    ] {
        let check = checks(&report, subject)[0];
        assert_eq!(check["verdict"], verdict, "{check}");
        assert!(check["what"].as_str().unwrap().starts_with(what), "{check}");
    }
}

#[test]
fn an_invalid_configuration_is_a_problem() {
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
fn the_configuration_is_listed_and_applied() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "multitenancy: 4\n").unwrap();
    let config = config.display().to_string();
    let path = recorded("aws-t4-two.yaml");
    let (status, report) = report(&["--inventory", &path, "--config", &config]);
    assert_eq!(status, Some(0));
    let listed = checks(&report, "configuration")[0]["what"].as_str().unwrap();
    let expected = format!("wddm multitenancy = 4 ({config}); mcdm multitenancy = 4 ({config})");
    assert_eq!(listed, expected);
    let resource = checks(&report, "resources")[0]["what"].as_str().unwrap();
    assert_eq!(resource, "2 of 2 devices healthy, each shared by up to 4 containers");
}

#[test]
fn devices_that_the_annotation_takes_out_of_service_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("directx")).unwrap();
    let file = folder.path().join("directx/cordoned-devices");
    std::fs::write(file, "PCIROOT(0)#PCI(1B00)\nPCIROOT(9)\n").unwrap();
    let directory = folder.path().display().to_string();
    let path = recorded("aws-t4-two.yaml");
    let (_, report) = report(&["--inventory", &path, "--device-plugin-dir", &directory]);
    let checks = checks(&report, "resources");
    let lines: Vec<&str> = checks.iter().filter_map(|check| check["what"].as_str()).collect();
    for expected in [
        "1 of 2 devices healthy",
        "cordoned: taken out of service by the node's annotation",
        "`PCIROOT(9)` in the node's annotation directx.microsoft.com/cordoned-devices names no device",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{expected}: {lines:?}");
    }
}

#[test]
fn a_file_with_cordoned_devices_that_cannot_be_read_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("directx/cordoned-devices")).unwrap();
    let directory = folder.path().display().to_string();
    let path = recorded("aws-t4-two.yaml");
    let (status, report) = report(&["--inventory", &path, "--device-plugin-dir", &directory]);
    assert_eq!(status, Some(1));
    let checks = checks(&report, "resources");
    let lines: Vec<&str> = checks.iter().filter_map(|check| check["what"].as_str()).collect();
    for expected in ["0 of 2 devices healthy", "the cordoned devices are not known: cannot read `"]
    {
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{expected}: {lines:?}");
    }
}

#[test]
fn a_device_plugin_directory_is_checked_even_with_an_inventory() {
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().display().to_string();
    let path = recorded("aws-t4-two.yaml");
    let arguments = ["--inventory", path.as_str(), "--device-plugin-dir", directory.as_str()];
    let verdicts = || {
        let (status, report) = report(&arguments);
        let verdict = |subject| checks(&report, subject)[0]["verdict"].clone();
        (status, verdict("kubelet-directory"), verdict("kubelet-socket"))
    };
    assert_eq!(verdicts(), (Some(1), "ok".into(), "problem".into()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let socket = folder.path().join("kubelet.sock");
    let kubelet = runtime.block_on(async { UnixSockets.bind(&socket) }).unwrap();
    assert_eq!(verdicts(), (Some(0), "ok".into(), "ok".into()));
    drop(kubelet);
    // A process that another test starts holds the listener until its `exec`.
    let end = Instant::now() + Duration::from_mins(2);
    while verdicts() != (Some(1), "ok".into(), "problem".into()) {
        assert!(Instant::now() < end, "{:?}", verdicts());
    }
    std::fs::remove_file(socket).unwrap();
    drop(folder);
    assert_eq!(verdicts(), (Some(1), "problem".into(), "problem".into()));
}

#[cfg(not(windows))]
#[test]
fn other_systems_than_windows_need_an_inventory() {
    let (status, out, err) = doctor(&[]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(err.contains("--inventory FILE"), "{err}");
}

#[test]
fn wrong_usage_exits_2() {
    let path = recorded("aws-t4-two.yaml");
    for (arguments, expected) in [
        (&["--inventory", &path, "--image-os-version", "21H2"][..], "10.0.20348.1547"),
        (&["--inventory", "/no/such/host.yaml"], "/no/such/host.yaml"),
        (&["--inventory", &path, "--output", "yaml"], "json"),
    ] {
        let (status, out, err) = doctor(arguments);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains(expected), "{err}");
    }
}

#[test]
fn additional_mounts_that_are_missing_or_not_applied_are_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "additionalMounts: {nvidia: [{source: extra.dll}]}\n").unwrap();
    let config = config.display().to_string();
    let warnings = |host: &str| {
        let (status, report) = report(&["--inventory", &recorded(host), "--config", &config]);
        assert_eq!(status, Some(0));
        let checks = checks(&report, "runtime-files").into_iter();
        let warnings = checks.filter(|check| check["verdict"] == "warning");
        warnings.map(|check| check["what"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let on_server_2022 = warnings("aws-t4-two.yaml");
    assert!(on_server_2022.iter().all(|what| what.starts_with("1 of 18 missing")));
    let on_server_2025 = warnings("made-up-l4-2025.yaml");
    let expected = "additional mounts are not applied: runtimeMounts is auto";
    assert!(!on_server_2025.is_empty());
    assert!(on_server_2025.iter().all(|what| what.starts_with(expected)), "{on_server_2025:?}");
}

/// Every destination that the driver of the recorded T4 and the defaults name.
const EXCLUDE_ALL: &str = "excludeMounts: [nvcudadebugger.dll, nvcuda.dll, nvcuvid.dll, \
    nvEncodeAPI64.dll, nvEncodeAPI.dll, nvapi64.dll, nvapi.dll, nvml.dll, OpenCL.dll, \
    vulkan-1.dll, nvidia-smi.exe, vulkaninfo.exe]";

/// What the plugin mounts depends on the configuration as well as on the host.
#[test]
fn the_lines_about_runtime_files_are_those_of_the_configuration() {
    const SERVER_2022: &str = "aws-t4-two.yaml";
    const SERVER_2025: &str = "made-up-l4-2025.yaml";
    let legacy = &["--driver-model", "legacy"][..];
    let mut lines = Vec::new();
    for (host, flags, config) in [
        (SERVER_2022, &[][..], ""),
        (SERVER_2022, legacy, ""),
        (SERVER_2022, &[], "runtimeMounts: extra"),
        (SERVER_2022, &[], EXCLUDE_ALL),
        (SERVER_2022, &[], "excludeMounts: [nvcuda.dll, vulkaninfo.exe]"),
        (SERVER_2022, &[], "runtimeMounts: never"),
        (SERVER_2022, &[], "runtimeFilesWow64: false"),
        (SERVER_2025, &[], ""),
        (SERVER_2025, &[], "runtimeMounts: always"),
        (SERVER_2025, &[], "runtimeMounts: extra"),
        ("made-up-gpu-pv.yaml", &[], ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let path = recorded(host);
        let file = file.display().to_string();
        let arguments = [&["--inventory", path.as_str(), "--config", file.as_str()], flags];
        let (_, report) = report(&arguments.concat());
        lines.push([&[host], flags, &[config]].concat().join(" ").trim_end().to_owned());
        for subject in ["windows", "runtime-files"] {
            lines.extend(checks(&report, subject).into_iter().map(|check| {
                let text = |key: &str| check[key].as_str().unwrap_or_default();
                format!("  {} {subject}: {}", text("verdict"), text("what"))
            }));
        }
    }
    // Devices of the same kind have the same line.
    lines.dedup();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("runtime-files", lines.join("\n"));
    });
}
