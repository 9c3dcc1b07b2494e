//! Runs the commands of the workflows that package and publish, as the jobs do.
//!
//! Debian's registry stands in for GitHub's. Stand-ins for `docker`, `cosign` and `gh` record how they
//! are called. The programs are stand-ins, too: a small library that is signed.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use image_suite::daemon::{Access, Registry};
use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const IMAGES: [&str; 3] =
    ["directx-device-plugin-linux", "directx-device-plugin", "directx-visible"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a command prints, and whether it succeeds.
fn result(command: &mut Command) -> (String, bool) {
    let result = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [result.stdout, result.stderr].concat();
    (String::from_utf8(text).unwrap(), result.status.success())
}

fn output(command: &mut Command) -> String {
    let (text, is_success) = result(command);
    assert!(is_success, "{command:?}: {text}");
    text
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn write_program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The runner of the workflows, with its tools in front of those of this machine.
struct Runner {
    folder: tempfile::TempDir,
}

impl Runner {
    /// `registry` is where releases are published.
    fn new(registry: &str) -> Runner {
        let runner = Runner { folder: tempfile::tempdir().unwrap() };
        let cargo = env!("CARGO");
        runner.tool(
            "cargo",
            &format!(
                "case \"$2\" in\nimage) set -- \"$@\" --profile dev ;;\n\
                 release) set -- \"$@\" --profile dev --registry {registry} ;;\nesac\nexec {cargo} \"$@\""
            ),
        );
        let log = runner.path("calls");
        for name in ["docker", "cosign", "gh"] {
            runner.tool(name, &format!("echo {name} \"$@\" >> {}", log.display()));
        }
        // The test has no timestamp server.
        let drop_timestamp = "for argument; do\n\
            shift\ncase \"$skip$argument\" in\n-ts) skip=1 ;;\n1*) skip= ;;\n*) set -- \"$@\" \"$argument\" ;;\nesac\n\
            done\nPATH=${PATH#*:} exec osslsigncode \"$@\"";
        runner.tool("osslsigncode", drop_timestamp);
        // A package of GitHub's registry may be private at first.
        let private = "case \"$PRIVATE $*\" in 1*--no-creds*) exit 1 ;; esac";
        runner.tool("skopeo", &format!("{private}\nPATH=${{PATH#*:}} exec skopeo \"$@\""));
        let mut helm = Command::new("go");
        helm.current_dir(workspace().join("testing/kubernetes")).args(["tool", "-n", "helm"]);
        symlink(output(&mut helm).trim(), runner.path("tools/helm")).unwrap();
        runner
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tool(&self, name: &str, script: &str) {
        write_program(&self.path("tools").join(name), &format!("#!/bin/sh\n{script}\n"));
    }

    fn in_environment(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.path("tools").display()));
        command.env("GIT_CONFIG_GLOBAL", self.path("gitconfig"));
        command.env("GITHUB_WORKSPACE", workspace()).env("GITHUB_REPOSITORY", "Owner/Plugin");
        command.env("GITHUB_ACTOR", "owner").env("GITHUB_REF_NAME", format!("v{VERSION}"));
    }

    /// Runs the commands of a job in `folder`, except steps that install tools of the runner.
    fn run(&self, workflow: &str, job: &str, folder: &Path, variables: &[(&str, &str)]) {
        let text = read(workspace().join(format!(".github/workflows/{workflow}.yml")));
        let document: Value = serde_saphyr::from_str(&text).unwrap();
        let job = &document["jobs"][job];
        // These are GitHub's default shells.
        let shell = if job["container"].is_null() { "bash" } else { "sh" };
        let mut count = 0;
        for step in job["steps"].as_array().unwrap() {
            let Some(commands) = step["run"].as_str() else { continue };
            if commands.starts_with("sudo apt-get") {
                continue;
            }
            count += 1;
            for variable in step["env"].as_object().into_iter().flat_map(|env| env.keys()) {
                let is_given = variables.iter().any(|(name, _)| name == variable);
                assert!(is_given, "{workflow}: the test does not set {variable}");
            }
            let working_directory = step["working-directory"].as_str().unwrap_or(".");
            let mut command = Command::new(shell);
            self.in_environment(command.args(["-e", "-c", commands]));
            command.current_dir(folder.join(working_directory)).envs(variables.iter().copied());
            output(&mut command);
        }
        assert!(count > 0, "{workflow} has no such commands");
    }

    /// `xtask` in a folder of a job that has credentials.
    fn xtask(&self, folder: &Path, arguments: &[&str]) -> (String, bool) {
        let mut xtask = Command::new(folder.join("target/debug/xtask"));
        self.in_environment(xtask.current_dir(folder).args(arguments));
        result(&mut xtask)
    }
}

#[test]
#[ignore = "builds a release and installs its chart in a cluster: cargo xtask test release"]
fn the_workflows_publish_what_users_install() {
    let registry = Registry::start(Access::Everybody);
    let owner = format!("{}/owner", registry.address);
    let runner = Runner::new(&owner);

    runner.run("package", "build", &workspace(), &[]);
    sign(&runner);
    let target = workspace().join("target");
    let [signed, dist] = ["signed", "dist"].map(|name| target.join(name));
    for folder in [&signed, &dist].into_iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder).unwrap();
    }
    output(Command::new("cp").arg("-r").arg(runner.path("sign/programs")).arg(&signed));
    runner.run("package", "package", &workspace(), &[("MAIN", "7")]);
    assert!(!read(dist.join("release-notes.md")).contains("unsigned"));

    let job = runner.path("publish");
    write_program(
        &job.join("target/debug/xtask"),
        &format!(
            "#!/bin/sh\ncase \"$*\" in *--dry-run) ;; *) set -- \"$@\" --plain-http ;; esac\nexec {} \"$@\"\n",
            target.join("debug/xtask").display()
        ),
    );
    output(Command::new("cp").arg("-r").arg(&dist).arg(job.join("target/dist")));
    wrong_images_are_refused(&runner, &job);
    runner.run("package", "check", &job, &[]);
    runner.run("publish", "publish", &job, &[("TOKEN", "secret")]);

    let published = read(job.join("published.sha256"));
    let images = read(dist.join("images.txt"));
    for name in IMAGES {
        let digest = digest_of(&format!("{owner}/{name}:main"));
        assert!(images.contains(&format!("{owner}/{name}:main@sha256:{digest}\n")), "{images}");
        assert!(published.contains(&format!("{digest}  {owner}/{name}\n")), "{published}");
    }
    let chart = format!("{owner}/charts/directx-device-plugin");
    let digest = digest_of(&format!("{chart}:0.0.0-main.7"));
    assert!(published.contains(&format!("{digest}  {chart}\n")), "{published}");
    assert_eq!(published.lines().count(), IMAGES.len() + 1);
    private_packages_are_named(&runner, &job);
    install(&format!("oci://{chart}"), &images);

    runner.run("release", "release", &job, &[("GH_TOKEN", "secret"), ("GH_REPO", "Owner/Plugin")]);
    let calls = read(runner.path("calls"));
    assert!(calls.contains(&format!("cosign sign --yes {chart}@sha256:{digest}\n")), "{calls}");
    let release = calls.lines().find(|line| line.starts_with("gh release create")).unwrap();
    for name in output(Command::new("ls").arg(&dist)).lines() {
        assert!(release.contains(name), "{name} is not in `{release}`");
    }
    let program = "directx-visible.exe";
    let archive = dist.join(format!("directx-visible-{VERSION}-windows-x86_64.zip"));
    let mut unzip = Command::new("unzip");
    output(unzip.arg(archive).arg(program).current_dir(runner.folder.path()));
    let mut verify = Command::new("osslsigncode");
    verify.current_dir(runner.folder.path());
    output(verify.args(["verify", "-CAfile", "certificate.pem", "-in", program]));
}

