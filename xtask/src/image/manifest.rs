//! The configurations and the manifests of images.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::layer::{self, Files};
use super::layout::{Layout, MANIFEST, digest};
use super::programs::Shipped;
use super::registry::{self, Registry};
use super::source::{REPOSITORY, Source};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A layer that a registry need not have itself.
const FOREIGN_LAYER: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";

/// Where an example has its programs in the container.
const EXAMPLE_FOLDER: &str = "directx";

/// What an image contains, apart from its base image.
pub(super) struct Content {
    pub(super) shipped: &'static Shipped,
    pub(super) files: Files,
}

/// A Windows image that an example is built on. The license of Windows does not permit
/// everybody to copy its layers, and they are large, so they are downloaded from its registry.
pub(super) struct BaseImage {
    /// Such as `mcr.microsoft.com/windows/server:ltsc2022`.
    pub(super) name: String,
    pub(super) digest: String,
    config: Value,
    layers: Vec<Value>,
}

impl BaseImage {
    pub(super) fn read(registry: Registry, name: &str) -> Result<BaseImage> {
        let repository = registry::split(name).0;
        let (mut manifest, mut digest) = registry.document(name, &["--raw"])?;
        if let Some(list) = manifest["manifests"].as_array() {
            let platform = json!(["windows", "amd64"]);
            let is_wanted = |entry: &&Value| {
                json!([entry["platform"]["os"], entry["platform"]["architecture"]]) == platform
            };
            let entry = list.iter().find(is_wanted);
            let entry = entry.with_context(|| format!("{name} has no image for windows/amd64"))?;
            entry["digest"].as_str().unwrap_or_default().clone_into(&mut digest);
            (manifest, _) = registry.document(&format!("{repository}@{digest}"), &["--raw"])?;
        }
        let reference = format!("{repository}@{digest}");
        let (config, _) = registry.document(&reference, &["--raw", "--config"])?;
        ensure!(
            config["os"] == "windows" && config["os.version"].is_string(),
            "{name} is not a Windows image for containers"
        );
        let layers = manifest["layers"].as_array().context("the base image has no layers")?;
        let (host, path) = repository.split_once('/').unwrap_or_default();
        let foreign = |layer: &Value| {
            let mut layer = layer.clone();
            layer["mediaType"] = FOREIGN_LAYER.into();
            if layer["urls"].is_null() {
                let digest = layer["digest"].as_str().unwrap_or_default();
                layer["urls"] = json!([format!("https://{host}/v2/{path}/blobs/{digest}")]);
            }
            layer
        };
        let layers = layers.iter().map(foreign).collect();
        Ok(BaseImage { name: name.to_owned(), digest, config, layers })
    }
}

/// Adds an image to `layout` and returns its descriptor. An image for Windows nodes has no base
/// image and no `os.version`, so it runs on every build of Windows; only a `HostProcess` container
/// can, because it uses nothing of Windows from its image.
pub(super) fn add(
    layout: &mut Layout,
    content: &Content,
    base: Option<&BaseImage>,
    source: &Source,
) -> Result<Value> {
    let shipped = content.shipped;
    let mut labels = json!({
        "org.opencontainers.image.title": shipped.name,
        "org.opencontainers.image.description": shipped.description,
        "org.opencontainers.image.version": source.version,
        "org.opencontainers.image.revision": source.revision,
        "org.opencontainers.image.created": source.date(),
        "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
        "org.opencontainers.image.source": REPOSITORY,
    });
    let mut config =
        json!({"architecture": "amd64", "os": shipped.os, "rootfs": {"type": "layers"}});
    let mut layers = Vec::new();
    let mut files = content.files.clone();
    let settings = if let Some(base) = base {
        labels["org.opencontainers.image.base.name"] = base.name.clone().into();
        labels["org.opencontainers.image.base.digest"] = base.digest.clone().into();
        config = base.config.clone();
        layers.clone_from(&base.layers);
        let place = |(name, bytes)| (format!("{EXAMPLE_FOLDER}/{name}"), bytes);
        files = files.into_iter().map(place).collect();
        let program = format!(r"C:\{EXAMPLE_FOLDER}\{}", shipped.program);
        let mut settings = base.config["config"].clone();
        // They belong to the base image's own program.
        for key in ["Cmd", "ArgsEscaped"] {
            settings.as_object_mut().and_then(|settings| settings.remove(key));
        }
        settings["Entrypoint"] = json!([program]);
        settings
    } else {
        // On Windows, containerd puts the root of the image into PATH.
        json!({"Entrypoint": [shipped.program], "Cmd": [shipped.argument]})
    };
    let archive = match shipped.os {
        "windows" => layer::archive(&files, base.is_none(), source.seconds)?,
        _ => layer::plain(&files, 0o755, source.seconds)?,
    };
    layers.push(layout.add(LAYER, layer::compress(&archive)?));
    config["created"] = source.date().into();
    config["config"] = settings;
    config["config"]["Labels"] = labels.clone();
    append(&mut config["rootfs"]["diff_ids"], digest(&archive).into());
    let history = json!({"created": source.date(), "created_by": "cargo xtask image"});
    append(&mut config["history"], history);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": layout.add_json(CONFIG, &config),
        "layers": layers,
        "annotations": labels,
    });
    let mut descriptor = layout.add_json(MANIFEST, &manifest);
    descriptor["platform"] = json!({"architecture": "amd64", "os": shipped.os});
    if let Some(version) = config.get("os.version") {
        descriptor["platform"]["os.version"] = version.clone();
    }
    Ok(descriptor)
}

/// Appends to a list; a missing list is an empty one.
fn append(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(list) => list.push(item),
        None => *list = json!([item]),
    }
}
