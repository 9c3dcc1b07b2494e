//! Runs the program and parses its output.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A command of the program without any configuration in its environment.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_directx-device-plugin"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.contains("DEVICE_PLUGIN") || name.starts_with("DIRECTX") {
            command.env_remove(name);
        }
    }
    command.env_remove("PLUGIN_SOCK_DIR").env_remove("POD_UID").stdin(Stdio::null());
    command
}

/// The path of a recorded host of the repository.
pub(crate) fn recorded(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/inventories").join(name)
}

/// The file name of every recorded host.
pub(crate) fn inventories() -> Vec<String> {
    let files = std::fs::read_dir(recorded("")).unwrap().map(|entry| entry.unwrap().path());
    let yaml = files.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = yaml.map(name).collect();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    names
}

/// Exit status, standard output and standard error.
pub(crate) fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A simulation: a recorded host, a configuration, flags.
#[derive(Default)]
pub(crate) struct Simulation<'a> {
    pub(crate) host: &'a str,
    pub(crate) config: &'a str,
    pub(crate) flags: &'a [&'a str],
    pub(crate) variables: &'a [(&'a str, &'a str)],
}

impl Simulation<'_> {
    /// Runs it and returns the JSON document.
    pub(crate) fn run(&self) -> Value {
        let output = self.output();
        let (status, out, err) = outcome(&output);
        let document: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
        let refused = document["pods"].as_array().unwrap().iter().any(|p| p["admitted"] == false);
        let has_pods = self.flags.iter().any(|flag| flag.starts_with("--pod"));
        assert_eq!(status, Some(i32::from(refused && has_pods)), "{err}");
        document
    }

    /// Runs it and returns exit status, standard output and standard error.
    pub(crate) fn output(&self) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, self.config).unwrap();
        let mut command = program();
        command.args(["--log-level", "error", "simulate", "--output", "json", "--inventory"]);
        // `join` keeps an absolute path, so a test can also pass a host of its own.
        command.arg(recorded(self.host)).arg("--config").arg(&config).args(self.flags);
        command.envs(self.variables.iter().copied()).current_dir(folder.path());
        command.output().unwrap()
    }
}

/// A pod of the document.
pub(crate) fn pod<'a>(document: &'a Value, name: &str) -> &'a Value {
    let pods = document["pods"].as_array().unwrap();
    pods.iter().find(|pod| pod["name"] == name).unwrap_or_else(|| panic!("no pod {name}: {pods:?}"))
}

/// The host paths of a pod's devices.
pub(crate) fn devices(pod: &Value) -> Vec<&str> {
    strings(&pod["container"]["devices"], "hostPath")
}

/// The container paths of a pod's mounts, relative to `C:\Windows`.
pub(crate) fn mounts(pod: &Value) -> Vec<&str> {
    let paths = strings(&pod["container"]["mounts"], "containerPath");
    paths.into_iter().map(|path| path.strip_prefix(r"C:\Windows\").unwrap()).collect()
}

/// The notes of a pod, one per line.
pub(crate) fn notes(pod: &Value) -> String {
    let notes = pod["notes"].as_array().unwrap().iter();
    notes.map(|note| note.as_str().unwrap().to_owned() + "\n").collect()
}

/// Name and capacity of each resource.
pub(crate) fn capacities(document: &Value) -> Vec<(String, u64)> {
    let resources = document["resources"].as_array().unwrap().iter();
    resources
        .map(|r| (r["name"].as_str().unwrap().to_owned(), r["capacity"].as_u64().unwrap()))
        .collect()
}

fn strings<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap()).collect()
}