/// Signs a small library in place of every program.
fn sign(runner: &Runner) {
    let folder = runner.folder.path();
    for command in [
        "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=test -addext extendedKeyUsage=codeSigning \
         -keyout key.pem -out certificate.pem",
        "openssl pkcs12 -export -inkey key.pem -in certificate.pem -out certificate.pfx -passout pass:secret",
    ] {
        output(Command::new("sh").args(["-c", command]).current_dir(folder));
    }
    let certificate =
        output(Command::new("base64").arg("--wrap=0").arg(folder.join("certificate.pfx")));
    let built = workspace().join("target/x86_64-pc-windows-gnu/debug");
    let programs = folder.join("sign/programs");
    fs::create_dir_all(&programs).unwrap();
    for file in fs::read_dir(&built).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|end| end == "exe" || end == "dll") {
            let name = file.file_name().unwrap();
            fs::copy(built.join("directx-visible-filter.dll"), programs.join(name)).unwrap();
        }
    }
    let certificate = [
        ("CERTIFICATE", &*certificate),
        ("PASSWORD", "secret"),
        ("TIMESTAMP_URL", "http://timestamp.example.com"),
    ];
    runner.run("package", "sign", &folder.join("sign"), &certificate);
}

/// The digest that everybody gets for a name in the registry.
fn digest_of(name: &str) -> String {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["inspect", "--raw", "--no-creds", "--tls-verify=false"]);
    let manifest = skopeo.arg(format!("docker://{name}")).output().unwrap();
    assert!(manifest.status.success(), "{name}: {}", String::from_utf8_lossy(&manifest.stderr));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), manifest.stdout).unwrap();
    output(Command::new("sha256sum").arg(file.path()))[..64].to_owned()
}

