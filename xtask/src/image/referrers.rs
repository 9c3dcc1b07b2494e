//! Artifacts that refer to an image: its bill of materials and its provenance.
//!
//! A registry lists them for the image's digest with the referrers API. For registries
//! without this API there is an index with the tag `sha256-<hex>`
//! (<https://github.com/opencontainers/distribution-spec/blob/main/spec.md#referrers-tag-schema>).

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::layout::{INDEX, Layout, MANIFEST, digest};
use super::manifest::{BaseImage, Content};
use super::source::{REPOSITORY, Source};
use crate::{process, workspace};

const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const CYCLONEDX: &str = "application/vnd.cyclonedx+json";
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// The artifacts of `image` in a layout: containerd cannot import an index that lists an image
/// together with artifacts. Returns the tag of their index too.
pub(super) fn layout(
    image: &Value,
    documents: &[(&str, Value)],
    source: &Source,
) -> (Layout, String) {
    let mut layout = Layout::default();
    let image_digest = image["digest"].as_str().unwrap_or_default();
    let mut manifests = Vec::new();
    for (media_type, document) in documents {
        let annotations = json!({"org.opencontainers.image.created": source.date()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": media_type,
            "config": layout.add(EMPTY, b"{}".to_vec()),
            "layers": [layout.add_json(media_type, document)],
            "subject": {"mediaType": MANIFEST, "digest": image_digest, "size": image["size"]},
            "annotations": annotations,
        });
        let mut descriptor = layout.add_json(MANIFEST, &manifest);
        descriptor["artifactType"] = (*media_type).into();
        descriptor["annotations"] = annotations;
        manifests.push(descriptor);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let index = layout.add_json(INDEX, &index);
    let tag = image_digest.replacen(':', "-", 1);
    layout.tag(&tag, index);
    (layout, tag)
}

/// The crates that are linked into the programs, as `CycloneDX` 1.5.
pub(super) fn bill_of_materials(
    content: &Content,
    source: &Source,
) -> Result<(&'static str, Value)> {
    let mut tree = workspace::cargo();
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{l}|"]);
    // Without build dependencies and procedural macros.
    tree.args(["--edges", "normal,no-proc-macro", "--target", content.shipped.target]);
    tree.args(content.shipped.packages.iter().flat_map(|package| ["--package", package]));
    let text =
        process::stdout(&mut tree).with_context(|| format!("{} failed", process::line(&tree)))?;
    // Such as `serde v1.0.228|MIT OR Apache-2.0| (*)`.
    let package = |line| -> Option<(&str, &str, &str)> {
        let mut fields = str::split(line, '|');
        let (name, version) = fields.next()?.split_once(" v")?;
        Some((name, version.split(' ').next()?, fields.next()?))
    };
    let packages: BTreeSet<_> = text.lines().filter_map(package).collect();
    let components = packages.iter().map(|(name, version, license)| {
        // `+` has another meaning in a package URL.
        let purl = format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"));
        // Older packages write `/` for `OR`, which SPDX does not know.
        let license = license.replace(" / ", " OR ").replace('/', " OR ");
        json!({"type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version,
               "licenses": [{"expression": license}]})
    });
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": source.date(),
            "component": {
                "type": "container",
                "bom-ref": content.shipped.name,
                "name": content.shipped.name,
                "version": source.version,
                "licenses": [{"expression": env!("CARGO_PKG_LICENSE")}],
            },
        },
        "components": components.collect::<Vec<_>>(),
    });
    Ok((CYCLONEDX, document))
}

/// What the image was built from and how: an in-toto statement with the predicate of SLSA 1.0.
/// It has no time of the build and no name of a machine, so a second build gives the same.
/// `profile` is missing if the programs were not built by this run.
pub(super) fn provenance(
    image_digest: &str,
    content: &Content,
    base: Option<&BaseImage>,
    profile: Option<&str>,
    source: &Source,
) -> Result<(&'static str, Value)> {
    let sha256 = |digest: &str| json!({"sha256": digest.trim_start_matches("sha256:")});
    let compiler = process::stdout(Command::new("rustc").arg("--version"));
    let compiler = compiler.context("`rustc --version` failed")?;
    let mut materials = vec![json!({
        "uri": format!("git+{REPOSITORY}"), "digest": {"gitCommit": source.revision},
    })];
    if let Some(base) = base {
        let uri = format!("docker://{}", base.name);
        materials.push(json!({"uri": uri, "digest": sha256(&base.digest)}));
    }
    let files = content.files.iter().map(|(name, bytes)| (name.clone(), sha256(&digest(bytes))));
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": content.shipped.name, "digest": sha256(image_digest)}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{REPOSITORY}/blob/main/docs/images.md"),
                "externalParameters": {
                    "image": content.shipped.name,
                    "target": content.shipped.target,
                    "profile": profile,
                },
                "internalParameters": {
                    "compiler": profile.map(|_| compiler.trim()),
                    "files": Value::Object(files.collect()),
                },
                "resolvedDependencies": materials,
            },
            "runDetails": {"builder": {"id": format!("{REPOSITORY}/tree/main/xtask")}},
        },
    });
    Ok((IN_TOTO, statement))
}
