//! The step `release` of the tests: a dry run, and what users do with its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::files::{linux_folder, windows_archive};
use super::programs::read;
use super::summary::{MANIFEST, SUMS};
use crate::process::{line, stdout};
use crate::{imports, version_info, workspace};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The document that lists the files of both archives.
const DOCUMENT: &str = "docs/programs.md";

/// An inventory in the Linux archive.
const INVENTORY: &str = "fixtures/inventories/aws-t4-two.yaml";

/// Runs a dry run and checks its files.
pub(crate) fn check() -> Result<()> {
    let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
    let folder = temporary.path().join("release");
    super::command(&["--dry-run".into(), "--output".into(), folder.clone().into()])?;
    check_sums(&folder)?;
    check_manifest(&folder)?;
    let document = fs::read_to_string(workspace::root().join(DOCUMENT))?;
    let windows = unzip(&read(&folder.join(windows_archive(VERSION)))?)?;
    check_names(&document, "Windows archive", windows.keys())?;
    check_programs(&windows)?;
    check_linux_archive(&folder, &document)?;
    println!("the release is complete");
    Ok(())
}

/// `sha256sum` finds every file with its digest, and the folder has no other file.
fn check_sums(folder: &Path) -> Result<()> {
    let mut sha256sum = Command::new("sha256sum");
    sha256sum.current_dir(folder).args(["--check", "--strict", SUMS]);
    let checked = stdout(&mut sha256sum).with_context(|| format!("{} failed", line(&sha256sum)))?;
    let listed: BTreeSet<&str> =
        checked.lines().filter_map(|line| line.strip_suffix(": OK")).collect();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ensure!(name == SUMS || listed.contains(&*name), "{SUMS} does not list {name}");
    }
    Ok(())
}

fn check_manifest(folder: &Path) -> Result<()> {
    let manifest: Value = serde_json::from_slice(&read(&folder.join(MANIFEST))?)?;
    ensure!(manifest["version"] == VERSION, "{MANIFEST} has another version");
    let files = manifest["files"].as_array().context("release.json has no `files`")?;
    let kinds: BTreeSet<&str> = files.iter().filter_map(|file| file["kind"].as_str()).collect();
    for kind in ["programs", "image", "sbom", "provenance", "notices", "chart", "manifest"] {
        ensure!(kinds.contains(kind), "the release has no file of the kind `{kind}`");
    }
    Ok(())
}

fn unzip(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))?;
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(entry.name().to_owned(), content);
    }
    Ok(files)
}

/// Checks the version resources and the imports of the Windows programs.
fn check_programs(files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let is_program =
        |name: &str| Path::new(name).extension().is_some_and(|end| end == "exe" || end == "dll");
    let programs: Vec<_> = files.iter().filter(|(name, _)| is_program(name)).collect();
    ensure!(!programs.is_empty(), "the archive contains no Windows program");
    for (name, bytes) in programs {
        version_info::check_version(bytes)
            .with_context(|| format!("wrong version resource in {name}"))?;
        imports::check_bytes(name, bytes)?;
    }
    Ok(())
}

/// Unpacks the archive as a user does and runs a program in it.
fn check_linux_archive(folder: &Path, document: &str) -> Result<()> {
    let name = linux_folder(VERSION);
    let mut tar = Command::new("tar");
    tar.current_dir(folder).arg("-xzf").arg(format!("{name}.tar.gz"));
    stdout(&mut tar).with_context(|| format!("{} failed", line(&tar)))?;
    let unpacked = folder.join(name);
    let mut names = BTreeSet::new();
    list(&unpacked, "", &mut names)?;
    check_names(document, "Linux archive", names.iter())?;
    let program = unpacked.join("bin/directx-device-plugin");
    let output = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(&unpacked).args(arguments);
        stdout(&mut command).with_context(|| format!("{} failed", line(&command)))
    };
    let version = output(&["--version"])?;
    ensure!(version.contains(VERSION), "the program has the version `{}`", version.trim_end());
    let mut probe = Command::new(unpacked.join("bin/gpu-probe"));
    let version = stdout(probe.arg("--version")).context("gpu-probe --version failed")?;
    ensure!(version.contains(VERSION), "gpu-probe has the version `{}`", version.trim_end());
    let report = output(&["simulate", "--inventory", INVENTORY])?;
    ensure!(
        report.contains("directx.microsoft.com/display"),
        "simulate does not show the devices of {INVENTORY}:\n{report}"
    );
    let mut tool = Command::new(unpacked.join("bin/test-device-discovery"));
    tool.current_dir(&unpacked).args(["--inventory", INVENTORY]);
    stdout(&mut tool).map(drop).with_context(|| format!("{} failed", line(&tool)))
}

