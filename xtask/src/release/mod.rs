//! `cargo xtask release`: builds every file of a release from one commit.
//!
//! Equal sources and tools give equal bytes. `.ci/publish` pushes what belongs into a registry, and
//! `testing/release_suite` uses the files as users do.

mod destination;
mod notices;
mod programs;
mod sbom;

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use self::destination::Destination;
use crate::image::{self, LINUX, PLUGIN, Source, VISIBLE};
use crate::process::{self, run};
use crate::workspace::VERSION;
use crate::{prerequisites, workspace};

/// What the release notes say if a Windows program is not signed.
const UNSIGNED: &str =
    "\nThe Windows programs are unsigned: they have no Authenticode signature.\n";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Accept uncommitted changes, and a section of the changelog without a date
    #[arg(long)]
    dry_run: bool,
    /// A new folder for the files [default: target/release-VERSION]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Use the Windows programs in this folder, which were built before and may have been signed
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// GitHub repository of the source [default: `$GITHUB_REPOSITORY`]
    #[arg(long, value_name = "OWNER/REPOSITORY")]
    repository: Option<String>,
    /// Where the images and the chart will be pushed to [default: ghcr.io/OWNER]
    #[arg(long, value_name = "REGISTRY/OWNER")]
    registry: Option<String>,
    /// Package the main branch: the images have the tag `main`, the chart has the version
    /// 0.0.0-main.N, and the version of the programs names the commit
    #[arg(long, value_name = "N")]
    main: Option<u64>,
    /// Cargo profile that the programs are built with, for tests
    #[arg(long, hide = true, default_value = "release")]
    profile: String,
}

/// `cargo xtask release`.
pub(crate) fn command(options: Options) -> Result<()> {
    let name = format!("release-{VERSION}");
    let output = options.output.unwrap_or_else(|| workspace::target_dir().join(name));
    ensure!(!output.exists(), "{} exists\nhint: remove it, or use --output", output.display());
    let source = Source::read(options.repository.as_deref(), options.main.is_some())?;
    // GitHub sets these variables in a workflow that a tag started.
    if let (Ok("tag"), Ok(tag)) =
        (env::var("GITHUB_REF_TYPE").as_deref(), env::var("GITHUB_REF_NAME"))
    {
        ensure!(tag == format!("v{VERSION}"), "the tag is {tag}, the version is {VERSION}");
    }
    let destination = Destination::new(&source, options.registry, options.main)?;
    let notes = release_notes(options.dry_run || options.main.is_some())?;
    let temporary = tempfile::tempdir()?;
    let files = &temporary.path().join("files");
    fs::create_dir(files)?;
    let given = options.programs.as_deref();
    let is_signed = build(temporary.path(), files, given, &options.profile, &source, destination)?;
    let unsigned = if is_signed { "" } else { UNSIGNED };
    fs::write(files.join("release-notes.md"), notes + unsigned)?;
    let sums = stdout(Command::new("sha256sum").current_dir(files).args(names(files)?))?;
    fs::write(files.join("SHA256SUMS"), &sums)?;
    copy(files, &output)?;
    print!("{}\n{sums}", output.display());
    Ok(())
}

/// What the changelog says about the version.
fn release_notes(dry_run: bool) -> Result<String> {
    let is_clean = dry_run || stdout(workspace::git().args(["status", "--porcelain"]))?.is_empty();
    ensure!(is_clean, "the files differ from the commit\nhint: commit or stash the changes");
    let changelog = fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
    let heading = format!("## [{VERSION}]{}", if dry_run { "" } else { " - 2" });
    let rest = changelog.lines().skip_while(|line| !line.starts_with(&heading)).skip(1);
    let lines: Vec<&str> = rest.take_while(|line| !line.starts_with("## ")).collect();
    let section = lines.join("\n").trim().to_owned();
    ensure!(!section.is_empty(), "CHANGELOG.md has no text below `## [{VERSION}] - YYYY-MM-DD`");
    Ok(section + "\n")
}

