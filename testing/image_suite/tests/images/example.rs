//! Example images on a base image in a registry.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::daemon::{Access, Containerd, Registry};
use crate::image::{Builder, PLUGIN, digest, run, text};
use crate::push::inspect;

const VERSION: &str = "10.0.20348.2582";

/// Pushes a Windows image with one layer, as an index with this image and another one. Returns
/// the digest of its manifest and of its layer.
fn push_base(registry: &Registry) -> (String, String) {
    let builder = Builder::new();
    builder.build(7, &[]);
    let base = builder.layout(PLUGIN);
    let add = |descriptor: &Value, document: &Value| {
        let bytes = document.to_string().into_bytes();
        let digest = digest(&bytes);
        fs::write(base.blob(&digest), &bytes).unwrap();
        json!({"mediaType": descriptor["mediaType"], "digest": digest, "size": bytes.len()})
    };
    let mut config = base.config();
    config["os.version"] = VERSION.into();
    config["config"]["Cmd"] = json!(["c:\\windows\\system32\\cmd.exe"]);
    config["config"]["User"] = "ContainerUser".into();
    let mut manifest = base.manifest();
    let layer = text(&manifest["layers"][0]["digest"]);
    manifest["config"] = add(&manifest["config"], &config);
    let mut index: Value =
        serde_json::from_slice(&fs::read(base.folder.join("index.json")).unwrap()).unwrap();
    index["manifests"][0] = add(&index["manifests"][0], &manifest);
    fs::write(base.folder.join("index.json"), index.to_string()).unwrap();
    let repository = format!("{}/windows/server", registry.address);
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["--insecure-policy", "copy", "--dest-tls-verify=false"]);
    skopeo.arg(format!("oci:{}", base.folder.display())).arg(format!("docker://{repository}:base"));
    run(&mut skopeo);
    // The registry has no TLS, so the manifest names the address of the layer.
    let url = format!("http://{}/v2/windows/server/blobs/{layer}", registry.address);
    manifest["layers"][0]["urls"] = json!([url]);
    manifest["layers"][0]["mediaType"] =
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip".into();
    let manifest_digest = put_manifest(registry, "with-url", &manifest);
    let size = manifest.to_string().len();
    let entry = |os: &str| {
        json!({"mediaType": manifest["mediaType"], "digest": manifest_digest, "size": size,
               "platform": {"os": os, "architecture": "amd64"}})
    };
    let mut index = json!({"schemaVersion": 2, "mediaType": index["mediaType"]});
    index["manifests"] = json!([entry("linux"), entry("windows")]);
    put_manifest(registry, "ltsc2022", &index);
    (manifest_digest, layer)
}

/// Puts a manifest with a tag into the registry and returns its digest.
fn put_manifest(registry: &Registry, tag: &str, manifest: &Value) -> String {
    let body = manifest.to_string();
    let mut stream = TcpStream::connect(&registry.address).unwrap();
    write!(
        stream,
        "PUT /v2/windows/server/manifests/{tag} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
         Content-Type: {}\r\nContent-Length: {}\r\n\r\n{body}",
        registry.address,
        text(&manifest["mediaType"]),
        body.len(),
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
    digest(body.as_bytes())
}

#[test]
#[ignore = "needs root, skopeo, docker-registry and containerd: cargo xtask test image"]
fn an_example_refers_to_the_layers_of_its_base_image() {
    let registry = Registry::start(Access::Everybody);
    let (base_digest, layer) = push_base(&registry);
    let base = format!("{}/windows/server:ltsc2022", registry.address);
    let target = format!("{}/device-discovery:1.0", registry.address);
    let builder = Builder::new();
    let example = ["--example", "device-discovery", "--base", &base];
    builder.build(8, &[&example[..], &["--plain-http", "--push", &target]].concat());
    let image = builder.layout("device-discovery");
    let config = image.config();
    assert_eq!(config["os.version"], VERSION);
    let program = r"C:\directx\test-device-discovery.exe";
    assert_eq!(config["config"]["Entrypoint"], json!([program]));
    // It belongs to the program of the base image; other settings are kept.
    assert_eq!(config["config"].get("Cmd"), None);
    assert_eq!(config["config"]["User"], "ContainerUser");
    let labels = &config["config"]["Labels"];
    assert_eq!(labels["org.opencontainers.image.base.name"], *base);
    assert_eq!(labels["org.opencontainers.image.base.digest"], *base_digest);
    assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), 2);
    let paths: Vec<_> = image.entries().into_iter().map(|entry| entry.path).collect();
    let expected = [
        "Files",
        "Files/directx",
        "Hives",
        "Files/directx/directx-device-discovery.dll",
        "Files/directx/test-device-discovery-cpp.exe",
        "Files/directx/test-device-discovery-go.exe",
        "Files/directx/test-device-discovery.exe",
    ];
    assert_eq!(paths, expected);
    assert_eq!(inspect(&target).1, image.digest());
    assert!(!image.blob(&layer).exists(), "the layer of Windows was copied");
    // containerd gets the layer of Windows from its own address.
    let containerd = Containerd::start();
    let fetch = ["content", "fetch", "--plain-http", "--platform", "windows/amd64", &target];
    containerd.ctr(&fetch);
    containerd.assert_complete(&target, &image.digest());
    let list = containerd.ctr(&["content", "ls"]);
    assert!(list.contains(&layer), "containerd has no {layer}:\n{list}");
}

#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn the_layers_of_a_base_image_have_the_address_of_its_registry() {
    let registry = Registry::start(Access::Everybody);
    let (_, layer) = push_base(&registry);
    let builder = Builder::new();
    let build = |tag: &str| {
        let base = format!("{}/windows/server:{tag}", registry.address);
        builder.build(8, &["--plain-http", "--example", "gpu-probe", "--base", &base]);
        builder.layout("gpu-probe").manifest()["layers"][0].clone()
    };
    let found = build("base");
    let kind = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";
    assert_eq!(found["mediaType"], kind);
    let url = format!("https://{}/v2/windows/server/blobs/{layer}", registry.address);
    assert_eq!(found["urls"], json!([url]));
}

#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn other_base_images_are_refused() {
    let registry = Registry::start(Access::Everybody);
    let builder = Builder::new();
    let base = format!("{}/plugin:1.0", registry.address);
    let example = ["--plain-http", "--example", "gpu-probe", "--base", &base];
    let found = builder.error(1, &example);
    assert!(found.starts_with(&format!("error: cannot read {base}: ")), "{found}");
    builder.build(1, &["--plain-http", "--push", &base]);
    let found = builder.error(1, &example);
    assert_eq!(found, format!("error: {base} is not a Windows image for containers\n"));
}
