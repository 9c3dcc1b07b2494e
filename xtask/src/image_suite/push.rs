//! Pushes to a real registry, and what others get from it.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::build::{self, Layout, failure, run, text};
use super::containerd::Containerd;
use super::registry::{Access, Registry, credentials};
use super::{Context, TestCase, skopeo};
use crate::image::{INDEX, MANIFEST, PLUGIN};

pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase { name: "push and pull keep the digest", run: push_and_pull },
        TestCase { name: "bill of materials and provenance refer to it", run: referrers },
        TestCase { name: "containerd imports and pulls the image", run: containerd },
        TestCase { name: "a tag of another image is kept without --replace", run: existing_tag },
        TestCase { name: "a registry with a login", run: login },
        TestCase { name: "a read-only registry", run: read_only },
    ]
}

/// The release image, pushed.
struct Pushed {
    registry: Registry,
    repository: String,
    digest: String,
}

fn pushed(context: &Context) -> Result<Pushed> {
    let registry = Registry::start(&context.tools, Access::Everybody)?;
    let repository = format!("{}/group/plugin", registry.address);
    let folder = tempfile::tempdir()?;
    let target = format!("{repository}:1.0");
    let built =
        crate::workspace::target_dir().join(crate::workspace::WINDOWS_TARGET).join("release");
    let mut push = build::command(&["--plain-http", "--push", &target]);
    let output = run(push.arg("--programs").arg(built).arg("--output").arg(folder.path()))?;
    let digest = context.builds.release.digest()?;
    let line = format!("pushed {target}@{digest}\n");
    ensure!(output.ends_with(&line), "expected {line}found {output}");
    Ok(Pushed { registry, repository, digest })
}

fn push_and_pull(context: &Context) -> Result<()> {
    let Pushed { registry: _registry, repository, digest } = pushed(context)?;
    let tag = format!("{repository}:1.0");
    ensure!(skopeo::inspect(&tag)?.1 == digest, "the tag has another digest");
    let folder = tempfile::tempdir()?;
    let copy = skopeo::download(&tag, &folder.path().join("copy"))?;
    ensure!(copy.digest()? == digest, "the copy has another digest");
    let original = std::fs::read(context.builds.release.top_layer()?)?;
    ensure!(std::fs::read(copy.top_layer()?)? == original, "the layer differs");
    let mut tags = skopeo::tags(&repository)?;
    tags.sort();
    ensure!(tags == ["1.0".to_owned(), digest.replacen(':', "-", 1)], "{tags:?}");
    Ok(())
}

fn referrers(context: &Context) -> Result<()> {
    let Pushed { registry: _registry, repository, digest } = pushed(context)?;
    let (index, _) = skopeo::inspect(&format!("{repository}:{}", digest.replacen(':', "-", 1)))?;
    ensure!(index["mediaType"] == INDEX, "{index}");
    let listed = index["manifests"].as_array().context("the index is empty")?;
    let expected = ["application/vnd.cyclonedx+json", "application/vnd.in-toto+json"];
    ensure!(listed.len() == expected.len(), "{index}");
    let folder = tempfile::tempdir()?;
    for (descriptor, media_type) in listed.iter().zip(expected) {
        let name = format!("{repository}@{}", text(&descriptor["digest"])?);
        let (manifest, found) = skopeo::inspect(&name)?;
        ensure!(found == text(&descriptor["digest"])?, "{name} has the digest {found}");
        ensure!(manifest["mediaType"] == MANIFEST, "{manifest}");
        ensure!(manifest["artifactType"] == media_type, "{manifest}");
        ensure!(manifest["subject"]["digest"] == *digest, "{manifest}");
        let copy = skopeo::download(&name, &folder.path().join(&found[7..]))?;
        let document: serde_json::Value =
            serde_json::from_slice(&std::fs::read(copy.top_layer()?)?)?;
        if media_type.contains("cyclonedx") {
            ensure!(document["bomFormat"] == "CycloneDX", "{document}");
            ensure!(document["components"].as_array().is_some_and(|c| c.len() > 20), "{document}");
        } else {
            ensure!(document["predicateType"] == "https://slsa.dev/provenance/v1", "{document}");
            let subject = json!([{"name": PLUGIN, "digest": {"sha256": digest[7..]}}]);
            ensure!(document["subject"] == subject, "{document}");
        }
    }
    Ok(())
}

