//! Pushes to a registry, and what others get from it.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::image::{Builder, LINUX, Layout, PLUGIN, digest, error, run, text};
use image_suite::daemon::{Access, Containerd, Registry};

/// The digest of what the registry has under a name.
pub(crate) fn digest_of(image: &str) -> String {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["inspect", "--raw", "--tls-verify=false"]).arg(format!("docker://{image}"));
    digest(run(&mut skopeo).as_bytes())
}

pub(crate) fn download(image: &str, folder: &Path) -> Layout {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["--insecure-policy", "--override-os", "windows", "copy"]);
    skopeo.args(["--src-tls-verify=false", &format!("docker://{image}")]);
    run(skopeo.arg(format!("oci:{}", folder.display())));
    Layout { folder: folder.to_owned() }
}

fn tags(repository: &str) -> Vec<String> {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["list-tags", "--tls-verify=false", &format!("docker://{repository}")]);
    let list: Value = serde_json::from_str(&run(&mut skopeo)).unwrap();
    let mut tags: Vec<String> = list["Tags"].as_array().unwrap().iter().map(text).collect();
    tags.sort();
    tags
}

#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn push_and_pull_keep_every_digest() {
    let registry = Registry::start(Access::Everybody);
    let repository = format!("{}/group/plugin", registry.address);
    let builder = Builder::new();
    let printed = builder.build(1, &["--plain-http", "--push", &format!("{repository}:1.0")]);
    let image = builder.layout(PLUGIN);
    let digest = image.digest();
    assert_eq!(digest_of(&format!("{repository}:1.0")), digest);
    let group = format!("{}/group", registry.address);
    let pushed: Vec<&str> =
        printed.lines().filter_map(|line| line.strip_prefix("pushed ")).collect();
    assert_eq!(pushed.len(), 3);
    for (pushed, name) in pushed.iter().zip(["plugin", "wddm-device-plugin", "mcdm-device-plugin"])
    {
        let name = format!("{group}/{name}:1.0");
        assert_eq!(*pushed, format!("{name}@{}", digest_of(&name)));
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = download(&format!("{repository}:1.0"), &folder.path().join("copy"));
    assert_eq!(copy.digest(), digest);
    assert_eq!(fs::read(copy.layer()).unwrap(), fs::read(image.layer()).unwrap());
    assert_eq!(tags(&repository), ["1.0"]);
}

#[test]
#[ignore = "needs root, skopeo, docker-registry and containerd: cargo xtask test image"]
fn containerd_imports_and_pulls_the_images() {
    let registry = Registry::start(Access::Everybody);
    let containerd = Containerd::start();
    // containerd unpacks only images of its own system.
    let unpack = ["--snapshotter", "native"];
    for (image, platform, option, unpack, local) in [
        (PLUGIN, "windows/amd64", None, &["--no-unpack"][..], "registry.example.com"),
        (LINUX, "linux/amd64", Some("--linux"), &unpack, "localhost"),
    ] {
        let target = format!("{}/{image}:1.0", registry.address);
        let imported = Builder::new();
        let pushed = Builder::new();
        let build = |builder: &Builder, date, arguments: &[&str]| {
            builder.build(date, &[option.as_slice(), arguments].concat())
        };
        build(&imported, 1, &["--tag", "2.0"]);
        build(&pushed, 2, &["--plain-http", "--push", &target]);
        let archive = imported.output().join(format!("{image}.tar"));
        let import = ["images", "import", "--platform", platform];
        containerd.ctr(&[&import[..], unpack, &[archive.to_str().unwrap()]].concat());
        for descriptor in imported.layout(image).index()["manifests"].as_array().unwrap() {
            let name = text(&descriptor["annotations"]["io.containerd.image.name"]);
            assert!(name.starts_with(&format!("{local}/")) && name.ends_with(":2.0"), "{name}");
            containerd.assert_complete(&name, &text(&descriptor["digest"]));
        }
        let fetch = ["content", "fetch", "--plain-http", "--platform", platform];
        containerd.ctr(&[&fetch[..], &[&target]].concat());
        containerd.assert_complete(&target, &pushed.layout(image).digest());
    }
}

