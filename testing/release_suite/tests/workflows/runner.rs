//! A runner of GitHub, which runs the commands of a job.
//!
//! Stand-ins for `docker`, `cosign` and `gh` record how they are called.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
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

pub(crate) fn write_program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
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

/// Whether a step installs tools of the runner, or runs in PowerShell, the default on Windows.
pub(crate) fn needs_github(job: &Value, step: &Value) -> bool {
    let commands = step["run"].as_str().unwrap();
    let is_windows = !job["runs-on"].as_str().unwrap().starts_with("ubuntu");
    commands.starts_with("sudo apt-get")
        || commands.starts_with("rustup ")
        || is_windows && step["shell"] != "bash"
}

/// What a job that may write finds in addition to the stand-ins: programs of the runner.
const TRUSTED: [&str; 18] = [
    "bash",
    "cat",
    "comm",
    "cut",
    "dirname",
    "git",
    "grep",
    "helm",
    "mktemp",
    "mv",
    "realpath",
    "rm",
    "sed",
    "sha256sum",
    "skopeo",
    "sort",
    "tar",
    "tr",
];

/// The runner of the workflows, with its tools in front of those of this machine.
pub(crate) struct Runner {
    pub(crate) folder: tempfile::TempDir,
}

impl Runner {
    /// `registry` is where releases are published.
    pub(crate) fn new(registry: &str) -> Runner {
        // Below the root, so that cargo finds the workspace.
        let folder = tempfile::tempdir_in(workspace().join("target")).unwrap();
        let runner = Runner { folder };
        let inventory = workspace().join("fixtures/inventories/aws-t4-two.yaml");
        runner.tool(
            "cargo",
            &format!(
                "case \"$*\" in\n*--profile*) ;;\nxtask\\ image*) set -- \"$@\" --profile dev ;;\n\
                 xtask\\ release*) set -- \"$@\" --profile dev --registry {registry} ;;\n\
                 xtask\\ test*) set -- \"$@\" --list ;;\n\
                 run\\ *) set -- \"$@\" --inventory {} ;;\nesac\nexec {} \"$@\"",
                inventory.display(),
                env!("CARGO")
            ),
        );
        let log = runner.path("calls");
        for (name, more) in [
            ("docker", ""),
            ("gh", ""),
            ("cosign", "case $1 in sign-blob) echo {} > \"$4\" ;; esac"),
        ] {
            runner.tool(name, &format!("echo {name} \"$@\" >> {}\n{more}", log.display()));
        }
        // No timestamp server.
        let drop_timestamp = "for argument; do\n\
            shift\ncase \"$skip$argument\" in\n-ts) skip=1 ;;\n1*) skip= ;;\n*) set -- \"$@\" \"$argument\" ;;\nesac\n\
            done\nPATH=${PATH#*:} exec osslsigncode \"$@\"";
        runner.tool("osslsigncode", drop_timestamp);
        // A package of GitHub's registry may be private at first. The registry on this machine has no
        // TLS.
        let skopeo = "case \"$PRIVATE $*\" in 1*--no-creds*) exit 1 ;; esac\n\
            case \"$*\" in\n*\" copy \"*) set -- \"$@\" --dest-tls-verify=false ;;\n\
            *\" inspect \"*) set -- \"$@\" --tls-verify=false ;;\nesac\n\
            PATH=${PATH#*:} exec skopeo \"$@\"";
        runner.tool("skopeo", skopeo);
        let helm = "case $1 in push) set -- \"$@\" --plain-http ;; esac\n\
            PATH=${PATH#*:} exec helm \"$@\"";
        runner.tool("helm", helm);
        fs::create_dir(runner.path("trusted")).unwrap();
        for name in TRUSTED {
            let program = output(Command::new("sh").args(["-c", &format!("command -v {name}")]));
            symlink(program.trim(), runner.path("trusted").join(name)).unwrap();
        }
        runner
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a script in front of the tools of this machine.
    pub(crate) fn tool(&self, name: &str, script: &str) {
        write_program(&self.path("tools").join(name), &format!("#!/bin/sh\n{script}\n"));
    }

    pub(crate) fn in_environment(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.path("tools").display()));
        command.env("GITHUB_OUTPUT", self.path("outputs"));
        // In a container, the checkout belongs to another user.
        command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
        command.env("GITHUB_WORKSPACE", workspace()).env("GITHUB_REPOSITORY", "Owner/Plugin");
        command.env("GITHUB_ACTOR", "owner");
        command.env("GITHUB_REF_NAME", concat!("v", env!("CARGO_PKG_VERSION")));
        command.env("GITHUB_STEP_SUMMARY", self.path("summary.md"));
    }

    /// Runs the commands of a job in `folder`, except those that need GitHub. `variables` are those
    /// whose values GitHub knows.
    pub(crate) fn run(&self, workflow: &str, job: &str, folder: &Path, variables: &[(&str, &str)]) {
        let job = &jobs(workflow)[job];
        fs::write(self.path("outputs"), "").unwrap();
        let mut count = 0;
        for step in steps(job).filter(|step| !needs_github(job, step)) {
            count += 1;
            // GitHub's defaults.
            let mut command = if step["shell"] == "bash" {
                let mut bash = Command::new("bash");
                bash.args(["--noprofile", "--norc", "-o", "pipefail"]);
                bash
            } else {
                Command::new(if job["container"].is_null() { "bash" } else { "sh" })
            };
            command.args(["-e", "-c", step["run"].as_str().unwrap()]);
            self.in_environment(&mut command);
            if may_write(job) {
                let [tools, trusted] = ["tools", "trusted"].map(|name| self.path(name));
                command.env("PATH", format!("{}:{}", tools.display(), trusted.display()));
            }
            for (name, value) in step["env"].as_object().into_iter().flatten() {
                let given = variables.iter().find(|(given, _)| given == name);
                let value = given.map_or(value.as_str().unwrap(), |(_, value)| value);
                assert!(!value.contains("${{"), "{workflow}: the test does not set {name}");
                command.env(name, value);
            }
            let working_directory = step["working-directory"].as_str().unwrap_or(".");
            output(command.current_dir(folder.join(working_directory)));
        }
        assert!(count > 0, "{workflow} has no such commands");
    }

    /// The digest that the last job has as its output.
    pub(crate) fn digest(&self) -> String {
        let outputs = read(self.path("outputs"));
        let digest = outputs.trim().strip_prefix("digest=").unwrap_or_else(|| panic!("{outputs}"));
        assert_eq!(digest.len(), 64, "{digest}");
        digest.to_owned()
    }

    /// The script that publishes, in a folder of a job.
    pub(crate) fn publish(&self, folder: &Path, arguments: &[&str]) -> (String, bool) {
        let mut script = Command::new(folder.join(".ci/publish"));
        self.in_environment(script.current_dir(folder).args(arguments));
        result(&mut script)
    }
}
