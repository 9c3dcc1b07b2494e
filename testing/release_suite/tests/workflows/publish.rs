//! Runs the commands of the workflows that package and publish, as the jobs do.
//!
//! Debian's registry stands in for GitHub's. The programs are stand-ins, too: a small library that
//! is signed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use image_suite::daemon::{Access, Registry};

use serde_json::Value;

use crate::runner::{Runner, output, read, result, workspace};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const IMAGES: [&str; 3] =
    ["directx-device-plugin-linux", "directx-device-plugin", "directx-visible"];

#[test]
#[ignore = "builds a release and installs its chart in a cluster: cargo xtask test release"]
fn the_workflows_publish_what_users_install() {
    let registry = Registry::start(Access::Everybody);
    let owner = format!("{}/owner", registry.address);
    let runner = Runner::new(&owner);

    let target = workspace().join("target");
    for name in ["programs.tar", "signed", "dist"].map(|name| target.join(name)) {
        let mut remove = Command::new("rm");
        output(remove.args(["-r", "-f"]).arg(name));
    }
    let variables = [("PROGRAMS", "target/x86_64-pc-windows-gnu/debug"), ("MAIN", "7")];
    runner.run("package", "build", &workspace(), &variables);
    let signed = sign(&runner);
    fs::copy(runner.path("sign/signed.tar"), target.join("signed.tar")).unwrap();
    runner.run("package", "package", &workspace(), &[("DIGEST", signed.as_str()), ("MAIN", "7")]);
    let packed = runner.digest();
    let dist = target.join("dist");
    assert!(!read(dist.join("release-notes.md")).contains("unsigned"));
    let executable = output(Command::new("find").arg(&dist).args(["-type", "f", "-perm", "/111"]));
    assert_eq!(executable, "", "jobs with credentials run nothing of these");

    builds_of_main_name_their_commit(&dist, runner.folder.path());
    let job = checkout(&runner);
    fs::copy(target.join("dist.tar"), job.join("dist.tar")).unwrap();
    runner.run("package", "check", &job, &[("DIGEST", packed.as_str())]);
    wrong_images_are_refused(&runner, &job);
    runner.run("publish", "publish", &job, &[("DIGEST", packed.as_str()), ("TOKEN", "secret")]);
    let signature = runner.digest();

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
    // Nothing changes when the job runs again, not even the chart, in which helm writes the time.
    assert_eq!(read(job.join("published.sha256")), published);
    install(&format!("oci://{chart}"), &images);

    let release = runner.path("release");
    fs::create_dir(&release).unwrap();
    for name in ["dist.tar", "SHA256SUMS.sigstore.json"] {
        fs::copy(job.join(name), release.join(name)).unwrap();
    }
    let variables = [("DIGEST", &*packed), ("SIGNATURE", &*signature), ("GH_TOKEN", "secret")];
    let variables = [&variables[..], &[("GH_REPO", "Owner/Plugin")]].concat();
    runner.run("release", "release", &release, &variables);
    let calls = read(runner.path("calls"));
    assert!(calls.contains(&format!("cosign sign --yes {chart}@sha256:{digest}\n")), "{calls}");
    let call = calls.lines().find(|line| line.starts_with("gh release create")).unwrap();
    for name in output(Command::new("ls").arg(release.join("dist"))).lines() {
        assert!(call.contains(name), "{name} is not in `{call}`");
    }
    assert!(call.contains("SHA256SUMS.sigstore.json"), "{call}");
    let program = "directx-visible.exe";
    let archive = dist.join(format!("directx-visible-{VERSION}-windows-x86_64.zip"));
    let mut unzip = Command::new("unzip");
    output(unzip.arg(archive).arg(program).current_dir(runner.folder.path()));
    let mut verify = Command::new("osslsigncode");
    verify.current_dir(runner.folder.path());
    output(verify.args(["verify", "-CAfile", "certificate.pem", "-in", program]));
    main_never_moves_back(&runner, &job, &owner);
}

/// Otherwise, nobody can tell one from another. What differs from the commit is `modified`.
fn builds_of_main_name_their_commit(dist: &Path, folder: &Path) {
    let version = format!("{VERSION}-g{}", &git(&workspace(), "rev-parse HEAD")[..12]);
    let name = format!("directx-device-plugin-{VERSION}-linux-x86_64");
    let mut tar = Command::new("tar");
    output(tar.current_dir(folder).arg("-xzf").arg(dist.join(format!("{name}.tar.gz"))));
    for program in ["directx-device-plugin", "directx-feature-discovery"] {
        let printed =
            output(Command::new(folder.join(&name).join("bin").join(program)).arg("--version"));
        assert!(printed.starts_with(&format!("{program} {version}")), "{printed}");
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzOf").arg(dist.join("directx-device-plugin-0.0.0-main.7.tgz"));
    let chart = output(tar.arg("directx-device-plugin/Chart.yaml"));
    assert!(chart.contains(&format!("\nappVersion: \"{version}")), "{chart}");
}

/// A checkout with the script that publishes, whose branch `main` has an older and a newer commit.
fn checkout(runner: &Runner) -> PathBuf {
    let job = runner.path("publish");
    fs::create_dir_all(job.join(".ci")).unwrap();
    fs::copy(workspace().join(".ci/publish"), job.join(".ci/publish")).unwrap();
    for command in [
        "init --quiet",
        "add .ci",
        "commit --quiet --message older",
        "commit --quiet --message newer --allow-empty",
        "update-ref refs/remotes/origin/main HEAD",
    ] {
        git(&job, command);
    }
    job
}

fn git(folder: &Path, arguments: &str) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@example.com"]);
    output(git.current_dir(folder).args(arguments.split(' '))).trim().to_owned()
}

