//! The step `container`, with a `ctr` that records its command lines.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{TWO_T4, outcome, program, recorded, report, step, steps, verify};

/// A folder with a `ctr` that runs `script` for `run`, and lists the containers in the file `left`.
struct Containerd(tempfile::TempDir);

impl Containerd {
    fn new(script: &str) -> Containerd {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >> {here}/log\ncase \"$*\" in\n*'containers list'*) cat {here}/left 2>/dev/null; exit 0;;\n\
             *run*) {script};;\n*) exit 1;;\nesac\n"
        );
        // Another process writes it: while this one has it open, a process that another test starts
        // may inherit it, and then it cannot be run (`ETXTBSY`).
        let mut write = Command::new("sh");
        write.args(["-c", r#"printf %s "$1" > "$0" && chmod +x "$0""#]);
        assert!(write.arg(folder.path().join("ctr")).arg(text).status().unwrap().success());
        Containerd(folder)
    }

    /// A container that sees the adapters of an inventory.
    fn seeing(inventory: &Path) -> Containerd {
        let containerd = Containerd::new("cat \"$(dirname \"$0\")/seen\"");
        std::fs::write(containerd.0.path().join("seen"), listed(inventory)).unwrap();
        containerd
    }

    fn verify(&self, arguments: &[&str]) -> Command {
        let skipped = ["--skip", "doctor", "--image", "example.com/image:1", "--inventory"];
        let mut command = verify(&skipped);
        let path = std::env::var_os("PATH").unwrap();
        let folders = [self.0.path().to_owned()].into_iter().chain(std::env::split_paths(&path));
        command.arg(recorded(TWO_T4)).env("PATH", std::env::join_paths(folders).unwrap());
        command.env("TMPDIR", self.0.path()).args(arguments);
        command
    }

    /// The recorded command lines.
    fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// The folders that `verify` left behind.
    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("directx-verify")).collect()
    }
}

/// The JSON list of devices that a container with this host's adapters prints.
fn listed(inventory: &Path) -> String {
    let mut command = program();
    command.args(["devices", "--output", "json", "--inventory"]).arg(inventory);
    outcome(&command.output().unwrap()).1
}

#[test]
fn containers_get_one_device_and_all_devices_and_list_what_they_see() {
    let containerd = Containerd::seeing(Path::new(&recorded(TWO_T4)));
    let (status, report) = report(&mut containerd.verify(&["--namespace", "k8s.io"]));
    assert_eq!(status, Some(0), "{report:#}");
    let [one, all] = steps(&report, "container")[..] else { panic!("{report:#}") };
    assert_eq!((&one["object"], &one["result"]), (&"wddm, 1 device".into(), &"warning".into()));
    let sees = "the container sees 2 of 2 devices of the host; the";
    assert_eq!(one["what"], format!("{sees} allocated device is among them"));
    assert_eq!((&all["object"], &all["result"]), (&"wddm, 2 devices".into(), &"ok".into()));
    assert_eq!(all["what"], format!("{sees} 2 allocated devices are among them"));
    let log = containerd.log();
    assert_eq!(log.len(), 2, "a container that ended was removed by `ctr run --rm`: {log:?}");
    let device = "vpci-location-path://PCIROOT(0)#PCI(1B00)";
    assert!(
        log[0].starts_with(&format!("--namespace k8s.io run --rm --device {device} ")),
        "{log:?}"
    );
    let class = "--device class://5B45201D-F2F2-4F3B-85BB-30FF1F953599 ";
    assert!(log[1].contains(class), "{log:?}");
    for line in &log {
        assert!(line.contains("--env DIRECTX_VISIBLE_DEVICES="), "{line}");
        assert!(
            line.contains(r",dst=C:\directx-verify,options=ro example.com/image:1 directx-verify-")
        );
        let command = r"C:\directx-verify\directx-device-plugin.exe devices --output json";
        assert!(line.ends_with(command), "{line}");
    }
    assert_eq!(containerd.left(), Vec::<String>::new());
}

