//! OCI image layouts: a folder of blobs by digest with an index
//! (<https://github.com/opencontainers/image-spec/blob/main/image-layout.md>).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::digest::Digest;
use super::source_date::SourceDate;

/// The media type of an image manifest, also of one that describes an artifact.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media type of a list of manifests.
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The file that marks a folder as a layout.
const MARKER: &str = "oci-layout";

/// The annotation that names a manifest in a layout.
const REFERENCE_NAME: &str = "org.opencontainers.image.ref.name";

/// A layout in memory.
#[derive(Clone, Default)]
pub(super) struct Layout {
    blobs: BTreeMap<String, Vec<u8>>,
    manifests: Vec<Value>,
}

impl Layout {
    /// Adds a blob and returns its descriptor.
    pub(super) fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = Digest::of(&bytes);
        let descriptor =
            json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()});
        self.blobs.insert(digest.hex().to_owned(), bytes);
        descriptor
    }

    /// Adds a JSON document as a blob and returns its descriptor.
    pub(super) fn add_json(&mut self, media_type: &str, document: &Value) -> Value {
        // The keys of a value are sorted, so equal documents have equal bytes.
        self.add(media_type, document.to_string().into_bytes())
    }

    /// Lists `descriptor` in the index under `name`.
    pub(super) fn tag(&mut self, name: &str, mut descriptor: Value) {
        let annotations = &mut descriptor["annotations"];
        if annotations.is_null() {
            *annotations = json!({});
        }
        annotations[REFERENCE_NAME] = name.into();
        self.manifests.push(descriptor);
    }

    /// Writes the layout as a folder, in place of an older layout.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        remove_layout(folder)?;
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).with_context(|| format!("cannot create {}", blobs.display()))?;
        for (path, bytes) in self.files() {
            let path = folder.join(path);
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Writes the layout as a tar archive, which `ctr images import` reads.
    pub(super) fn write_archive(&self, path: &Path, date: SourceDate) -> Result<()> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in self.files() {
            let mut header = tar::Header::new_ustar();
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(date.seconds());
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, &bytes[..])?;
        }
        let bytes = tar.into_inner()?;
        fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The bytes of all blobs together.
    pub(super) fn size(&self) -> usize {
        self.blobs.values().map(Vec::len).sum()
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": self.manifests});
        let mut files = vec![
            (MARKER.to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
            ("index.json".to_owned(), index.to_string().into_bytes()),
        ];
        let blobs = self.blobs.iter();
        files.extend(blobs.map(|(hex, bytes)| (format!("blobs/sha256/{hex}"), bytes.clone())));
        files
    }
}

/// Removes `folder` if it is a layout or empty; an error if it contains anything else.
fn remove_layout(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let entries =
        || fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()));
    if !folder.join(MARKER).is_file() && entries()?.next().is_some() {
        bail!(
            "{} exists and is not an image layout\nhint: remove it, or name another folder with --output",
            folder.display()
        );
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_has_its_blobs_under_their_digests() {
        let mut layout = Layout::default();
        let descriptor = layout.add_json("application/json", &json!({"b": 1, "a": 2}));
        let digest = Digest::of(br#"{"a":2,"b":1}"#);
        let expected =
            json!({"mediaType": "application/json", "digest": digest.to_string(), "size": 13});
        assert_eq!(descriptor, expected);
        layout.tag("1.0", descriptor);
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("layout");
        layout.write(&folder).unwrap();
        let blob = fs::read(folder.join("blobs/sha256").join(digest.hex())).unwrap();
        assert_eq!(blob, br#"{"a":2,"b":1}"#);
        let index: Value =
            serde_json::from_slice(&fs::read(folder.join("index.json")).unwrap()).unwrap();
        assert_eq!(index["manifests"][0]["digest"], digest.to_string());
        assert_eq!(index["manifests"][0]["annotations"][REFERENCE_NAME], "1.0");
        // A second write replaces the first, with its blobs.
        Layout::default().write(&folder).unwrap();
        assert_eq!(fs::read_dir(folder.join("blobs/sha256")).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_with_other_files_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Layout::default().write(folder.path()).unwrap_err().to_string();
        assert!(error.contains("exists and is not an image layout\nhint: "), "{error}");
        assert!(file.exists());
    }
}
