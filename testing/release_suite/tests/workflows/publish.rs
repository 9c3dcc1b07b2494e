//! `.ci/publish`, with Debian's registry in the place of GitHub's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use image_suite::daemon::{Access, Registry};
use serde_json::Value;

use crate::files::{output, read, result, workspace};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const IMAGES: [&str; 5] = [
    "directx-device-plugin-linux",
    "directx-device-plugin",
    "wddm-device-plugin",
    "mcdm-device-plugin",
    "directx-visible",
];

/// The Windows programs in the images and archives.
const PROGRAMS: [&str; 12] = [
    "device-plugin-mcdm.exe",
    "device-plugin-wddm.exe",
    "directx-device-plugin.exe",
    "directx-feature-discovery.exe",
    "directx-visible-filter.dll",
    "directx-visible-filter32.dll",
    "directx-visible.exe",
    "directx_device_discovery.dll",
    "gen-device-mounts.exe",
    "gpu-probe.exe",
    "query-hcs-capabilities.exe",
    "test-device-discovery.exe",
];

/// A checkout with the files of a build of `main`, and the registry where they will be.
struct Bed {
    folder: tempfile::TempDir,
    registry: Registry,
    /// The owner of the images in the registry.
    owner: String,
}

impl Bed {
    fn new() -> Bed {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::with_tls();
        let owner = format!("{}/owner", registry.address);
        let bed = Bed { folder, registry, owner };
        let programs = bed.sign();
        let mut xtask = Command::new(env!("CARGO"));
        xtask.current_dir(workspace()).args(["xtask", "release", "--profile", "dev"]);
        xtask.args(["--repository", "Owner/Plugin", "--registry", &bed.owner, "--main", "7"]);
        xtask.arg("--programs").arg(programs).arg("--output").arg(bed.path("dist"));
        output(&mut xtask);
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A folder with a small library, which is signed, in place of every Windows program.
    fn sign(&self) -> PathBuf {
        let mut xtask = Command::new(env!("CARGO"));
        let libraries = output(xtask.current_dir(workspace()).args(["xtask", "visibility-filter"]));
        let library = libraries.lines().find(|line| line.ends_with("-filter.dll")).unwrap();
        let signed = self.path("signed");
        fs::create_dir(&signed).unwrap();
        for command in [
            "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=test -addext extendedKeyUsage=codeSigning \
             -keyout key.pem -out certificate.pem",
            &format!(
                "osslsigncode sign -certs certificate.pem -key key.pem -in {library} -out signed.dll"
            ),
        ] {
            output(Command::new("sh").args(["-c", command]).current_dir(&self.folder));
        }
        for name in PROGRAMS {
            fs::copy(self.path("signed.dll"), signed.join(name)).unwrap();
        }
        signed
    }

    /// Runs the script, which trusts the registry's certificate and has the login of `docker login`.
    fn publish(&self, arguments: &[&str]) -> (String, bool) {
        let mut script = Command::new(self.path(".ci/publish"));
        script.current_dir(&self.folder).env("SSL_CERT_FILE", self.registry.certificate());
        script.env("HOME", self.folder.path()).env("GITHUB_REPOSITORY", "Owner/Plugin");
        result(script.args(arguments))
    }

    /// The digest that everybody gets for a name in the registry.
    fn digest_of(&self, name: &str) -> String {
        let mut skopeo = self.skopeo();
        skopeo.args(["inspect", "--raw", "--no-creds"]).arg(format!("docker://{name}"));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), output(&mut skopeo)).unwrap();
        output(Command::new("sha256sum").arg(file.path()))[..64].to_owned()
    }

    fn skopeo(&self) -> Command {
        let mut skopeo = Command::new("skopeo");
        skopeo.env("SSL_CERT_FILE", self.registry.certificate());
        skopeo.args(["--insecure-policy", "--override-os", "windows"]);
        skopeo
    }
}

#[test]
#[ignore = "builds a release and installs its chart in a cluster: cargo xtask test release"]
fn a_build_of_main_is_published_and_installed() {
    let mut bed = Bed::new();
    let dist = bed.path("dist");
    assert!(!read(dist.join("release-notes.md")).contains("unsigned"));
    let executable = output(Command::new("find").arg(&dist).args(["-type", "f", "-perm", "/111"]));
    assert_eq!(executable, "", "jobs with credentials run nothing of these");
    builds_of_main_name_their_commit(&dist, bed.folder.path());
    signatures_stay_valid(&bed);
    checkout(bed.folder.path());
    wrong_images_are_refused(&bed);

    let (text, is_success) = bed.publish(&["dist", "published.sha256"]);
    assert!(is_success, "{text}");
    let published = read(bed.path("published.sha256"));
    let images = read(dist.join("images.txt"));
    let owner = bed.owner.clone();
    for name in IMAGES {
        let digest = bed.digest_of(&format!("{owner}/{name}:main"));
        assert!(images.contains(&format!("{owner}/{name}:main@sha256:{digest}\n")), "{images}");
        assert!(published.contains(&format!("{digest}  {owner}/{name}\n")), "{published}");
    }
    let chart = format!("{owner}/charts/directx-device-plugin");
    let digest = bed.digest_of(&format!("{chart}:0.0.0-main.7"));
    assert!(published.contains(&format!("{digest}  {chart}\n")), "{published}");
    assert_eq!(published.lines().count(), IMAGES.len() + 1);
    install(&bed, &format!("oci://{chart}"), &images);
    private_packages_are_named(&mut bed);
    // Nothing changes when the script runs again, not even the chart, in which helm writes the time.
    assert_eq!(read(bed.path("published.sha256")), published);
    main_never_moves_back(&bed);
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

/// The archives contain the programs that were given, unchanged.
fn signatures_stay_valid(bed: &Bed) {
    let program = "directx-visible.exe";
    let archive = bed.path("dist").join(format!("directx-visible-{VERSION}-windows-x86_64.zip"));
    let mut unzip = Command::new("unzip");
    output(unzip.arg(archive).arg(program).current_dir(&bed.folder));
    let mut verify = Command::new("osslsigncode");
    verify.current_dir(&bed.folder).args(["verify", "-CAfile", "certificate.pem", "-in", program]);
    output(&mut verify);
}

/// A checkout with the script, whose branch `main` has an older and a newer commit.
fn checkout(folder: &Path) {
    fs::create_dir(folder.join(".ci")).unwrap();
    fs::copy(workspace().join(".ci/publish"), folder.join(".ci/publish")).unwrap();
    for command in [
        "init --quiet",
        "add .ci",
        "commit --quiet --message older",
        "commit --quiet --message newer --allow-empty",
        "update-ref refs/remotes/origin/main HEAD",
    ] {
        git(folder, command);
    }
}

fn git(folder: &Path, arguments: &str) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@example.com"]);
    output(git.current_dir(folder).args(arguments.split(' '))).trim().to_owned()
}

