//! What a release consists of: `release.json`, `SHA256SUMS` and the printed table.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::source::Source;

/// The file that lists the other files with their kinds.
pub(super) const MANIFEST: &str = "release.json";

/// The digests in the format of `sha256sum`.
pub(super) const SUMS: &str = "SHA256SUMS";

/// The text for the release page.
pub(super) const NOTES: &str = "release-notes.md";

/// A file of the release.
#[derive(Clone)]
pub(super) struct Artifact {
    pub(super) name: String,
    kind: Kind,
    size: usize,
    sha256: String,
}

/// What a file is for.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Programs,
    Image,
    BillOfMaterials,
    Provenance,
    Notices,
    Chart,
    Manifest,
    /// Describes the release itself.
    Release,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Programs => "programs",
            Kind::Image => "image",
            Kind::BillOfMaterials => "sbom",
            Kind::Provenance => "provenance",
            Kind::Notices => "notices",
            Kind::Chart => "chart",
            Kind::Manifest => "manifest",
            Kind::Release => "release",
        }
    }
}

impl Artifact {
    pub(super) fn new(name: &str, kind: Kind, bytes: &[u8]) -> Artifact {
        let hash = Sha256::digest(bytes);
        let sha256 = hash.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        Artifact { name: name.to_owned(), kind, size: bytes.len(), sha256 }
    }
}

/// Writes the release notes, [`MANIFEST`] and [`SUMS`] into `folder`.
pub(super) fn write(folder: &Path, source: &Source, artifacts: &[Artifact]) -> Result<()> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let mut all = artifacts.to_vec();
    all.push(Artifact::new(NOTES, Kind::Release, source.notes.as_bytes()));
    write(NOTES, &source.notes)?;
    let manifest = format!("{:#}\n", manifest(source, &all));
    all.push(Artifact::new(MANIFEST, Kind::Release, manifest.as_bytes()));
    write(MANIFEST, &manifest)?;
    write(SUMS, &sums(&all))
}

fn manifest(source: &Source, artifacts: &[Artifact]) -> Value {
    let files = artifacts.iter().map(|artifact| {
        json!({
            "name": artifact.name,
            "kind": artifact.kind.name(),
            "size": artifact.size,
            "sha256": artifact.sha256,
        })
    });
    json!({
        "version": source.version,
        "tag": source.tag(),
        "commit": source.commit,
        "date": source.date,
        "files": files.collect::<Vec<_>>(),
    })
}

fn sums(artifacts: &[Artifact]) -> String {
    let mut lines: Vec<String> = artifacts
        .iter()
        .map(|artifact| format!("{}  {}\n", artifact.sha256, artifact.name))
        .collect();
    lines.sort_by(|a, b| a[64..].cmp(&b[64..]));
    lines.concat()
}

/// Prints a line for each file.
pub(super) fn print(folder: &Path, artifacts: &[Artifact]) {
    println!("{}", folder.display());
    let width = artifacts.iter().map(|artifact| artifact.name.len()).max().unwrap_or(0);
    for Artifact { name, kind, size, sha256 } in artifacts {
        println!("  {name:<width$}  {:<10}  {size:>9}  {}", kind.name(), &sha256[..12]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_and_the_digests_list_every_file() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source {
            version: "1.0.0",
            commit: Some("abc".to_owned()),
            date: 7,
            notes: "notes\n".to_owned(),
        };
        let artifacts =
            [Artifact::new("b", Kind::Chart, b"bb"), Artifact::new("a", Kind::Image, b"")];
        write(folder.path(), &source, &artifacts).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let manifest: Value = serde_json::from_str(&read(MANIFEST)).unwrap();
        assert_eq!(manifest["tag"], "v1.0.0");
        assert_eq!(manifest["commit"], "abc");
        // From `printf bb | sha256sum`.
        let digest = "3b64db95cb55c763391c707108489ae18b4112d783300de38e033b4c98c3deaf";
        let expected = json!({"name": "b", "kind": "chart", "size": 2, "sha256": digest});
        assert_eq!(manifest["files"][0], expected);
        let sums = read(SUMS);
        let names: Vec<&str> = sums.lines().map(|line| &line[66..]).collect();
        assert_eq!(names, ["a", "b", NOTES, MANIFEST].map(str::to_owned).each_ref().map(|s| &**s));
        assert!(sums.contains(&format!("{digest}  b\n")), "{sums}");
    }
}
