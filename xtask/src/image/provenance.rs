//! The provenance of an image: what it was built from and how.
//!
//! An in-toto statement (<https://in-toto.io/Statement/v1>) with the predicate of SLSA
//! (<https://slsa.dev/spec/v1.0/provenance>). It has no time of the build and no name of a
//! machine, so that a second build gives the same statement. It is not signed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::base_image::BaseImage;
use super::digest::Digest;
use super::manifest::Title;
use super::source::{self, Source};
use crate::{process, workspace};

/// The media type of the statement, and the type of the artifact that contains it.
pub(super) const MEDIA_TYPE: &str = "application/vnd.in-toto+json";

/// The type of the predicate.
pub(super) const PREDICATE: &str = "https://slsa.dev/provenance/v1";

/// Whether this run built the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Programs {
    Built,
    /// They were in a folder that the user named.
    Given,
}

/// The statement about the image with this digest, which contains `files`.
pub(super) fn statement(
    title: &Title<'_>,
    image_digest: &str,
    files: &BTreeMap<String, Vec<u8>>,
    base: Option<&BaseImage>,
    programs: Programs,
    source: &Source,
) -> Result<Value> {
    let hex = image_digest.strip_prefix("sha256:").context("the image has no SHA-256 digest")?;
    let lock = fs::read(workspace::root().join("Cargo.lock"))?;
    let mut materials = vec![source_material(source)];
    materials.push(json!({"name": "Cargo.lock", "digest": {"sha256": Digest::of(&lock).hex()}}));
    if let Some(base) = base {
        let mut material = json!({"name": "base image", "digest": {"sha256": base.digest.hex()}});
        if let Some(name) = &base.name {
            material["uri"] = format!("docker://{name}").into();
        }
        materials.push(material);
    }
    let files: BTreeMap<&str, Value> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), json!({"sha256": Digest::of(bytes).hex()})))
        .collect();
    let parameters = json!({
        "image": title.name,
        "target": workspace::WINDOWS_TARGET,
        "profile": "release",
        "programs": match programs {
            Programs::Built => "built from the source",
            Programs::Given => "taken from a folder",
        },
    });
    let compiler = match programs {
        Programs::Built => compiler()?,
        Programs::Given => Value::Null,
    };
    Ok(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": title.name, "digest": {"sha256": hex}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{}/blob/main/docs/images.md", source::REPOSITORY),
                "externalParameters": parameters,
                "internalParameters": {"compiler": compiler, "files": files},
                "resolvedDependencies": materials,
            },
            "runDetails": {
                "builder": {
                    "id": format!("{}/tree/main/xtask", source::REPOSITORY),
                    "version": {"xtask": source.version},
                },
            },
        },
    }))
}

fn source_material(source: &Source) -> Value {
    let mut material = json!({"uri": format!("git+{}", source::REPOSITORY)});
    if let Some(commit) = &source.commit {
        material["digest"] = json!({"gitCommit": commit});
    }
    if source.revision() != source.commit {
        material["annotations"] = json!({"modified": true});
    }
    material
}

fn compiler() -> Result<Value> {
    let mut rustc = Command::new("rustc");
    rustc.arg("--version").current_dir(workspace::root());
    let text =
        process::stdout(&mut rustc).with_context(|| format!("{} failed", process::line(&rustc)))?;
    Ok(text.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::source::Tree;
    use crate::image::source_date::SourceDate;

    const TITLE: Title<'_> = Title { name: "image", description: "" };

    #[allow(clippy::unwrap_used, reason = "part of the tests")]
    fn dependencies(tree: Tree) -> Value {
        let date = SourceDate::new(None, None).unwrap();
        let source = Source { version: "1.0.0", commit: Some("abc".to_owned()), tree, date };
        let files = BTreeMap::from([("a.exe".to_owned(), b"a".to_vec())]);
        let found = statement(&TITLE, "sha256:12", &files, None, Programs::Given, &source).unwrap();
        assert_eq!(found["subject"], json!([{"name": "image", "digest": {"sha256": "12"}}]));
        let definition = &found["predicate"]["buildDefinition"];
        let file = &definition["internalParameters"]["files"]["a.exe"];
        assert_eq!(*file, json!({"sha256": Digest::of(b"a").hex()}));
        assert_eq!(definition["externalParameters"]["programs"], "taken from a folder");
        definition["resolvedDependencies"].clone()
    }

    #[test]
    fn the_statement_names_image_source_and_files() {
        let found = dependencies(Tree::Clean);
        let uri = format!("git+{}", source::REPOSITORY);
        assert_eq!(found[0], json!({"uri": uri, "digest": {"gitCommit": "abc"}}));
        assert_eq!(found[1]["name"], "Cargo.lock");
    }

    #[test]
    fn a_modified_source_is_marked() {
        let found = dependencies(Tree::Modified);
        assert_eq!(found[0]["annotations"], json!({"modified": true}));
    }
}
