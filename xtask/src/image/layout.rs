//! Images as OCI image layouts: a folder of blobs by digest with an index
//! (<https://github.com/opencontainers/image-spec/blob/main/image-layout.md>).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::base::Base;
use super::digest::{blob, digest};
use super::layer::{self, Files};
use super::programs::{Entrypoint, Shipped};
use super::source::Source;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The file that marks a folder as a layout.
const MARKER: &str = "oci-layout";

/// An image of a layout.
pub(crate) struct Image {
    pub(crate) entrypoint: &'static Entrypoint,
    /// The full name, which ends with a tag.
    pub(crate) name: String,
    pub(crate) digest: String,
}

/// A layout in memory, whose images share their layers.
pub(crate) struct Layout {
    pub(crate) images: Vec<Image>,
    files: Files,
    /// Only the layers of this image are not in memory.
    base: Option<Base>,
    seconds: u64,
}

impl Layout {
    /// A layout of the images of `programs` under `names`, which end with a tag. An image for Windows
    /// without a base has no `os.version`, so it runs on every build of Windows; only a `HostProcess`
    /// container can, because it uses nothing of Windows from its image.
    pub(super) fn new(
        shipped: &Shipped,
        programs: &Files,
        source: &Source,
        names: Vec<String>,
        base: Option<Base>,
    ) -> Result<Layout> {
        let archive = match shipped.os {
            "windows" => layer::archive(programs, base.is_none(), source.seconds)?,
            _ => layer::plain(programs, 0o755, source.seconds)?,
        };
        let (base_config, mut layers) = match &base {
            Some(base) => (base.config.clone(), base.layers.clone()),
            None => (json!({"architecture": "amd64", "os": shipped.os}), Vec::new()),
        };
        let mut files = Files::new();
        layers.push(add(&mut files, LAYER, layer::compress(&archive)?));
        let mut descriptors = Vec::new();
        let mut images = Vec::new();
        for (entrypoint, name) in shipped.images.iter().zip(names) {
            let labels = labels(shipped, entrypoint, source);
            let config = config(base_config.clone(), entrypoint, &labels, &archive, source)?;
            let manifest = json!({
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": add(&mut files, CONFIG, config.to_string().into_bytes()),
                "layers": layers,
                "annotations": labels,
            });
            let mut descriptor = add(&mut files, MANIFEST, manifest.to_string().into_bytes());
            descriptor["platform"] = json!({"architecture": "amd64", "os": shipped.os});
            if let Some(version) = config.get("os.version") {
                descriptor["platform"]["os.version"] = version.clone();
            }
            descriptor["annotations"] = json!({
                // `ctr images import` reads the name from this annotation, skopeo and podman from the
                // next one.
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name,
            });
            let digest = descriptor["digest"].as_str().unwrap_or_default().to_owned();
            images.push(Image { entrypoint, name, digest });
            descriptors.push(descriptor);
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors});
        files.insert(MARKER.to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
        files.insert("index.json".to_owned(), index.to_string().into_bytes());
        Ok(Layout { images, files, base, seconds: source.seconds })
    }

    /// Writes the layout as a folder, in place of an earlier layout.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            ensure!(
                folder.join(MARKER).is_file(),
                "{} exists and is not an image layout\nhint: remove it, or name another folder with --output",
                folder.display()
            );
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder.join("blobs/sha256"))
            .with_context(|| format!("cannot create {}", folder.display()))?;
        for (path, bytes) in &self.files {
            let path = folder.join(path);
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.base.as_ref().map_or(Ok(()), |base| base.link_layers(folder))
    }

    /// Writes the layout, which has no base, as a tar archive, which `ctr images import` reads.
    pub(crate) fn write_archive(&self, path: &Path) -> Result<()> {
        let archive = layer::plain(&self.files, 0o644, self.seconds)?;
        fs::write(path, archive).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The configuration of an image with one more layer than its base.
fn config(
    mut config: Value,
    entrypoint: &Entrypoint,
    labels: &Value,
    archive: &[u8],
    source: &Source,
) -> Result<Value> {
    config["created"] = source.date().into();
    let container = &mut config["config"];
    // On Windows, containerd puts the root of the image into PATH.
    container["Entrypoint"] = json!([entrypoint.program]);
    container["Cmd"] = entrypoint.arguments.into();
    // A command of the base may be a command line; this one is a list.
    if let Some(container) = container.as_object_mut() {
        container.remove("ArgsEscaped");
    }
    for variable in entrypoint.environment {
        append(&mut container["Env"], (*variable).into())?;
    }
    for (key, value) in labels.as_object().into_iter().flatten() {
        container["Labels"][key] = value.clone();
    }
    config["rootfs"]["type"] = "layers".into();
    append(&mut config["rootfs"]["diff_ids"], digest(archive).into())?;
    let layer = json!({"created": source.date(), "created_by": "cargo xtask image"});
    append(&mut config["history"], layer)?;
    Ok(config)
}

/// Adds a value to a list, which may be missing.
fn append(list: &mut Value, value: Value) -> Result<()> {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().context("invalid configuration of the base image")?.push(value);
    Ok(())
}

/// The labels of an image, which are also the annotations of its manifest.
fn labels(shipped: &Shipped, entrypoint: &Entrypoint, source: &Source) -> Value {
    let mut labels = json!({
        "org.opencontainers.image.title": entrypoint.image,
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
    labels
}

/// Adds a blob and returns its descriptor.
fn add(files: &mut Files, media_type: &str, bytes: Vec<u8>) -> Value {
    let digest = digest(&bytes);
    let descriptor = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
    files.insert(blob(&digest), bytes);
    descriptor
}