/// A manifest or a list with an image that is not in the release.
fn wrong_images_are_refused(runner: &Runner, job: &Path) {
    let dist = job.join("target/dist");
    let sums = "sha256sum $(cut -c67- SHA256SUMS) > new && mv new SHA256SUMS";
    for (name, expected) in [
        ("directx-device-plugin.yml", "manifests and chart differ from images.txt in "),
        ("images.txt", "manifests and chart differ from images.txt in "),
    ] {
        let path = dist.join(name);
        let text = read(&path);
        fs::write(&path, text.replacen("@sha256:", "@sha256:0", 1)).unwrap();
        let (error, is_success) = runner.xtask(job, &["publish", "target/dist", "--dry-run"]);
        assert!(!is_success && error.contains("SHA256SUMS"), "{error}");
        output(Command::new("sh").args(["-ec", sums]).current_dir(&dist));
        let (error, is_success) = runner.xtask(job, &["publish", "target/dist", "--dry-run"]);
        assert!(!is_success && error.contains(expected), "{error}");
        fs::write(&path, text).unwrap();
        output(Command::new("sh").args(["-ec", sums]).current_dir(&dist));
    }
}

/// A second push, which changes nothing, and finds a package that needs a login.
fn private_packages_are_named(runner: &Runner, job: &Path) {
    let mut xtask = Command::new(job.join("target/debug/xtask"));
    runner.in_environment(xtask.current_dir(job).args(["publish", "target/dist"]));
    let (error, is_success) = result(xtask.env("PRIVATE", "1"));
    let package = "https://github.com/Owner/Plugin/pkgs/container/directx-device-plugin-linux,";
    assert!(!is_success && error.contains(package), "{error}");
}

/// A workflow for a tag builds the version that the tag names.
#[test]
fn a_tag_of_another_version_is_refused() {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.current_dir(workspace()).args(["xtask", "release", "--repository", "Owner/Plugin"]);
    let folder = tempfile::tempdir().unwrap();
    xtask.arg("--output").arg(folder.path().join("dist"));
    let (error, is_success) =
        result(xtask.env("GITHUB_REF_TYPE", "tag").env("GITHUB_REF_NAME", "v99.0.0"));
    let expected = format!("error: the tag is v99.0.0, the version is {VERSION}\n");
    assert!(!is_success && error.ends_with(&expected), "{error}");
}

/// Installs the chart from the registry on the API server of the cluster suite.
fn install(chart: &str, images: &str) {
    let mut go = Command::new("go");
    go.current_dir(workspace().join("testing/kubernetes"));
    go.args(["test", "-count=1", "-vet=off", "-run=TestPublishedChart", "-v", "./cluster"]);
    let text = output(go.env("PUBLISHED_CHART", chart).env("PUBLISHED_IMAGES", images));
    assert!(text.contains("--- PASS: TestPublishedChart"), "{text}");
}

/// The matrix of the workflow runs every step of the tests once.
#[test]
fn the_workflow_runs_every_step() {
    let text = read(workspace().join(".github/workflows/linux.yml"));
    let mut in_workflow: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("steps: "))
        .flat_map(|steps| steps.split(' '))
        .collect();
    let mut xtask = Command::new(env!("CARGO"));
    let list = output(xtask.current_dir(workspace()).args(["xtask", "test", "--list"]));
    let mut expected: Vec<&str> =
        list.lines().map(|line| line.split(' ').next().unwrap()).collect();
    in_workflow.sort_unstable();
    expected.sort_unstable();
    assert_eq!(in_workflow, expected);
}

#[test]
fn the_workflow_checks_the_declared_version_of_rust() {
    let manifest = read(workspace().join("Cargo.toml"));
    let declared = manifest.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    let workflow = read(workspace().join(".github/workflows/test.yml"));
    assert!(workflow.contains(&format!("      RUST: '{declared}'\n")), "{declared}");
}
