//! Reads the workflows, and runs commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a command prints, and whether it succeeds.
pub(crate) fn result(command: &mut Command) -> (String, bool) {
    let result = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [result.stdout, result.stderr].concat();
    (String::from_utf8(text).unwrap(), result.status.success())
}

pub(crate) fn output(command: &mut Command) -> String {
    let (text, is_success) = result(command);
    assert!(is_success, "{command:?}: {text}");
    text
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// The names of all workflows.
pub(crate) fn workflows() -> Vec<String> {
    let files = fs::read_dir(workspace().join(".github/workflows")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The jobs of a workflow.
pub(crate) fn jobs(workflow: &str) -> Value {
    let text = read(workspace().join(format!(".github/workflows/{workflow}.yml")));
    let document: Value = serde_saphyr::from_str(&text).unwrap();
    document["jobs"].clone()
}

/// Whether a job may change something, such as packages, or sign as the repository.
pub(crate) fn may_write(job: &Value) -> bool {
    job["permissions"].as_object().is_some_and(|all| all.values().any(|right| right == "write"))
}

/// The steps of a job that run commands.
pub(crate) fn steps(job: &Value) -> impl Iterator<Item = &Value> {
    job["steps"].as_array().into_iter().flatten().filter(|step| step["run"].is_string())
}