/// Two runs may end in the other order, and a run may be repeated after a newer one.
fn main_never_moves_back(runner: &Runner, job: &Path, owner: &str) {
    let name = format!("{owner}/{}:main", IMAGES[1]);
    let [older, newer] = ["HEAD~1", "HEAD"].map(|commit| git(job, &format!("rev-parse {commit}")));
    let publish = || runner.publish(job, &["dist", "published.sha256"]);
    set_revision(&name, &older);
    let (text, is_success) = publish();
    assert!(is_success, "{text}");

    set_revision(&name, &newer);
    let before = digest_of(&name);
    git(job, "checkout --quiet HEAD~1");
    let (error, is_success) = publish();
    let expected = format!("error: {name} is a build of {newer}, which is newer than {older}\n");
    assert!(!is_success && error.ends_with(&expected), "{error}");
    assert_eq!(digest_of(&name), before);

    // After a commit was removed from the branch, its build does not stay.
    git(job, "update-ref refs/remotes/origin/main HEAD");
    let (text, is_success) = publish();
    assert!(is_success, "{text}");
    assert_ne!(digest_of(&name), before);
}

/// Replaces an image by one whose manifest names a revision.
fn set_revision(name: &str, revision: &str) {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["--insecure-policy", "--override-os", "windows", "copy", "--quiet"]);
        skopeo.args(["--src-tls-verify=false", "--dest-tls-verify=false", "--preserve-digests"]);
        output(skopeo.args([from, to]));
    };
    let files = format!("dir:{}", folder.path().display());
    copy(&format!("docker://{name}"), &files);
    let path = folder.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&read(&path)).unwrap();
    manifest["annotations"]["org.opencontainers.image.revision"] = revision.into();
    fs::write(path, manifest.to_string()).unwrap();
    copy(&files, &format!("docker://{name}"));
}

/// Signs a small library in place of every program, and returns the digest of the result.
fn sign(runner: &Runner) -> String {
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
    let target = workspace().join("target");
    let library = target.join("x86_64-pc-windows-gnu/debug/directx-visible-filter.dll");
    let [job, built] = ["sign", "built"].map(|name| folder.join(name));
    fs::create_dir(&job).unwrap();
    fs::create_dir(&built).unwrap();
    let list = output(Command::new("tar").arg("-tf").arg(target.join("programs.tar")));
    for name in list.lines() {
        fs::copy(&library, built.join(name)).unwrap();
    }
    let mut tar = Command::new("tar");
    output(tar.current_dir(&built).args(["-cf", "../sign/programs.tar", "."]));
    let digest = output(Command::new("sha256sum").arg(job.join("programs.tar")));
    let variables = [
        ("DIGEST", &digest[..64]),
        ("CERTIFICATE", &*certificate),
        ("PASSWORD", "secret"),
        ("TIMESTAMP_URL", "http://timestamp.example.com"),
    ];
    runner.run("package", "sign", &job, &variables);
    runner.digest()
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
    let dist = job.join("dist");
    let sums = "sha256sum $(cut -c67- SHA256SUMS) > new && mv new SHA256SUMS";
    for (name, expected) in [
        (
            "directx-device-plugin.yml",
            "error: the images of the manifests differ from images.txt in\n",
        ),
        ("images.txt", "error: the images of the chart differ from images.txt in\n"),
    ] {
        let path = dist.join(name);
        let text = read(&path);
        fs::write(&path, text.replacen("@sha256:", "@sha256:0", 1)).unwrap();
        let (error, is_success) = runner.publish(job, &["dist", "--dry-run"]);
        assert!(!is_success && error.contains(&format!("{name}: FAILED\n")), "{error}");
        output(Command::new("sh").args(["-ec", sums]).current_dir(&dist));
        let (error, is_success) = runner.publish(job, &["dist", "--dry-run"]);
        assert!(!is_success && error.contains(expected), "{error}");
        fs::write(&path, text).unwrap();
        output(Command::new("sh").args(["-ec", sums]).current_dir(&dist));
    }
}

/// A second push, which changes nothing, and finds a package that needs a login.
fn private_packages_are_named(runner: &Runner, job: &Path) {
    let mut script = Command::new(job.join(".ci/publish"));
    runner.in_environment(script.current_dir(job).args(["dist", "published.sha256"]));
    let (error, is_success) = result(script.env("PRIVATE", "1"));
    let package = "https://github.com/Owner/Plugin/pkgs/container/directx-device-plugin-linux,";
    assert!(!is_success && error.contains(package), "{error}");
}

/// Installs the chart from the registry on the API server of the cluster suite.
fn install(chart: &str, images: &str) {
    let mut go = Command::new("go");
    go.current_dir(workspace().join("testing/kubernetes"));
    go.args(["test", "-count=1", "-vet=off", "-run=TestPublishedChart", "-v", "./cluster"]);
    let text = output(go.env("PUBLISHED_CHART", chart).env("PUBLISHED_IMAGES", images));
    assert!(text.contains("--- PASS: TestPublishedChart"), "{text}");
}
