//! `cargo xtask release`: builds every file of a release from one commit.
//!
//! The files are written into a temporary folder next to the output folder, which gets its
//! name at the end. Equal sources and tools give equal bytes. A dry run stops there.
//! Otherwise the image and the chart are pushed, and the commands that publish the rest
//! are printed.

mod archive;
mod chart;
mod check;
mod files;
mod notices;
mod options;
mod output;
mod programs;
mod publish;
mod source;
mod summary;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub(crate) use self::check::check;

use self::archive::{File, Files};
use self::files::{
    build_image, files_with_extension, linux_folder, manifests, prefix, windows_archive,
};
use self::options::{Mode, Options};
use self::output::Output;
use self::programs::read;
use self::source::Source;
use self::summary::{Artifact, Kind};
use crate::image::{PLUGIN, PROGRAM_PACKAGES};
use crate::{prerequisites, workspace};

/// `cargo xtask release`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let options = Options::parse(arguments, env!("CARGO_PKG_VERSION"))?;
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("releases are built on Linux for x86-64\nhint: use Debian, also in a container");
    }
    let source = Source::read(options.mode)?;
    let output = Output::create(&options.output)?;
    let artifacts = build(output.folder(), &source)?;
    summary::write(output.folder(), &source, &artifacts)?;
    let folder = output.finish()?;
    summary::print(&folder, &artifacts);
    if options.mode == Mode::Publish {
        publish::publish(&folder, &options, &source)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes every file of the release into `folder`.
fn build(folder: &Path, source: &Source) -> Result<Vec<Artifact>> {
    prerequisites::for_windows_builds()?;
    // A missing licence is found before the programs are built, which takes minutes.
    let notices = Notices::collect(source.version)?;
    let mut release = Release { folder, source, notices, artifacts: Vec::new() };
    // Builds the Windows programs too.
    release.add_image()?;
    release.add_archives()?;
    release.add_chart()?;
    release.add_manifests()?;
    release.artifacts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(release.artifacts)
}

/// The files that have been built.
struct Release<'a> {
    folder: &'a Path,
    source: &'a Source,
    notices: Notices,
    artifacts: Vec<Artifact>,
}

/// The licence notices of the programs for each target.
struct Notices {
    windows: String,
    linux: String,
}

impl Notices {
    fn collect(version: &str) -> Result<Notices> {
        let text = |target, packages: &[&str], runtimes| {
            notices::text(&format!("{PLUGIN} {version} ({target})"), packages, target, runtimes)
        };
        let runtimes = notices::WINDOWS_RUNTIMES;
        Ok(Notices {
            windows: text(workspace::WINDOWS_TARGET, &PROGRAM_PACKAGES, runtimes)?,
            linux: text(programs::LINUX_TARGET, &programs::LINUX_PACKAGES, &[])?,
        })
    }
}

