//! `cargo xtask image`: builds container images without a container engine.
//!
//! The images of a layout have the same layers. `docs/maintainers/building.md` describes the options.

mod base;
mod digest;
mod hive;
mod layer;
mod layout;
mod programs;
mod registry;
mod source;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

pub(crate) use self::digest::digest;
pub(crate) use self::layout::Image;
pub(crate) use self::programs::built as built_name;
pub(crate) use self::programs::{LINUX, PLUGIN, Shipped, VISIBLE, compile, folder};
use self::registry::Registry;
pub(crate) use self::source::{NO_REGISTRY, Source};

use self::base::{Base, WINDOWS};
use self::layout::Layout;
use self::programs::EXAMPLES;
use crate::process::stage;
use crate::workspace;

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct Options {
    /// Folder for the files [default: target/images]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Tag of the images [default: that of --push, otherwise the version of the programs]
    #[arg(long)]
    tag: Option<String>,
    /// Use the programs in this folder and build none
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Cargo profile that the programs are built with
    #[arg(long, default_value = "release")]
    profile: String,
    /// Build the image with directx-visible and its filters, which the plugin's image does not have
    #[arg(long)]
    directx_visible: bool,
    /// Build the image for Linux nodes
    #[arg(long, conflicts_with = "directx_visible")]
    linux: bool,
    /// Build the images of gpu-probe and device-discovery for the manifests in `examples`
    #[arg(long, conflicts_with_all = ["directx_visible", "linux"])]
    examples: bool,
    /// Image of Windows that those of --examples are based on; its tag is the default of --tag
    /// [default: mcr.microsoft.com/windows/server:ltsc2022]
    #[arg(long, value_name = "IMAGE", requires = "examples", value_parser = registry::with_registry)]
    base: Option<String>,
    /// GitHub repository in the image's labels [default: `$GITHUB_REPOSITORY`]
    #[arg(long, value_name = "OWNER/REPOSITORY")]
    repository: Option<String>,
    /// Add the commit to the version of the programs
    #[arg(long)]
    revision: bool,
    /// Push the images after the build. The name is that of the plugin's image, next to which are
    /// the other images; with --examples, it is the folder of the images
    #[arg(long, value_name = "REGISTRY/REPOSITORY[:TAG]", value_parser = registry::with_registry)]
    push: Option<String>,
    /// Push even if the tag names another image
    #[arg(long, requires = "push")]
    replace: bool,
    /// Connect without TLS, to registries on this machine
    #[arg(long)]
    plain_http: bool,
}

/// `cargo xtask image`.
pub(crate) fn command(options: &Options) -> Result<()> {
    let source = Source::read(options.repository.as_deref(), options.revision)?;
    let registry = Registry { plain_http: options.plain_http };
    let (repository, tag) = options.target()?;
    let shipped = options.shipped();
    let names = match repository {
        Some(repository) => shipped.names(repository, tag),
        None => shipped.names(&shipped.unpublished(), tag),
    };
    if repository.is_some() {
        // A registry that cannot be read is an error before the build, which takes minutes.
        for name in &names {
            registry.digest(name)?;
        }
    }
    let output = options.output.clone().unwrap_or_else(|| workspace::target_dir().join("images"));
    let base = match options.base() {
        Some(name) => Some(Base::fetch(
            Registry::of(name, options.plain_http),
            name,
            output.join("windows-base"),
        )?),
        None => None,
    };
    let programs = options.programs.as_deref();
    let layout = build(shipped, programs, &options.profile, &source, names, base)?;
    let folder = output.join(shipped.name);
    layout.write(&folder)?;
    for image in &layout.images {
        println!("{}  {}", image.digest, image.name);
    }
    println!("  layout   {}", folder.display());
    if !options.examples {
        let archive = output.join(format!("{}.tar", shipped.name));
        layout.write_archive(&archive)?;
        println!("  archive  {}", archive.display());
    }
    if repository.is_none() {
        return Ok(());
    }

    for Image { name, digest, .. } in &layout.images {
        let existing = registry.digest(name)?.filter(|existing| existing != digest);
        if let (Some(existing), false) = (existing, options.replace) {
            bail!(
                "{name} exists with the digest {existing}; this image has {digest}\nhint: use another tag, or --replace"
            );
        }
    }
    for Image { name, digest, .. } in &layout.images {
        registry.push(&folder, digest, name)?;
        println!("pushed {name}@{digest}");
    }
    Ok(())
}

/// Builds the images `names`, which end with a tag, of existing programs in a folder, or of new
/// ones.
pub(crate) fn build(
    shipped: &Shipped,
    programs: Option<&Path>,
    profile: &str,
    source: &Source,
    names: Vec<String>,
    base: Option<Base>,
) -> Result<Layout> {
    let folder = match programs {
        Some(folder) => folder.to_owned(),
        None => programs::build(shipped, profile, source)?,
    };
    stage(&format!("packing the image of {}", shipped.name));
    Layout::new(shipped, &programs::read(&folder, shipped)?, source, names, base)
}

impl Options {
    fn shipped(&self) -> &'static Shipped {
        match (self.directx_visible, self.linux, self.examples) {
            (true, ..) => &VISIBLE,
            (_, true, _) => &LINUX,
            (_, _, true) => &EXAMPLES,
            _ => &PLUGIN,
        }
    }

    fn base(&self) -> Option<&str> {
        self.examples.then(|| self.base.as_deref().unwrap_or(WINDOWS))
    }

    /// The repository to push to, and the tag of the images.
    fn target(&self) -> Result<(Option<&str>, &str)> {
        ensure!(!self.push.iter().any(|name| name.contains('@')), "--push names a digest");
        let (repository, pushed) = self.push.as_deref().map(registry::split).unzip();
        let tag = self.tag.as_deref();
        let pushed = pushed.flatten();
        if let (Some(tag), Some(pushed)) = (tag, pushed) {
            ensure!(tag == pushed, "--tag is `{tag}` and --push names the tag `{pushed}`");
        }
        let of_base = self.base().and_then(|name| registry::split(name).1);
        Ok((repository, tag.or(pushed).or(of_base).unwrap_or(workspace::VERSION)))
    }
}
