//! Reports on recorded hosts, and wrong usage.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{TWO_T4, inventories, outcome, recorded, report, step, verify};

/// Every recorded host.
fn every_inventory() -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["", "generated"] {
        for entry in std::fs::read_dir(inventories().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push(path.display().to_string());
            }
        }
    }
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    files
}

/// The values of `--skip`.
fn every_step() -> Vec<String> {
    let [plugin, ..] = plugin::programs();
    let verify = plugin.find_subcommand("verify").unwrap();
    let skip = verify.get_arguments().find(|argument| argument.get_id() == "skip").unwrap();
    skip.get_possible_values().iter().map(|step| step.get_name().to_owned()).collect()
}

/// Measured times vary.
fn without_times(text: &str) -> String {
    let line = |line: &str| {
        let words = line.split(' ').map(|word| match word.split_once("Ms=") {
            Some((name, _)) => format!("{name}Ms=…"),
            None => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_recorded_host_is_verified_as_far_as_possible() {
    for inventory in every_inventory() {
        let (status, report) = report(&mut verify(&["--inventory", &inventory]));
        let names: Vec<&str> = report["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["step"].as_str().unwrap())
            .collect();
        assert_eq!(names, every_step(), "{inventory}");
        assert_eq!(step(&report, "discovery")["what"], "the readings are equal", "{inventory}");
        for skipped in ["socket", "events", "kubelet", "container"] {
            assert_eq!(step(&report, skipped)["result"], "skipped", "{inventory}");
        }
        let failed = report["counts"]["failed"].as_u64().unwrap();
        assert_eq!(status, Some(i32::from(failed > 0)), "{inventory}");
        let problems = report["doctor"].as_array().unwrap().iter();
        let problems = problems.filter(|check| check["verdict"] == "problem").count();
        assert_eq!(step(&report, "doctor")["measurements"]["problems"], problems, "{inventory}");
    }
}

#[test]
fn text_and_markdown() {
    for (name, format) in [
        (TWO_T4, "text"),
        ("made-up-two-vendors.yaml", "text"),
        (TWO_T4, "markdown"),
        ("made-up-two-vendors.yaml", "markdown"),
    ] {
        let output = verify(&["--inventory", &recorded(name), "--output", format]).output();
        let (_, out, err) = outcome(&output.unwrap());
        assert_eq!(err, "", "{name}");
        insta::assert_snapshot!(format!("{name}-{format}"), without_times(&out));
    }
}

/// A driver's name could otherwise forge a line of the report or change a terminal.
#[test]
fn no_report_contains_what_a_terminal_interprets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.yaml");
    let text = std::fs::read_to_string(recorded(TWO_T4)).unwrap();
    std::fs::write(&path, text.replace("NVIDIA Tesla T4", r#""T4\e[31m\nok  kubelet""#)).unwrap();
    for format in ["text", "json", "markdown"] {
        let mut command = verify(&["--output", format, "--inventory"]);
        let (_, out, _) = outcome(&command.arg(&path).output().unwrap());
        assert!(out.contains("T4"), "{out}");
        assert!(!out.contains('\u{1b}') && !out.contains("\nok  kubelet"), "{format}: {out}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let host = recorded(TWO_T4);
    for (arguments, message) in [
        (&["--skip", "sockets"][..], "events, kubelet, container"),
        (&["--namespace", "k8s.io"], "--image <IMAGE>"),
        (&["--", "cmd"], "--image <IMAGE>"),
        (&["--wait-for-event", "0"], "0 is not in 1..=3600"),
        (&["--output", "html"], "text, json, markdown"),
    ] {
        let output = verify(arguments).args(["--inventory", &host]).output();
        let output = match arguments {
            ["--", ..] => verify(&["--inventory", &host]).args(arguments).output(),
            _ => output,
        };
        let (status, out, err) = outcome(&output.unwrap());
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
    let (status, _, err) = outcome(&verify(&["--inventory", "missing.yaml"]).output().unwrap());
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("missing.yaml"), "{err}");
}

#[cfg(not(windows))]
#[test]
fn only_windows_is_verified_without_an_inventory() {
    let (status, _, err) = outcome(&verify(&[]).output().unwrap());
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("--inventory FILE"), "{err}");
}

#[test]
fn every_step_can_be_skipped() {
    let names = every_step();
    let mut command = verify(&["--inventory", &recorded(TWO_T4), "--device-plugin-dir", "missing"]);
    command.args(["--wait-for-event", "5", "--image", "a"]);
    for name in &names {
        command.args(["--skip", name]);
    }
    let (status, report) = report(&mut command);
    assert_eq!(status, Some(0));
    for name in &names {
        assert_eq!(step(&report, name)["what"], "skipped by --skip");
    }
    assert_eq!(report["versions"]["build"], "unknown");
}

const MARK: &str = "PRIVATE-MARK";

/// A host with private data wherever a node has it.
fn marked_host(folder: &Path) -> String {
    let text = std::fs::read_to_string(recorded("made-up-two-vendors.yaml")).unwrap();
    let user = format!(r"C:\Users\{MARK}");
    let marked = text
        .replace(r"C:\Program Files", &user)
        .replace(r"C:\k\", &format!(r"{user}\"))
        .replace(r"C:\Windows\System32\nvml.dll", &format!(r"{user}\nvml.dll"))
        .replace("disabledPlugins: [cri]", &format!("disabledPlugins: [{MARK}]"))
        .replace(r"&REV", &format!("&{MARK}&REV"))
        .replace("PCIROOT(0)", &format!("PCIROOT({MARK})"))
        .replace("FileRepository", MARK);
    let path = folder.join(format!("{MARK}.yaml"));
    std::fs::write(&path, marked).unwrap();
    path.display().to_string()
}

/// A report may be published.
#[test]
fn the_markdown_report_contains_no_private_data() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join(MARK);
    std::fs::create_dir(&directory).unwrap();
    let config = folder.path().join(format!("{MARK}-config.yaml"));
    let resource = format!("resourceName: {MARK}.com/gpu").to_lowercase();
    std::fs::write(&config, format!("{resource}\nexcludeMounts: [{MARK}.dll]")).unwrap();
    let run = |format: &str| {
        let mut command = verify(&["--inventory", &marked_host(folder.path()), "--output", format]);
        command.arg("--device-plugin-dir").arg(&directory).arg("--config").arg(&config);
        command.args(["--image", &format!("{MARK}.example.com/image")]);
        command.env("PATH", folder.path()).env("USERNAME", MARK).env("COMPUTERNAME", MARK);
        command.env("HOSTNAME", MARK).env("USER", MARK).env("ProgramFiles", folder.path());
        outcome(&command.output().unwrap()).1.to_uppercase()
    };
    let markdown = run("markdown");
    assert!(!markdown.contains(MARK), "{markdown}");
    assert!(markdown.contains("NVIDIA A10-24Q") && markdown.contains("1.31.4"), "{markdown}");
    // The data is there: the reports that are not for publication contain it.
    assert!(run("json").matches(MARK).count() > 8);
    assert!(run("text").matches(MARK).count() > 2);
}

#[test]
fn a_change_of_the_host_is_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.yaml");
    std::fs::copy(recorded(TWO_T4), &path).unwrap();
    let mut command = verify(&["--skip", "doctor", "--wait-for-event", "60", "--output", "json"]);
    command.arg("--inventory").arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program says when it waits.
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("disable or enable a GPU now"), "{line}");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(folder.path().join("new"), text.replace("problemCode: 0", "problemCode: 22"))
        .unwrap();
    std::fs::rename(folder.path().join("new"), &path).unwrap();
    let (status, out, _) = outcome(&child.wait_with_output().unwrap());
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let events = step(&report, "events");
    assert_eq!((status, &events["result"]), (Some(0), &"ok".into()), "{events}");
    assert_eq!(events["details"].as_array().unwrap().len(), 2, "{events}");
}

#[test]
fn an_event_that_does_not_arrive_fails() {
    let host = recorded(TWO_T4);
    let began = Instant::now();
    let arguments = ["--skip", "doctor", "--wait-for-event", "1", "--inventory", &host];
    let (status, report) = report(&mut verify(&arguments));
    assert_eq!(status, Some(1));
    assert_eq!(step(&report, "events")["what"], "no device event arrived within 1 s");
    assert!(began.elapsed() >= Duration::from_secs(1));
}