/// Writes every file of the release into `files`, with the Windows programs in `given` or new ones.
/// Says whether all of these are signed.
fn build(
    temporary: &Path,
    files: &Path,
    given: Option<&Path>,
    profile: &str,
    source: &Source,
    mut destination: Destination,
) -> Result<bool> {
    prerequisites::for_windows_builds()?;
    let date = format!("--mtime=@{}", source.seconds);
    let [windows, visible] = [PLUGIN, VISIBLE].map(|shipped| temporary.join(shipped.name));
    let prefix = format!("{}-{VERSION}", PLUGIN.name);
    let linux_name = format!("{prefix}-linux-x86_64");
    let linux = temporary.join(&linux_name);
    // The documents come first, because a missing license is found in seconds.
    programs::documents(&windows, &visible, &linux)?;
    programs::stage(&windows, &linux, profile, source)?;
    tar(&files.join(format!("{linux_name}.tar.gz")), temporary, &[linux_name], &date)?;
    let built = image::folder(workspace::WINDOWS_TARGET, profile);
    let mut is_signed = true;
    for (shipped, folder) in [(&LINUX, linux), (&PLUGIN, windows), (&VISIBLE, visible)] {
        let file = files.join(format!("{}-{VERSION}", shipped.name)).display().to_string();
        // The image contains the programs and no notices.
        let notices = "THIRD-PARTY-NOTICES.txt";
        copy(&folder.join(notices), Path::new(&format!("{file}-{notices}")))?;
        let given = given.filter(|_| shipped.os == "windows");
        let names = destination.names(shipped);
        let layout = image::build(shipped, given, profile, source, names, None)?;
        layout.write_archive(Path::new(&format!("{file}-image.tar")))?;
        destination.images.extend(layout.images);
        if shipped.os == "windows" {
            is_signed &= programs::add(shipped, given.unwrap_or(&built), &folder)?;
            zip(Path::new(&format!("{file}-windows-x86_64.zip")), &folder)?;
        }
    }
    // `.ci/publish` pushes the images of this list.
    fs::write(files.join("images.txt"), destination.list())?;
    fs::write(files.join("sbom.cdx.json"), sbom::text(&programs::SHIPPED, source)?)?;
    let charts = temporary.join("charts");
    copy(&workspace::root().join("deploy/charts"), &charts)?;
    destination.write_into_chart(&charts.join(PLUGIN.name), &source.version)?;
    // The archive is what `helm package` writes, but with the time of the commit.
    let chart = format!("{}-{}.tgz", PLUGIN.name, destination.chart_version);
    tar(&files.join(chart), &charts, &[PLUGIN.name.to_owned()], &date)?;
    let deploy = workspace::root().join("deploy");
    for name in names(&deploy)?.iter().filter(|name| deploy.join(name).is_file()) {
        let text = fs::read_to_string(deploy.join(name))?;
        fs::write(files.join(name), destination.write_into(&text))?;
    }
    Ok(is_signed)
}

/// Packs `names` of `folder`. Only the files and `date` determine the bytes.
fn tar(archive: &Path, folder: &Path, names: &[String], date: &str) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--mode=u=rwX,go=rX", date]);
    tar.args(["--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -9n"]);
    run(tar.arg("--file").arg(archive).arg("--directory").arg(folder).args(names))
}

/// Packs the files of `folder`. The time of each is 1980, the earliest that zip can express.
fn zip(archive: &Path, folder: &Path) -> Result<()> {
    let mut zip = ZipWriter::new(File::create_new(archive)?);
    let options = SimpleFileOptions::default().compression_level(Some(9));
    let find = ["-type", "f", "-printf", "%P\n"];
    let files = stdout(Command::new("find").arg(folder).args(find))?;
    for name in files.lines().collect::<BTreeSet<_>>() {
        zip.start_file(name, options)?;
        zip.write_all(&fs::read(folder.join(name))?)?;
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

fn stdout(command: &mut Command) -> Result<String> {
    process::stdout(command).with_context(|| format!("{} failed", process::line(command)))
}
