//! `cargo xtask release`: builds every file of a release from one commit.
//!
//! Equal sources and tools give equal bytes. The workflow `release.yml` signs and publishes the
//! files, and `testing/release_suite` uses them as users do.

mod notices;
mod programs;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::Value;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::image::{self, PLUGIN, Shipped, VISIBLE};
use crate::process::{self, run};
use crate::{prerequisites, workspace};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the release notes say if a Windows program is not signed.
const UNSIGNED: &str =
    "\nThe Windows programs are unsigned: they have no Authenticode signature.\n";

/// Builds every file of a release
#[derive(Parser)]
#[command(bin_name = "cargo xtask release")]
struct Options {
    /// Accept uncommitted changes, and a section of the changelog without a date
    #[arg(long)]
    dry_run: bool,
    /// A new folder for the files [default: target/release-VERSION]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Use the Windows programs in this folder, which were built before and may have been signed
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Cargo profile that the programs are built with, for tests
    #[arg(long, hide = true, default_value = "release")]
    profile: String,
}

/// `cargo xtask release`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let words = [OsString::from("release")].into_iter().chain(arguments.iter().cloned());
    let options = Options::parse_from(words);
    let name = format!("release-{VERSION}");
    let output = options.output.unwrap_or_else(|| workspace::target_dir().join(name));
    ensure!(!output.exists(), "{} exists\nhint: remove it, or use --output", output.display());
    let notes = release_notes(options.dry_run)?;
    let temporary = tempfile::tempdir()?;
    let files = &temporary.path().join("files");
    fs::create_dir(files)?;
    let is_signed = build(temporary.path(), files, options.programs.as_deref(), &options.profile)?;
    let unsigned = if is_signed { "" } else { UNSIGNED };
    fs::write(files.join("release-notes.md"), notes + unsigned)?;
    let sums = stdout(Command::new("sha256sum").current_dir(files).args(names(files)?))?;
    fs::write(files.join("SHA256SUMS"), &sums)?;
    copy(files, &output)?;
    print!("{}\n{sums}", output.display());
    Ok(ExitCode::SUCCESS)
}

/// What the changelog says about the version.
fn release_notes(dry_run: bool) -> Result<String> {
    let is_clean = dry_run || git(&["status", "--porcelain"])?.is_empty();
    ensure!(is_clean, "the files differ from the commit\nhint: commit or stash the changes");
    let changelog = fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
    let heading = format!("## [{VERSION}]{}", if dry_run { "" } else { " - 2" });
    let lines = changelog.lines().skip_while(|line| !line.starts_with(&heading)).skip(1);
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let section = section.join("\n").trim().to_owned();
    ensure!(!section.is_empty(), "CHANGELOG.md has no text below `## [{VERSION}] - YYYY-MM-DD`");
    Ok(section + "\n")
}

/// Writes every file of the release into `files`, with the Windows programs in `given` or new ones.
/// Says whether all of these are signed.
fn build(temporary: &Path, files: &Path, given: Option<&Path>, profile: &str) -> Result<bool> {
    prerequisites::for_windows_builds()?;
    let commit = || git(&["log", "-1", "--format=%ct"]);
    let date = std::env::var("SOURCE_DATE_EPOCH").or_else(|_| commit())?;
    let date = format!("--mtime=@{}", date.trim());
    let [windows, visible] = [PLUGIN, VISIBLE].map(|shipped| temporary.join(shipped.name));
    let prefix = format!("{}-{VERSION}", PLUGIN.name);
    let linux = format!("{prefix}-linux-x86_64");
    // First, because a missing license is found in seconds.
    programs::documents(&windows, &visible, &temporary.join(&linux))?;
    programs::stage(&windows, &temporary.join(&linux), profile)?;
    tar(&files.join(format!("{linux}.tar.gz")), temporary, &[linux], &date)?;
    let built = workspace::target_dir().join(workspace::WINDOWS_TARGET).join(profile);
    let mut is_signed = true;
    for (shipped, folder) in [(PLUGIN, windows), (VISIBLE, visible)] {
        let file = |name: &str| files.join(format!("{}-{VERSION}-{name}", shipped.name));
        // The image contains the programs and no notices.
        let notices = "THIRD-PARTY-NOTICES.txt";
        copy(&folder.join(notices), &file(notices))?;
        add_image(&shipped, given, profile, &temporary.join("image"), &file, &date)?;
        is_signed &= programs::add(&shipped, given.unwrap_or(&built), &folder)?;
        zip(&file("windows-x86_64.zip"), &folder)?;
    }
    // As `helm package` does, but with the time of the commit.
    let charts = workspace::root().join("deploy/charts");
    tar(&files.join(format!("{prefix}.tgz")), &charts, &[PLUGIN.name.to_owned()], &date)?;
    let deploy = workspace::root().join("deploy");
    let manifests = names(&deploy)?;
    let mut manifests = manifests.iter().filter(|name| deploy.join(name).is_file());
    manifests.try_for_each(|name| copy(&deploy.join(name), &files.join(name)))?;
    Ok(is_signed)
}

