//! Example images on a base image in a registry.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::build::{Layout, failure, run, text};
use super::containerd::Containerd;
use super::registry::{Access, Registry};
use super::{Context, TestCase, skopeo};
use crate::image::{Digest, PLUGIN};

pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase { name: "an example refers to the layers of its base image", run: example },
        TestCase { name: "an unknown base image", run: unknown },
    ]
}

const VERSION: &str = "10.0.20348.2582";

/// Makes a base image: the plugin's image of stubs, with an `os.version` and an address of
/// its layer.
fn push_base(context: &Context, folder: &Path, image: &str) -> Result<()> {
    run(&mut context.builds.stub_command(folder, 7, &[]))?;
    let base = Layout { folder: folder.join(PLUGIN) };
    let mut config = base.config()?;
    config["os.version"] = VERSION.into();
    config["config"]["Cmd"] = json!(["c:\\windows\\system32\\cmd.exe"]);
    let mut manifest = base.manifest()?;
    manifest["config"] = add(&base, &manifest["config"], &config)?;
    let mut index: Value = serde_json::from_slice(&std::fs::read(base.folder.join("index.json"))?)?;
    index["manifests"][0] = add(&base, &index["manifests"][0], &manifest)?;
    std::fs::write(base.folder.join("index.json"), index.to_string())?;
    skopeo::upload(&base.folder, image)
}

/// Adds a document to `layout`; the result is `descriptor` with its digest and size.
fn add(layout: &Layout, descriptor: &Value, document: &Value) -> Result<Value> {
    let bytes = document.to_string().into_bytes();
    let digest = Digest::of(&bytes).to_string();
    std::fs::write(layout.blob(&digest), &bytes)?;
    let media_type = &descriptor["mediaType"];
    Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
}

/// The file of a manifest or of a configuration, as a maintainer gets it.
fn save(image: &str, kind: &[&str], file: &Path) -> Result<()> {
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["--override-os", "windows", "inspect", "--tls-verify=false", "--raw"]);
    let text = run(skopeo.args(kind).arg(format!("docker://{image}")))?;
    Ok(std::fs::write(file, text)?)
}

fn example(context: &Context) -> Result<()> {
    let registry = Registry::start(&context.tools, Access::Everybody)?;
    let address = &registry.address;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let base_name = format!("{address}/windows/server:ltsc2022");
    push_base(context, &path("base"), &base_name)?;
    save(&base_name, &[], &path("manifest.json"))?;
    save(&base_name, &["--config"], &path("config.json"))?;
    // A registry without TLS needs an address in the manifest.
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(path("manifest.json"))?)?;
    let layer = text(&manifest["layers"][0]["digest"])?;
    let url = format!("http://{address}/v2/windows/server/blobs/{layer}");
    manifest["layers"][0]["urls"] = json!([url]);
    std::fs::write(path("manifest.json"), manifest.to_string())?;
    let target = format!("{address}/device-discovery:1.0");
    let mut push = context.builds.stub_command(
        folder.path(),
        8,
        &["--example", "device-discovery", "--base-name", &base_name],
    );
    push.arg("--base-manifest").arg(path("manifest.json"));
    push.arg("--base-config").arg(path("config.json"));
    run(push.args(["--plain-http", "--push", &target]))?;
    let image = Layout { folder: path("device-discovery") };
    let config = image.config()?;
    ensure!(config["os.version"] == VERSION, "{config}");
    let program = r"C:\directx\test-device-discovery.exe";
    ensure!(config["config"]["Entrypoint"] == json!([program]), "{config}");
    ensure!(config["config"].get("Cmd").is_none(), "{config}");
    ensure!(config["rootfs"]["diff_ids"].as_array().is_some_and(|l| l.len() == 2), "{config}");
    ensure!(skopeo::inspect(&target)?.1 == image.digest()?, "the digest has changed");
    ensure!(!image.blob(&layer).exists(), "the layer of Windows was copied");
    // containerd gets the layer of Windows from its own address.
    let containerd = Containerd::start(&context.tools)?;
    let fetch = ["content", "fetch", "--plain-http", "--platform", "windows/amd64", &target];
    containerd.ctr(&fetch)?;
    containerd.check_complete(&target, &image.digest()?)?;
    let list = containerd.ctr(&["content", "ls"])?;
    ensure!(list.contains(&layer), "containerd has no {layer}:\n{list}");
    Ok(())
}

fn unknown(context: &Context) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("manifest.json");
    let name = file.to_str().context("the path is not UTF-8")?;
    let arguments = ["--example", "device-discovery"];
    let error = failure(&mut context.builds.stub_command(folder.path(), 1, &arguments))?;
    ensure!(error.starts_with("error: unknown base image: "), "{error}");
    let with_files = ["--base-manifest", name, "--base-config", name];
    let arguments = [&arguments[..], &with_files].concat();
    let error = failure(&mut context.builds.stub_command(folder.path(), 1, &arguments))?;
    ensure!(error.starts_with(&format!("error: cannot read {name}: ")), "{error}");
    std::fs::write(&file, r#"{"manifests": []}"#)?;
    let error = failure(&mut context.builds.stub_command(folder.path(), 1, &arguments))?;
    ensure!(error.contains("it is an index of several images"), "{error}");
    ensure!(error.contains("\nhint: get both files with `skopeo inspect --raw"), "{error}");
    Ok(())
}