#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn a_tag_of_another_image_is_kept_without_replace() {
    let registry = Registry::start(Access::Everybody);
    let target = format!("{}/plugin:1.0", registry.address);
    let builder = Builder::new();
    let arguments = ["--plain-http", "--push", &target];
    builder.build(1, &arguments);
    let first = builder.layout(PLUGIN).digest();
    // Pushing the same image again changes nothing.
    builder.build(1, &arguments);
    let error = builder.error(2, &arguments);
    let second = builder.layout(PLUGIN).digest();
    let expected = format!(
        "error: {target} exists with the digest {first}; this image has {second}\n\
         hint: use another tag, or --replace\n"
    );
    assert_eq!(error, expected);
    assert_eq!(digest_of(&target), first);
    builder.build(2, &[&arguments[..], &["--replace"]].concat());
    assert_eq!(digest_of(&target), second);
}

/// Interrupts the push of the image and of the tag.
#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn an_interrupted_push_sets_no_tag_and_can_be_repeated() {
    let registry = Registry::start(Access::Everybody);
    let failing = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interrupted");
    let path = format!("{}:{}", failing.display(), std::env::var("PATH").unwrap());
    for (repository, point) in [("a", "@sha256:"), ("b", ":1.0")] {
        let repository = format!("{}/{repository}", registry.address);
        let target = format!("{repository}:1.0");
        let builder = Builder::new();
        let mut push = builder.command(1, &["--plain-http", "--push", &target]);
        push.env("PATH", &path).env("INTERRUPTED", format!("docker://{repository}{point}"));
        let found = error(&mut push);
        assert!(found.starts_with(&format!("error: cannot push {repository}{point}")), "{found}");
        assert!(found.ends_with(": connection lost\n"), "{found}");
        let mut tag = Command::new("skopeo");
        tag.args(["inspect", "--raw", "--tls-verify=false", &format!("docker://{target}")]);
        assert!(!tag.output().unwrap().status.success(), "{target} is tagged");
        builder.build(1, &["--plain-http", "--push", &target]);
        assert_eq!(digest_of(&target), builder.layout(PLUGIN).digest());
    }
}

#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn a_registry_with_a_login() {
    let registry = Registry::start(Access::Login);
    let target = format!("{}/plugin:1.0", registry.address);
    let builder = Builder::new();
    let file = builder.programs().join("auth.json");
    fs::write(&file, "{}").unwrap();
    let mut push = builder.command(1, &["--plain-http", "--push", &target]);
    let found = error(push.env("REGISTRY_AUTH_FILE", &file));
    assert!(found.starts_with(&format!("error: cannot read {target}: ")), "{found}");
    let hint = "\nhint: log in with `skopeo login REGISTRY` as a user who may push\n";
    assert!(found.ends_with(hint), "{found}");
    let auth = STANDARD.encode("user:secret");
    let credentials = json!({"auths": {&registry.address: {"auth": auth}}});
    fs::write(&file, credentials.to_string()).unwrap();
    assert!(run(&mut push).contains(&format!("pushed {target}@")));
}

#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn registries_that_cannot_be_used_are_named() {
    let registry = Registry::start(Access::ReadOnly);
    let repository = format!("{}/plugin", registry.address);
    let builder = Builder::new();
    let arguments = ["--plain-http", "--push", &format!("{repository}:1.0")];
    let found = builder.error(1, &arguments);
    assert!(found.starts_with(&format!("error: cannot push {repository}@sha256:")), "{found}");
    let found = builder.error(1, &["--push", &format!("{repository}:1.0")]);
    assert!(found.ends_with("\nhint: --plain-http connects without TLS\n"), "{found}");
    // Nothing listens on the port for TCP multiplexing.
    let found = builder.error(1, &["--plain-http", "--push", "127.0.0.1:1/plugin:1.0"]);
    assert!(found.starts_with("error: cannot read 127.0.0.1:1/plugin:1.0: "), "{found}");
    assert!(found.contains("connection refused"), "{found}");
}