fn list(folder: &Path, prefix: &str, names: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
        } else {
            names.insert(name);
        }
    }
    Ok(())
}

/// Fails unless the archive has every file that the section `heading` of the document
/// names, and the section names every file or its folder.
fn check_names<'a>(
    document: &str,
    heading: &str,
    found: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let found: BTreeSet<&str> = found.map(String::as_str).collect();
    let documented = documented_names(document, heading);
    ensure!(!documented.is_empty(), "{DOCUMENT} has no section `{heading}` with a table");
    let covers =
        |name: &str, file: &str| file == name || name.ends_with('/') && file.starts_with(name);
    for name in &documented {
        let exists = found.iter().any(|file| covers(name, file));
        ensure!(exists, "{DOCUMENT} names `{name}`, which is not in the {heading}");
    }
    for file in found {
        let is_documented = documented.iter().any(|name| covers(name, file));
        ensure!(is_documented, "the {heading} contains `{file}`, which {DOCUMENT} does not name");
    }
    Ok(())
}

/// The names in the first column of the table under a heading of the third level.
fn documented_names(document: &str, heading: &str) -> Vec<String> {
    let title = format!("### {heading}");
    let section = document.lines().skip_while(|line| *line != title).skip(1);
    let section = section.take_while(|line| !line.starts_with('#'));
    let cells = section.filter_map(|line| line.strip_prefix('|')?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "## A\n\n### Windows archive\n\nWith `b`.\n\n| file | what |\n|---|---|\n\
        | `x.exe`, `y.exe` | uses `z` |\n| `lib/` | |\n\n### Linux archive\n\n| `other` | |\n";

    fn error(found: &[&str]) -> String {
        let found: Vec<String> = found.iter().map(|name| (*name).to_owned()).collect();
        let result = check_names(TEXT, "Windows archive", found.iter());
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn names_are_read_from_the_first_column() {
        assert_eq!(documented_names(TEXT, "Windows archive"), ["x.exe", "y.exe", "lib/"]);
        assert_eq!(documented_names(TEXT, "Linux archive"), ["other"]);
        assert!(documented_names(TEXT, "Other archive").is_empty());
    }

    #[test]
    fn the_document_names_every_program_of_the_image() {
        let document = fs::read_to_string(workspace::root().join(DOCUMENT)).unwrap();
        let documented = documented_names(&document, "Windows archive");
        for program in crate::image::program_names() {
            assert!(documented.iter().any(|name| name == program), "{program}");
        }
    }

    #[test]
    fn archive_and_document_must_name_the_same_files() {
        assert_eq!(error(&["x.exe", "y.exe", "lib/a"]), "");
        assert!(error(&["x.exe", "lib/a"]).contains("names `y.exe`, which is not in"));
        assert!(error(&["x.exe", "y.exe"]).contains("names `lib/`, which is not in"));
        assert!(error(&["x.exe", "y.exe", "lib/a", "b"]).contains("contains `b`, which"));
    }

    // Other systems have no `sha256sum`.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_changed_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        // From `printf a | sha256sum`.
        let digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        fs::write(folder.path().join(SUMS), format!("{digest}  a\n")).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        check_sums(folder.path()).unwrap();
        fs::write(folder.path().join("b"), "b").unwrap();
        let found = check_sums(folder.path()).unwrap_err().to_string();
        assert_eq!(found, "SHA256SUMS does not list b");
        fs::write(folder.path().join("a"), "b").unwrap();
        assert!(check_sums(folder.path()).is_err());
    }
}