impl Release<'_> {
    fn add(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        self.artifacts.push(Artifact::new(name, kind, bytes));
        Ok(())
    }

    /// The image as `cargo xtask image` writes it, and its bill of materials and provenance.
    fn add_image(&mut self) -> Result<()> {
        println!("building the image and the Windows programs");
        let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
        let folder = temporary.path();
        build_image(folder, &["--tag".into(), self.source.version.into()])?;
        let prefix = prefix(self.source.version);
        let image = read(&folder.join(format!("{PLUGIN}.tar")))?;
        self.add(&format!("{prefix}-image.tar"), Kind::Image, &image)?;
        let layout = folder.join(format!("{PLUGIN}-referrers"));
        let mut files = Files::new();
        add_folder(&mut files, &layout, "")?;
        let archive = archive::tar("", &files, self.source.date)?;
        self.add(&format!("{prefix}-image-referrers.tar"), Kind::Image, &archive)?;
        for (key, name, kind) in [
            ("bomFormat", "sbom.cdx.json", Kind::BillOfMaterials),
            ("_type", "provenance.json", Kind::Provenance),
        ] {
            let document = document_with(&files, key)
                .with_context(|| format!("the image has no document with the key `{key}`"))?;
            self.add(&format!("{prefix}-{name}"), kind, &document)?;
        }
        Ok(())
    }

    fn add_archives(&mut self) -> Result<()> {
        println!("building the Linux programs and the clients of the library");
        let (version, date) = (self.source.version, self.source.date);
        let (mut windows, mut linux) = (programs::windows()?, programs::linux()?);
        windows.extend(programs::clients(version)?);
        for (path, file) in programs::completions(&linux)? {
            // Of these shells, only PowerShell and bash run on Windows.
            if path.contains("/powershell/") || path.contains("/bash/") {
                windows.insert(path.clone(), File::data(file.bytes.clone()));
            }
            linux.insert(path, file);
        }
        add_documents(&mut windows, &self.notices.windows)?;
        add_documents(&mut linux, &self.notices.linux)?;
        let zip = archive::zip(&windows, date)?;
        self.add(&windows_archive(version), Kind::Programs, &zip)?;
        let folder = linux_folder(version);
        let tar = archive::tar_gz(&folder, &linux, date)?;
        self.add(&format!("{folder}.tar.gz"), Kind::Programs, &tar)?;
        // The image contains the Windows programs and no notices.
        let name = format!("{}-{}", prefix(version), notices::FILE);
        let notices = self.notices.windows.clone();
        self.add(&name, Kind::Notices, notices.as_bytes())
    }

    fn add_chart(&mut self) -> Result<()> {
        println!("packaging the chart and the manifests");
        let chart = chart::package(&workspace::root(), self.source.date)?;
        self.add(&chart::file_name(self.source.version), Kind::Chart, &chart)
    }

    /// Each manifest is a file of its own, so that `kubectl apply` can use its address.
    fn add_manifests(&mut self) -> Result<()> {
        for path in manifests(&workspace::root())? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.add(&name, Kind::Manifest, &read(&path)?)?;
        }
        Ok(())
    }
}

/// What both archives contain in addition to the programs.
fn add_documents(files: &mut Files, notices: &str) -> Result<()> {
    let root = workspace::root();
    for name in ["LICENSE", "README.md", "CHANGELOG.md"] {
        files.insert(name.to_owned(), File::data(read(&root.join(name))?));
    }
    files.insert(notices::FILE.to_owned(), File::data(notices));
    files.insert(notices::RUST_FILE.to_owned(), File::data(notices::rust_standard_library()?));
    // The paths in the documentation's commands.
    let folder = "fixtures/inventories";
    for path in files_with_extension(&root.join(folder), "yaml")? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(format!("{folder}/{name}"), File::data(read(&path)?));
    }
    Ok(())
}

fn add_folder(files: &mut Files, folder: &Path, prefix: &str) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            add_folder(files, &entry.path(), &format!("{name}/"))?;
        } else {
            files.insert(name, File::data(read(&entry.path())?));
        }
    }
    Ok(())
}

/// The JSON document with the key `key` at its top.
fn document_with(files: &Files, key: &str) -> Option<Vec<u8>> {
    let document = files.values().find(|file| {
        let document: Option<Value> = serde_json::from_slice(&file.bytes).ok();
        document.is_some_and(|document| document.get(key).is_some())
    });
    document.map(|file| file.bytes.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_found_by_its_key() {
        let files = Files::from([
            ("a".to_owned(), File::data("no JSON")),
            ("b".to_owned(), File::data("{\"other\": {\"key\": 1}}")),
            ("c".to_owned(), File::data("{\"key\": 1}")),
        ]);
        assert_eq!(document_with(&files, "key").unwrap(), b"{\"key\": 1}");
        assert!(document_with(&files, "none").is_none());
    }

    #[test]
    fn every_manifest_of_deploy_is_found() {
        let found = manifests(&workspace::root()).unwrap();
        assert!(found.iter().any(|path| path.ends_with("deploy/default-daemonsets.yml")));
        assert!(found.is_sorted() && found.iter().all(|path| path.is_file()));
    }
}