fn containerd(context: &Context) -> Result<()> {
    let Pushed { registry: _registry, repository, digest } = pushed(context)?;
    let containerd = Containerd::start(&context.tools)?;
    let archive = context.builds.release.folder.with_extension("tar");
    let archive = archive.to_str().context("the path is not UTF-8")?;
    let platform = ["--platform", "windows/amd64"];
    containerd.ctr(&[&["images", "import"], &platform[..], &["--no-unpack", archive]].concat())?;
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("ghcr.io/directx-device-plugin/{PLUGIN}:{version}");
    containerd.check_complete(&name, &digest)?;
    let pulled = format!("{repository}:1.0");
    let fetch = [&["content", "fetch", "--plain-http"], &platform[..], &[&pulled]].concat();
    containerd.ctr(&fetch)?;
    containerd.check_complete(&pulled, &digest)
}

fn existing_tag(context: &Context) -> Result<()> {
    let registry = Registry::start(&context.tools, Access::Everybody)?;
    let target = format!("{}/plugin:1.0", registry.address);
    let folder = tempfile::tempdir()?;
    let push = |date, arguments: &[&str]| {
        let arguments = [&["--plain-http", "--push", &target], arguments].concat();
        context.builds.stub_command(folder.path(), date, &arguments)
    };
    let built = || Layout { folder: folder.path().join(PLUGIN) }.digest();
    let tagged = || Ok::<_, anyhow::Error>(skopeo::inspect(&target)?.1);
    run(&mut push(1, &[]))?;
    let first = built()?;
    ensure!(tagged()? == first, "the first image is not tagged");
    // The same image again changes nothing.
    run(&mut push(1, &[]))?;
    let error = failure(&mut push(2, &[]))?;
    let second = built()?;
    let expected = format!(
        "error: {target} exists with the digest {first}; this image has {second}\n\
         hint: use another tag, or --replace\n"
    );
    ensure!(error == expected, "{error}");
    ensure!(tagged()? == first, "the tag has changed");
    run(&mut push(2, &["--replace"]))?;
    ensure!(tagged()? == second, "the tag has not changed");
    Ok(())
}

fn login(context: &Context) -> Result<()> {
    let registry = Registry::start(&context.tools, Access::Login)?;
    let address = &registry.address;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("auth.json");
    std::fs::write(&file, "{}")?;
    let target = format!("{address}/plugin:1.0");
    let arguments = ["--plain-http", "--push", &target];
    let mut push = context.builds.stub_command(folder.path(), 1, &arguments);
    push.env("REGISTRY_AUTH_FILE", &file);
    let error = failure(&mut push)?;
    ensure!(error.starts_with(&format!("error: cannot read {target}: ")), "{error}");
    let hint = format!("\nhint: log in with `skopeo login {address}` as a user who may push\n");
    ensure!(error.ends_with(&hint), "{error}");
    std::fs::write(&file, credentials(address).to_string())?;
    ensure!(run(&mut push)?.contains(&format!("pushed {target}@")), "it is not pushed");
    Ok(())
}

fn read_only(context: &Context) -> Result<()> {
    let registry = Registry::start(&context.tools, Access::ReadOnly)?;
    let repository = format!("{}/plugin", registry.address);
    let folder = tempfile::tempdir()?;
    let arguments = ["--plain-http", "--push", &format!("{repository}:1.0")];
    let error = failure(&mut context.builds.stub_command(folder.path(), 1, &arguments))?;
    ensure!(error.starts_with(&format!("error: cannot push {repository}@sha256:")), "{error}");
    ensure!(error.contains("\nhint: "), "{error}");
    Ok(())
}
