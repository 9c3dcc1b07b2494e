//! The configurations and the manifests of images.

use anyhow::Result;
use serde_json::{Value, json};

use super::layer::{self, Files};
use super::layout::{Layout, MANIFEST, digest};
use super::programs::Shipped;
use super::source::Source;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What an image contains.
pub(super) struct Content {
    pub(super) shipped: &'static Shipped,
    pub(super) files: Files,
}

/// Adds an image to `layout` and returns its descriptor. An image for Windows has no `os.version`, so
/// it runs on every build of Windows; only a `HostProcess` container can, because it uses nothing of
/// Windows from its image.
pub(super) fn add(layout: &mut Layout, content: &Content, source: &Source) -> Result<Value> {
    let shipped = content.shipped;
    let mut labels = json!({
        "org.opencontainers.image.title": shipped.name,
        "org.opencontainers.image.description": shipped.description,
        "org.opencontainers.image.version": source.version,
        "org.opencontainers.image.revision": source.revision,
        "org.opencontainers.image.created": source.date(),
        "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
    });
    if let Some(url) = source.url() {
        // GitHub's registry connects the package with the repository of this label.
        labels["org.opencontainers.image.source"] = url.into();
    }
    let archive = match shipped.os {
        "windows" => layer::archive(&content.files, source.seconds)?,
        _ => layer::plain(&content.files, 0o755, source.seconds)?,
    };
    let config = json!({
        "architecture": "amd64",
        "os": shipped.os,
        "created": source.date(),
        // On Windows, containerd puts the root of the image into PATH.
        "config": {"Entrypoint": [shipped.program], "Cmd": [shipped.argument], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [digest(&archive)]},
        "history": [{"created": source.date(), "created_by": "cargo xtask image"}],
    });
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": layout.add_json(CONFIG, &config),
        "layers": [layout.add(LAYER, layer::compress(&archive)?)],
        "annotations": labels,
    });
    let mut descriptor = layout.add_json(MANIFEST, &manifest);
    descriptor["platform"] = json!({"architecture": "amd64", "os": shipped.os});
    Ok(descriptor)
}
