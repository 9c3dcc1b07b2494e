//! The configuration and the manifest of an image.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::base_image::BaseImage;
use super::example::Example;
use super::layer::{Place, layer};
use super::layout::{Layout, MANIFEST};
use super::source::{self, Source};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Where an example has its programs in the container.
const EXAMPLE_FOLDER: &str = "directx";

/// What an image is called in its labels.
pub(super) struct Title<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
}

/// Adds the plugin's image to `layout` and returns its descriptor. The image has no
/// `os.version`: such an image runs on every build of Windows. Only a `HostProcess` container
/// can, because it uses nothing of Windows from its image.
pub(super) fn add_plugin(
    layout: &mut Layout,
    title: &Title<'_>,
    files: &BTreeMap<String, Vec<u8>>,
    source: &Source,
) -> Result<Value> {
    let layer = layer(Place::Base, files, source.date)?;
    let labels = labels(title, source);
    let config = json!({
        "architecture": "amd64",
        "os": "windows",
        "created": source.date.rfc3339(),
        // containerd puts the root of the image into PATH.
        "config": {
            "Entrypoint": ["directx-device-plugin.exe"],
            "Cmd": ["serve"],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id.to_string()]},
        "history": [history(source)],
    });
    let layer = layout.add(LAYER, layer.compressed);
    let platform = json!({"architecture": "amd64", "os": "windows"});
    Ok(add_manifest(layout, &config, &[layer], &labels, platform))
}

/// Adds the image of `example` on top of `base` to `layout` and returns its descriptor.
pub(super) fn add_example(
    layout: &mut Layout,
    title: &Title<'_>,
    example: &Example,
    base: &BaseImage,
    files: &BTreeMap<String, Vec<u8>>,
    source: &Source,
) -> Result<Value> {
    let files = files
        .iter()
        .map(|(name, bytes)| (format!("{EXAMPLE_FOLDER}/{name}"), bytes.clone()))
        .collect();
    let layer = layer(Place::Child, &files, source.date)?;
    let mut labels = labels(title, source);
    labels.insert("org.opencontainers.image.base.digest".into(), base.digest.to_string().into());
    if let Some(name) = &base.name {
        labels.insert("org.opencontainers.image.base.name".into(), name.clone().into());
    }
    let mut config = base.config.clone();
    config["created"] = source.date.rfc3339().into();
    let settings = &mut config["config"];
    if !settings.is_object() {
        *settings = json!({});
    }
    settings["Entrypoint"] = json!([format!(r"C:\{EXAMPLE_FOLDER}\{}", example.program)]);
    settings["Labels"] = labels.clone().into();
    if let Some(settings) = settings.as_object_mut() {
        // They belong to the base image's own program.
        for key in ["Cmd", "ArgsEscaped"] {
            settings.remove(key);
        }
    }
    push(&mut config["rootfs"]["diff_ids"], layer.diff_id.to_string().into());
    push(&mut config["history"], history(source));
    let mut layers = base.layers.clone();
    layers.push(layout.add(LAYER, layer.compressed));
    let platform =
        json!({"architecture": "amd64", "os": "windows", "os.version": config["os.version"]});
    Ok(add_manifest(layout, &config, &layers, &labels, platform))
}

/// Appends to a list; a missing list is an empty one.
fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(list) => list.push(item),
        None => *list = json!([item]),
    }
}

fn history(source: &Source) -> Value {
    json!({"created": source.date.rfc3339(), "created_by": "cargo xtask image"})
}

/// The labels of
/// <https://github.com/opencontainers/image-spec/blob/main/annotations.md>.
fn labels(title: &Title<'_>, source: &Source) -> Map<String, Value> {
    let pairs = [
        ("title", Some(title.name.to_owned())),
        ("description", Some(title.description.to_owned())),
        ("version", Some(source.version.to_owned())),
        ("revision", source.revision()),
        ("created", Some(source.date.rfc3339())),
        ("licenses", Some(env!("CARGO_PKG_LICENSE").to_owned())),
        ("source", Some(source::REPOSITORY.to_owned())),
    ];
    let set = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
    set.map(|(key, value)| (format!("org.opencontainers.image.{key}"), value.into())).collect()
}

fn add_manifest(
    layout: &mut Layout,
    config: &Value,
    layers: &[Value],
    annotations: &Map<String, Value>,
    platform: Value,
) -> Value {
    let config = layout.add_json(CONFIG, config);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": layers,
        "annotations": annotations,
    });
    let mut descriptor = layout.add_json(MANIFEST, &manifest);
    descriptor["platform"] = platform;
    descriptor
}