/// Builds an image, and takes the documents about it out of it.
fn add_image(
    shipped: &Shipped,
    given: Option<&Path>,
    profile: &str,
    to: &Path,
    file: &dyn Fn(&str) -> PathBuf,
    date: &str,
) -> Result<()> {
    let mut words = vec!["--output".into(), to.into(), "--profile".into(), profile.into()];
    words.extend(given.into_iter().flat_map(|given| ["--programs".into(), given.into()]));
    words.extend((shipped.name == VISIBLE.name).then(|| "--directx-visible".into()));
    ensure!(image::command(&words)? == ExitCode::SUCCESS, "the image was not built");
    copy(&to.join(format!("{}.tar", shipped.name)), &file("image.tar"))?;
    let layout = to.join(format!("{}-referrers", shipped.name));
    tar(&file("image-referrers.tar"), &layout, &names(&layout)?, date)?;
    for name in names(&layout.join("blobs/sha256"))? {
        let bytes = fs::read(layout.join("blobs/sha256").join(name))?;
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let names = [("bomFormat", "sbom.cdx.json"), ("_type", "provenance.json")];
        for (_, name) in names.into_iter().filter(|(key, _)| document.get(key).is_some()) {
            fs::write(file(name), &bytes)?;
        }
    }
    Ok(())
}

/// Packs `names` of `folder`. Only the files and `date` determine the bytes.
fn tar(archive: &Path, folder: &Path, names: &[String], date: &str) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--mode=u=rwX,go=rX", date]);
    tar.args(["--owner=0", "--group=0", "--numeric-owner"]).arg("--file").arg(archive);
    if archive.extension().is_some_and(|extension| extension != "tar") {
        tar.arg("--use-compress-program=gzip -9n");
    }
    run(tar.arg("--directory").arg(folder).args(names))
}

/// Packs the files of `folder`. The time of each is 1980, the earliest that zip can express.
fn zip(archive: &Path, folder: &Path) -> Result<()> {
    let mut zip = ZipWriter::new(File::create_new(archive)?);
    let options = SimpleFileOptions::default().compression_level(Some(9));
    let find = ["-type", "f", "-printf", "%P\n"];
    let files = stdout(Command::new("find").arg(folder).args(find))?;
    // One program has many names, and is compressed once.
    let mut packed: HashMap<Vec<u8>, &str> = HashMap::new();
    for name in files.lines().collect::<BTreeSet<_>>() {
        let bytes = fs::read(folder.join(name))?;
        if let Some(same) = packed.get(&bytes) {
            zip.deep_copy_file(same, name)?;
            continue;
        }
        zip.start_file(name, options)?;
        zip.write_all(&bytes)?;
        packed.insert(bytes, name);
    }
    zip.finish().map(drop).context("cannot finish the archive")
}

/// The sorted names of the files in a folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let names = stdout(Command::new("ls").arg("-A").arg(folder).env("LC_ALL", "C"))?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// Copies a file or a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    run(Command::new("cp").args(["--recursive", "--no-target-directory"]).arg(from).arg(to))
}

fn git(arguments: &[&str]) -> Result<String> {
    stdout(Command::new("git").current_dir(workspace::root()).args(arguments))
}

fn stdout(command: &mut Command) -> Result<String> {
    process::stdout(command).with_context(|| format!("{} failed", process::line(command)))
}
