//! Runs the commands of the workflows that package and publish, as the jobs do.
//!
//! Debian's registry stands in for GitHub's. The programs are stand-ins, too: a small library that
//! is signed.

use std::fs;
use std::path::Path;
use std::process::Command;

use image_suite::daemon::{Access, Registry};

use crate::runner::{Runner, output, read, result, workspace, write_program};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const IMAGES: [&str; 3] =
    ["directx-device-plugin-linux", "directx-device-plugin", "directx-visible"];

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

/// Installs the chart from the registry on the API server of the cluster suite.
fn install(chart: &str, images: &str) {
    let mut go = Command::new("go");
    go.current_dir(workspace().join("testing/kubernetes"));
    go.args(["test", "-count=1", "-vet=off", "-run=TestPublishedChart", "-v", "./cluster"]);
    let text = output(go.env("PUBLISHED_CHART", chart).env("PUBLISHED_IMAGES", images));
    assert!(text.contains("--- PASS: TestPublishedChart"), "{text}");
}
