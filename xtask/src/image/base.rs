//! Microsoft's image of Windows, on which the images of examples are based.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::digest::blob;
use super::registry::{self, Registry};
use crate::process::stage;

/// Windows Server 2022 and 2025 run it, and Microsoft supports GPUs in its containers.
pub(super) const WINDOWS: &str = "mcr.microsoft.com/windows/server:ltsc2022";

/// The name of the image in its layout.
const NAME: &str = "base";

pub(crate) struct Base {
    /// The configuration of the image, unchanged.
    pub(super) config: Value,
    /// The descriptors of the layers.
    pub(super) layers: Vec<Value>,
    /// The layout with the blobs of the layers.
    pub(super) folder: PathBuf,
}

impl Base {
    /// Copies an image into the layout `folder`, which keeps the layers for the next time.
    pub(super) fn fetch(registry: Registry, name: &str, folder: PathBuf) -> Result<Base> {
        let hint = format!("hint: --base names an image of Windows, such as {WINDOWS}");
        let digest = registry.digest(name)?;
        let digest = digest.with_context(|| format!("{name} does not exist\n{hint}"))?;
        // Another image may get the tag at any time.
        let name = format!("{}@{digest}", registry::split(name).0);
        stage(&format!("copying {name}, gigabytes the first time"));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        registry.pull(&name, &folder, NAME)?;
        // skopeo converts Docker's documents for the layout. Its older versions, such as
        // Ubuntu 22.04's, leave out the `os.version` of the configuration.
        let config: Value = serde_json::from_slice(&registry.config(&name)?)?;
        let layers = layers(&folder)?;
        let os = config["os"].as_str().unwrap_or_default();
        ensure!(os == "windows", "{name} is an image for `{os}`\n{hint}");
        let listed = config["rootfs"]["diff_ids"].as_array().map_or(0, Vec::len);
        let count = layers.len();
        ensure!(listed == count, "{name} has {count} layers, its configuration lists {listed}");
        Ok(Base { config, layers, folder })
    }

    /// Adds the layers to another layout. Nodes get some layers of older images, with `urls`, from
    /// Microsoft.
    pub(super) fn link_layers(&self, layout: &Path) -> Result<()> {
        for layer in self.layers.iter().filter(|layer| layer.get("urls").is_none()) {
            let path = blob(layer["digest"].as_str().unwrap_or_default());
            let [from, to] = [&self.folder, layout].map(|folder| folder.join(&path));
            fs::hard_link(&from, &to)
                .or_else(|_| fs::copy(&from, &to).map(drop))
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        Ok(())
    }
}

/// The layers of the image in a layout, which skopeo describes as OCI does.
fn layers(folder: &Path) -> Result<Vec<Value>> {
    let read = |path: &str| -> Result<Value> {
        let path = folder.join(path);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&bytes)?)
    };
    let index = read("index.json")?;
    for descriptor in index["manifests"].as_array().into_iter().flatten() {
        if descriptor["annotations"]["org.opencontainers.image.ref.name"] == NAME {
            let digest = descriptor["digest"].as_str().unwrap_or_default();
            let manifest = read(&blob(digest))?;
            let layers = manifest["layers"].as_array();
            return layers.cloned().context("the manifest of the base image has no layers");
        }
    }
    bail!("{} lacks the base image", folder.display())
}