/// A manifest or a list with an image that is not in the release.
fn wrong_images_are_refused(bed: &Bed) {
    let dist = bed.path("dist");
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
        let (error, is_success) = bed.publish(&["dist", "--dry-run"]);
        assert!(!is_success && error.contains(&format!("{name}: FAILED\n")), "{error}");
        output(Command::new("sh").args(["-ec", sums]).current_dir(&dist));
        let (error, is_success) = bed.publish(&["dist", "--dry-run"]);
        assert!(!is_success && error.contains(expected), "{error}");
        fs::write(&path, text).unwrap();
        output(Command::new("sh").args(["-ec", sums]).current_dir(&dist));
    }
}

/// Installs the chart from the registry on the API server of the cluster suite.
fn install(bed: &Bed, chart: &str, images: &str) {
    // All but the two that only TensorWorks' manifests name.
    let images: Vec<_> = images.lines().filter(|name| name.contains("/directx-")).collect();
    let images = images.join("\n");
    let mut go = Command::new("go");
    go.current_dir(workspace().join("testing/kubernetes"));
    go.args(["test", "-count=1", "-vet=off", "-run=TestPublishedChart", "-v", "./cluster"]);
    go.env("PUBLISHED_CERTIFICATE", bed.registry.certificate());
    let text = output(go.env("PUBLISHED_CHART", chart).env("PUBLISHED_IMAGES", images));
    assert!(text.contains("--- PASS: TestPublishedChart"), "{text}");
}

/// A second push, with a login, to packages that others cannot read.
fn private_packages_are_named(bed: &mut Bed) {
    bed.registry.restart(Access::Login);
    let docker = bed.path(".docker");
    fs::create_dir(&docker).unwrap();
    // `user:secret` in base64.
    let login =
        format!(r#"{{"auths":{{"{}":{{"auth":"dXNlcjpzZWNyZXQ="}}}}}}"#, bed.registry.address);
    fs::write(docker.join("config.json"), login).unwrap();
    let (error, is_success) = bed.publish(&["dist", "published.sha256"]);
    let package = "https://github.com/Owner/Plugin/pkgs/container/directx-device-plugin-linux,";
    assert!(!is_success && error.contains(package), "{error}");
    bed.registry.restart(Access::Everybody);
}

/// Two runs may end in the other order, and a run may be repeated after a newer one.
fn main_never_moves_back(bed: &Bed) {
    let name = format!("{}/{}:main", bed.owner, IMAGES[1]);
    let job = bed.folder.path();
    let [older, newer] = ["HEAD~1", "HEAD"].map(|commit| git(job, &format!("rev-parse {commit}")));
    let publish = || bed.publish(&["dist", "published.sha256"]);
    set_revision(bed, &name, &older);
    let (text, is_success) = publish();
    assert!(is_success, "{text}");

    set_revision(bed, &name, &newer);
    let before = bed.digest_of(&name);
    git(job, "checkout --quiet HEAD~1");
    let (error, is_success) = publish();
    let expected = format!("error: {name} is a build of {newer}, which is newer than {older}\n");
    assert!(!is_success && error.ends_with(&expected), "{error}");
    assert_eq!(bed.digest_of(&name), before);

    // After a commit was removed from the branch, its build does not stay.
    git(job, "update-ref refs/remotes/origin/main HEAD");
    let (text, is_success) = publish();
    assert!(is_success, "{text}");
    assert_ne!(bed.digest_of(&name), before);
}

/// Replaces an image by one whose manifest names a revision.
fn set_revision(bed: &Bed, name: &str, revision: &str) {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        output(bed.skopeo().args(["copy", "--quiet", "--preserve-digests", from, to]));
    };
    let files = format!("dir:{}", folder.path().display());
    copy(&format!("docker://{name}"), &files);
    let path = folder.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&read(&path)).unwrap();
    manifest["annotations"]["org.opencontainers.image.revision"] = revision.into();
    fs::write(path, manifest.to_string()).unwrap();
    copy(&files, &format!("docker://{name}"));
}
