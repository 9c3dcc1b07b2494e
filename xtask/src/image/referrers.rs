//! Artifacts that refer to an image: its bill of materials and its provenance.
//!
//! A registry lists them for the image's digest with the referrers API. For registries
//! without this API the specification has a fallback: an index under the tag
//! `sha256-<hex>`
//! (<https://github.com/opencontainers/distribution-spec/blob/main/spec.md#referrers-tag-schema>).

use serde_json::{Value, json};

use super::layout::{INDEX, Layout, MANIFEST};
use super::source::Source;
use super::{provenance, sbom};

/// The media type of an empty configuration, which an artifact has.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// The artifacts of an image in a layout of their own: containerd cannot import an index
/// that lists an image together with artifacts.
pub(super) struct Referrers {
    pub(super) layout: Layout,
    /// The names of the artifacts in the layout, with their digests.
    pub(super) artifacts: Vec<(&'static str, String)>,
    /// The tag of the index that lists them.
    pub(super) index_tag: String,
}

impl Referrers {
    /// The referrers of the image that `image` describes.
    pub(super) fn new(
        image: &Value,
        sbom: &Value,
        provenance: &Value,
        source: &Source,
    ) -> Referrers {
        let mut layout = Layout::default();
        let digest = image["digest"].as_str().unwrap_or_default();
        let subject = json!({"mediaType": MANIFEST, "digest": digest, "size": image["size"]});
        let documents = [
            ("sbom", sbom::MEDIA_TYPE, sbom, json!({})),
            (
                "provenance",
                provenance::MEDIA_TYPE,
                provenance,
                json!({"in-toto.io/predicate-type": provenance::PREDICATE}),
            ),
        ];
        let mut artifacts = Vec::new();
        let mut manifests = Vec::new();
        for (name, media_type, document, mut annotations) in documents {
            annotations["org.opencontainers.image.created"] = source.date.rfc3339().into();
            let manifest = json!({
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "artifactType": media_type,
                "config": layout.add(EMPTY, b"{}".to_vec()),
                "layers": [layout.add_json(media_type, document)],
                "subject": subject,
                "annotations": annotations,
            });
            let descriptor = layout.add_json(MANIFEST, &manifest);
            artifacts.push((name, descriptor["digest"].as_str().unwrap_or_default().to_owned()));
            layout.tag(name, descriptor.clone());
            let mut listed = descriptor;
            listed["artifactType"] = media_type.into();
            listed["annotations"] = annotations;
            manifests.push(listed);
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        let index = layout.add_json(INDEX, &index);
        let index_tag = digest.replacen(':', "-", 1);
        layout.tag(&index_tag, index);
        Referrers { layout, artifacts, index_tag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::source::Tree;
    use crate::image::source_date::SourceDate;

    #[test]
    fn artifacts_name_the_image_and_the_index_lists_them() {
        let date = SourceDate::new(None, None).unwrap();
        let source = Source { version: "1.0.0", commit: None, tree: Tree::Clean, date };
        let image = json!({"digest": "sha256:ab", "size": 7, "platform": {}});
        let referrers = Referrers::new(&image, &json!({"a": 1}), &json!({"b": 2}), &source);
        assert_eq!(referrers.index_tag, "sha256-ab");
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("layout");
        referrers.layout.write(&folder).unwrap();
        let blob = |digest: &str| -> Value {
            let path = folder.join("blobs/sha256").join(&digest["sha256:".len()..]);
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
        };
        for (name, digest) in &referrers.artifacts {
            let manifest = blob(digest);
            let subject = json!({"mediaType": MANIFEST, "digest": "sha256:ab", "size": 7});
            assert_eq!(manifest["subject"], subject, "{name}");
        }
        let index: Value =
            serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
        let index = blob(index["manifests"][2]["digest"].as_str().unwrap());
        let types: Vec<_> = (0..2).map(|n| index["manifests"][n]["artifactType"].clone()).collect();
        assert_eq!(types, [sbom::MEDIA_TYPE, provenance::MEDIA_TYPE]);
        assert_eq!(index["manifests"][1]["digest"], *referrers.artifacts[1].1);
    }
}