#[test]
fn gpu_probe_beside_the_program_is_copied_for_the_container() {
    let containerd = Containerd::new("exit 0");
    // The program is started from a folder with a `gpu-probe`.
    let (folder, plugin) = program_alone();
    let arguments = ["--", "gpu-probe", "--expect", "d3d12"];
    let given = containerd.verify(&arguments);
    let run = || outcome(&started_as(&plugin, &given).output().unwrap());
    let (status, out, _) = run();
    assert_eq!(status, Some(0), "{out}");
    let from_image = containerd.log();
    assert!(from_image[0].ends_with(" gpu-probe --expect d3d12"), "{from_image:?}");
    assert!(!from_image[0].contains("directx-verify,"), "{from_image:?}");
    std::fs::write(folder.path().join("gpu-probe"), "program").unwrap();
    let (status, out, _) = run();
    assert_eq!(status, Some(0), "{out}");
    let log = containerd.log();
    let line = log.last().unwrap();
    assert!(line.contains(r",dst=C:\directx-verify,options=ro example.com/image:1 "), "{line}");
    assert!(line.ends_with(r" C:\directx-verify\gpu-probe.exe --expect d3d12"), "{line}");
    assert!(out.contains("wddm, 1 device: the command ended with exit code 0"), "{out}");
    assert_eq!(containerd.left(), Vec::<String>::new());
}

/// A folder with the program and nothing else. A copy could not be run while a process that another
/// test starts has it open for writing.
fn program_alone() -> (tempfile::TempDir, PathBuf) {
    let program = program();
    let program = Path::new(program.get_program());
    let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let link = folder.path().join("directx-device-plugin");
    std::fs::hard_link(program, &link).unwrap();
    (folder, link)
}

/// The command of `given`, with another `program`.
fn started_as(program: &Path, given: &Command) -> Command {
    let mut command = Command::new(program);
    command.args(given.get_args());
    for (name, value) in given.get_envs() {
        value.map(|value| command.env(name, value));
    }
    command
}

