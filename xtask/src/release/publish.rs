//! `cargo xtask publish`: pushes the images and the chart of a release.
//!
//! Before, it checks that manifests and chart name exactly these images; afterwards, that everybody
//! can pull them.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::{names, stdout};
use crate::image::PLUGIN;
use crate::image::registry::{self, Registry};
use crate::process::{run_quietly, stage};
use crate::workspace::VERSION;

/// The file of a release that lists its images.
pub(super) const IMAGES: &str = "images.txt";

/// Everything in the chart that has an image.
const EVERYTHING: &str = "visibility.enabled=true,linux.enabled=true,featureDiscovery.enabled=true";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder that `cargo xtask release` wrote
    folder: PathBuf,
    /// Check the files and push nothing
    #[arg(long)]
    dry_run: bool,
    /// File for the digests of what was pushed, in the format of sha256sum
    #[arg(long, value_name = "FILE")]
    digests: Option<PathBuf>,
    /// Connect without TLS, to registries on this machine
    #[arg(long)]
    plain_http: bool,
}

/// An image or a chart in the registry.
struct Pushed {
    /// `REPOSITORY:TAG`.
    name: String,
    digest: String,
}

impl Pushed {
    fn repository(&self) -> &str {
        registry::split(&self.name).0
    }
}

/// `cargo xtask publish`.
pub(crate) fn command(options: &Options) -> Result<()> {
    let folder = &options.folder;
    let list = fs::read_to_string(folder.join(IMAGES)).map_err(|error| {
        let hint = "hint: name the folder that `cargo xtask release` wrote";
        anyhow!("cannot read {IMAGES} in {}: {error}\n{hint}", folder.display())
    })?;
    let sums = ["--check", "--strict", "--quiet", "SHA256SUMS"];
    run_quietly(Command::new("sha256sum").current_dir(folder).args(sums))?;
    let names = names(folder)?;
    let found = names.iter().find_map(|name| name.strip_suffix(".tgz"));
    let chart = found.context("the release has no chart")?;
    check_names(folder, chart, &list)?;
    if options.dry_run {
        print!("{list}");
        return Ok(());
    }

    let registry = Registry { plain_http: options.plain_http };
    let mut pushed = Vec::new();
    for line in list.lines() {
        let (name, digest) = line.split_once('@').context("an image has no digest")?;
        let existing = registry.digest(name)?.filter(|existing| existing != digest);
        if let (Some(existing), Some(VERSION)) = (existing, registry::split(name).1) {
            bail!("{name} exists with the digest {existing}; this image has {digest}");
        }
        let image = Pushed { name: name.to_owned(), digest: digest.to_owned() };
        let (_, file) = image.repository().rsplit_once('/').context("an image has no owner")?;
        let source = format!("oci-archive:{file}-{VERSION}-image.tar");
        // Fails if the archive has another digest.
        registry.push(folder, &source, digest, name)?;
        pushed.push(image);
    }
    pushed.push(push_chart(folder, chart, &pushed[0], registry)?);
    if let Some(file) = &options.digests {
        let mut lines = String::new();
        for image in &pushed {
            let digest = image.digest.trim_start_matches("sha256:");
            lines.extend([digest, "  ", image.repository(), "\n"]);
        }
        fs::write(file, lines)?;
    }
    for image in &pushed {
        println!("pushed {}@{}", image.name, image.digest);
    }
    pushed.iter().try_for_each(|image| check_public(image, registry))
}

/// Fails unless the manifests, and the chart with all its options, name the images of `list` and no
/// other image.
fn check_names(folder: &Path, chart: &str, list: &str) -> Result<()> {
    let mut helm = Command::new("helm");
    helm.current_dir(folder).args(["template", "test", &format!("{chart}.tgz")]);
    let mut text =
        stdout(helm.args(["--set", EVERYTHING])).context("helm cannot read the chart")?;
    ensure!(!named(&text).is_empty(), "the chart names no image");
    for name in names(folder)? {
        if Path::new(&name).extension().is_some_and(|extension| extension == "yml") {
            text += &fs::read_to_string(folder.join(name))?;
        }
    }
    let images = list.lines().collect();
    let difference: Vec<_> = named(&text).symmetric_difference(&images).copied().collect();
    ensure!(difference.is_empty(), "manifests and chart differ from {IMAGES} in {difference:?}");
    Ok(())
}

/// The images that a manifest names.
fn named(manifest: &str) -> BTreeSet<&str> {
    let lines = manifest
        .lines()
        .filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix("image: "));
    lines.map(|image| image.trim_matches(['"', '\''])).collect()
}

/// Pushes the chart with helm, beside the images.
fn push_chart(folder: &Path, chart: &str, image: &Pushed, registry: Registry) -> Result<Pushed> {
    let (owner, _) = image.name.rsplit_once('/').context("an image has no owner")?;
    stage(&format!("pushing the chart to {owner}/charts"));
    let mut helm = Command::new("helm");
    helm.current_dir(folder).args(["push", &format!("{chart}.tgz")]);
    helm.arg(format!("oci://{owner}/charts")).args(registry.plain_http.then_some("--plain-http"));
    run_quietly(&mut helm)?;
    let tag = chart.trim_start_matches(PLUGIN.name).trim_start_matches('-');
    let name = format!("{owner}/charts/{}:{tag}", PLUGIN.name);
    let digest = registry.digest(&name)?.with_context(|| format!("{name} was not pushed"))?;
    Ok(Pushed { name, digest })
}

/// Fails unless everybody can pull an image.
fn check_public(image: &Pushed, registry: Registry) -> Result<()> {
    let repository = image.repository();
    if registry.is_public(&format!("{repository}@{}", image.digest))? {
        return Ok(());
    }
    // A package that was pushed by a workflow belongs to its repository.
    let package = repository.splitn(3, '/').nth(2).unwrap_or_default().replace('/', "%2F");
    let page = match env::var("GITHUB_REPOSITORY") {
        Ok(repository) => format!("https://github.com/{repository}/pkgs/container/{package}"),
        Err(_) => "the page of the package".to_owned(),
    };
    bail!(
        "{} cannot be pulled without a login\nhint: set it to public on {page}, at `Package settings`, `Change visibility`; then run this again",
        image.name
    )
}
