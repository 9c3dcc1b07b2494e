//! OCI image layouts: a folder of blobs by digest with an index
//! (<https://github.com/opencontainers/image-spec/blob/main/image-layout.md>).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::layer::{self, Files};

/// The media types of image manifests and of lists of them.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The file that marks a folder as a layout.
const MARKER: &str = "oci-layout";

/// A digest as OCI documents write it, such as `sha256:e3b0c442…`.
pub(super) fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// A layout in memory.
#[derive(Default)]
pub(super) struct Layout {
    blobs: Files,
    manifests: Vec<Value>,
}

impl Layout {
    /// Adds a blob and returns its descriptor.
    pub(super) fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = digest(&bytes);
        let descriptor = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
        self.blobs.insert(format!("blobs/{}", digest.replace(':', "/")), bytes);
        descriptor
    }

    /// Adds a JSON document as a blob and returns its descriptor.
    pub(super) fn add_json(&mut self, media_type: &str, document: &Value) -> Value {
        self.add(media_type, document.to_string().into_bytes())
    }

    /// Lists `descriptor` in the index under `name`.
    pub(super) fn tag(&mut self, name: &str, mut descriptor: Value) {
        descriptor["annotations"]["org.opencontainers.image.ref.name"] = name.into();
        self.manifests.push(descriptor);
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
        for (path, bytes) in self.files() {
            let path = folder.join(path);
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Writes the layout as a tar archive, which `ctr images import` reads.
    pub(super) fn write_archive(&self, path: &Path, seconds: u64) -> Result<()> {
        let archive = layer::plain(&self.files(), 0o644, seconds)?;
        fs::write(path, archive).with_context(|| format!("cannot write {}", path.display()))
    }

    fn files(&self) -> Files {
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": self.manifests});
        let mut files = self.blobs.clone();
        files.insert(MARKER.to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
        files.insert("index.json".to_owned(), index.to_string().into_bytes());
        files
    }
}