#[test]
fn directx_visible_beside_the_program_checks_in_a_container_of_its_own() {
    let (folder, plugin) = program_alone();
    for file in ["directx-visible.exe", "directx-visible-filter.dll"] {
        std::fs::write(folder.path().join(file), "file").unwrap();
    }
    let check = r#"{"isAsAllocated":false,"apis":[{"api":"vulkan","call":"c","verdict":"different","unfiltered":1,"filtered":2}]}"#;
    let list = "cat \"$(dirname \"$0\")/seen\"";
    let script = format!("case \"$*\" in *--check*) echo '{check}'; exit 1;; *) {list};; esac");
    let containerd = Containerd::new(&script);
    let inventory = listed(Path::new(&recorded(TWO_T4)));
    std::fs::write(containerd.0.path().join("seen"), inventory).unwrap();
    let run = |arguments: &[&str]| {
        let given = containerd.verify(&[&["--output", "json"], arguments].concat());
        let (status, out, err) = outcome(&started_as(&plugin, &given).output().unwrap());
        (status, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
    };
    let (status, found): (_, serde_json::Value) = run(&[]);
    assert_eq!(status, Some(1), "{found:#}");
    let [one, checked, _, all] = steps(&found, "container")[..] else { panic!("{found:#}") };
    assert_eq!((&one["object"], &one["result"]), (&"wddm, 1 device".into(), &"warning".into()));
    assert_eq!(checked["object"], "wddm, 1 device, directx-visible");
    assert_eq!(checked["what"], "directx-visible does not show exactly the allocated devices");
    assert_eq!(checked["details"][0], "vulkan c: 1 -> 2");
    assert_eq!(all["object"], "wddm, 2 devices, directx-visible");
    let log = containerd.log();
    let line = log.iter().find(|line| line.ends_with("--check --output json")).unwrap();
    assert!(line.contains(r",dst=C:\directx-verify,options=ro example.com/image:1 "), "{line}");
    assert!(
        line.ends_with(r"-visible C:\directx-verify\directx-visible.exe --check --output json")
    );
    assert_eq!(containerd.left(), Vec::<String>::new());
    // With a given command, the check does not run.
    let (_, found) = run(&["--", "cmd"]);
    assert_eq!(steps(&found, "container").len(), 2, "{found:#}");
    // Without variables the program does not know the devices.
    let config = containerd.0.path().join("config.yaml");
    std::fs::write(&config, "environmentHints: false").unwrap();
    let (status, found) = run(&["--config", config.to_str().unwrap()]);
    let skipped = steps(&found, "container")[1];
    assert_eq!((status, &skipped["result"]), (Some(0), &"skipped".into()), "{found:#}");
}

#[test]
fn a_container_that_does_not_see_its_device_fails() {
    let folder = tempfile::tempdir().unwrap();
    let second = folder.path().join("second.yaml");
    let text = std::fs::read_to_string(recorded(TWO_T4)).unwrap();
    std::fs::write(&second, text.replace("luid: 7048070", "luid: 4")).unwrap();
    let containerd = Containerd::seeing(&second);
    let (status, report) = report(&mut containerd.verify(&[]));
    assert_eq!(status, Some(1));
    let [one, all] = steps(&report, "container")[..] else { panic!("{report:#}") };
    assert_eq!(
        one["what"],
        "the container sees 1 of 2 devices of the host; the allocated device is not among them"
    );
    assert!(all["what"].as_str().unwrap().ends_with("are not all among them"), "{all}");
}

#[test]
fn the_configuration_decides_what_a_container_gets() {
    let containerd = Containerd::seeing(Path::new(&recorded(TWO_T4)));
    let config = containerd.0.path().join("config.yaml");
    std::fs::write(&config, "multiDevice: reject").unwrap();
    let (_, report) = report(containerd.verify(&["--config"]).arg(&config));
    let [_, all] = steps(&report, "container")[..] else { panic!("{report:#}") };
    assert_eq!((&all["result"], containerd.log().len()), (&"skipped".into(), 1));
    assert!(all["details"][0].as_str().unwrap().contains("multiDevice is reject"), "{all}");
}

#[test]
fn another_command_is_judged_by_its_exit_code() {
    let containerd = Containerd::new("echo hello");
    let (status, report) = report(&mut containerd.verify(&[]));
    assert_eq!(status, Some(1), "this program must list devices: {report:#}");
    let containerd = Containerd::new("echo hello");
    let output = containerd.verify(&["--output", "json", "--", "cmd", "/c", "--flag"]).output();
    let (status, out, _) = outcome(&output.unwrap());
    assert_eq!(status, Some(0), "{out}");
    assert!(out.contains("the command ended with exit code 0") && out.contains("\"hello\""));
    let log = containerd.log();
    assert!(log[0].ends_with(" cmd /c --flag") && !log[0].contains("directx-verify,"), "{log:?}");
}

#[test]
fn a_container_that_fails_is_removed() {
    let containerd = Containerd::new("echo no such image >&2; exit 7");
    let (status, report) = report(&mut containerd.verify(&["--namespace", "x"]));
    assert_eq!(status, Some(1));
    let first = steps(&report, "container")[0];
    assert_eq!(first["what"], "the container failed: exit code 7");
    assert_eq!(first["hint"], serde_json::Value::Null);
    assert!(first["details"].as_array().unwrap().contains(&"no such image".into()), "{first}");
    let log = containerd.log();
    let commands = ["tasks kill --signal SIGKILL ", "tasks delete --force ", "containers delete "];
    for (line, command) in log[1..4].iter().zip(commands) {
        assert!(line.starts_with(&format!("--namespace x {command}directx-verify-")), "{log:?}");
    }
}

#[test]
fn ctr_that_is_missing_is_a_failure_with_a_hint() {
    let containerd = Containerd::new("true");
    let empty = tempfile::tempdir().unwrap();
    let (status, report) = report(containerd.verify(&[]).env("PATH", empty.path()));
    assert_eq!(status, Some(1));
    let first = steps(&report, "container")[0];
    assert_eq!(first["what"], "`ctr` cannot be started");
    assert!(first["hint"].as_str().unwrap().contains("PATH"), "{first}");
}

#[test]
fn an_interruption_removes_the_container() {
    // `exec`, so that ending `ctr` ends the process that holds its output.
    let containerd = Containerd::new("exec sleep 600");
    let mut command = containerd.verify(&["--output", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(2);
    while containerd.log().is_empty() {
        assert!(Instant::now() < deadline, "verify did not start its container");
        std::thread::sleep(Duration::from_millis(10));
    }
    // What the container is called, as if it could not be removed.
    let log = containerd.log();
    let name = log[0].split(' ').find(|word| word.starts_with("directx-verify-")).unwrap();
    std::fs::write(containerd.0.path().join("left"), name).unwrap();
    let interrupt = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{report:#}");
    let found = steps(&report, "container");
    assert!(found.iter().all(|found| found["what"] == "interrupted"), "{report:#}");
    let hint = found[0]["hint"].as_str().unwrap();
    assert_eq!(hint, format!("remove the container with `ctr containers delete {name}`"));
    let log = containerd.log();
    assert!(log.contains(&format!("tasks kill --signal SIGKILL {name}")), "{log:?}");
    assert_eq!(containerd.left(), Vec::<String>::new());
    assert_eq!(step(&report, "discovery")["result"], "ok");
}
