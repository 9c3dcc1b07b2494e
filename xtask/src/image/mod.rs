//! `cargo xtask image`: builds container images without a container engine.
//!
//! The images for nodes have one layer; those for Windows are `HostProcess` images. Example images
//! have a layer on top of a Windows image. `docs/images.md` describes the options and the files.

mod hive;
mod layer;
mod layout;
mod manifest;
mod programs;
mod referrers;
mod registry;
mod security;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde_json::Value;

pub(crate) use self::programs::built as built_name;
pub(crate) use self::programs::{LINUX, PLUGIN, Shipped, VISIBLE, compile, folder};
pub(crate) use self::source::Source;

use self::layout::Layout;
use self::manifest::{BaseImage, Content};
use self::registry::Registry;
use crate::workspace;

/// The repository that images are named after in an archive, unless they are pushed.
const IMAGES: &str = "ghcr.io/directx-device-plugin";

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct Options {
    /// Folder for the files [default: target/images]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Tag of the image [default: that of --push, otherwise the version of the programs]
    #[arg(long)]
    tag: Option<String>,
    /// Use the programs in this folder and build none
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Cargo profile that the programs are or were built with [default: release]
    #[arg(long)]
    profile: Option<String>,
    /// Build the image with directx-visible and its filters, which the plugin's image does not have
    #[arg(long, conflicts_with = "example")]
    directx_visible: bool,
    /// Build the image for Linux nodes with /dev/dxg
    #[arg(long, conflicts_with_all = ["directx_visible", "example"])]
    linux: bool,
    /// Build the image of this example
    #[arg(long, requires = "base")]
    example: Option<Example>,
    /// Windows image of the example, such as mcr.microsoft.com/windows/server:ltsc2022
    #[arg(long, value_name = "IMAGE", requires = "example", value_parser = registry::with_registry)]
    base: Option<String>,
    /// Push the image after the build
    #[arg(long, value_name = "REGISTRY/REPOSITORY[:TAG]", value_parser = registry::with_registry)]
    push: Option<String>,
    /// Push even if the tag names another image
    #[arg(long, requires = "push")]
    replace: bool,
    /// Connect without TLS, to registries on this machine
    #[arg(long)]
    plain_http: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Example {
    DeviceDiscovery,
    GpuProbe,
}

/// `cargo xtask image`.
pub(crate) fn command(options: &Options) -> Result<()> {
    let source = Source::read()?;
    let registry = Registry { plain_http: options.plain_http };
    let (repository, tag) = options.target(&source)?;
    let target = repository.map(|repository| format!("{repository}:{tag}"));
    if let Some(target) = &target {
        // A registry that cannot be read is an error before the build, which takes minutes.
        registry.digest(target)?;
    }
    let base = options.base.as_deref().map(|name| BaseImage::read(registry, name)).transpose()?;
    let (programs, profile) = (options.programs.as_deref(), options.profile.as_deref());
    let mut image = Image::build(options.shipped(), programs, profile, base.as_ref(), &source)?;
    image.tag(tag, target.clone());
    let folder = options.output.clone().unwrap_or_else(|| workspace::target_dir().join("images"));
    let (layout, referrers) = image.write(&folder, &source)?;
    let Some((repository, target)) = repository.zip(target) else { return Ok(()) };

    let digest = &image.digest;
    if let Some(existing) = registry.digest(&target)?.filter(|existing| existing != digest) {
        ensure!(
            options.replace,
            "{target} exists with the digest {existing}; this image has {digest}\nhint: use another tag, or --replace"
        );
    }
    // The tag is last, so a push that fails leaves it as it was.
    registry.push(&layout, tag, &format!("{repository}@{digest}"))?;
    registry.push_index(
        &referrers,
        &image.index_tag,
        &format!("{repository}:{}", image.index_tag),
    )?;
    registry.push(&layout, tag, &target)?;
    println!("pushed {target}@{digest}");
    Ok(())
}

/// Builds an image and writes it, and the documents about it, to the paths that `file` returns.
pub(crate) fn release(
    shipped: &'static Shipped,
    programs: Option<&Path>,
    profile: &str,
    source: &Source,
    file: impl Fn(&str) -> PathBuf,
) -> Result<()> {
    let mut image = Image::build(shipped, programs, Some(profile), None, source)?;
    image.tag(source.version, None);
    image.layout.write_archive(&file("image.tar"), source.seconds)?;
    image.referrers.write_archive(&file("image-referrers.tar"), source.seconds)?;
    for ((_, document), name) in image.documents.iter().zip(["sbom.cdx.json", "provenance.json"]) {
        fs::write(file(name), document.to_string())?;
    }
    Ok(())
}

impl Options {
    fn shipped(&self) -> &'static Shipped {
        match self.example {
            Some(Example::DeviceDiscovery) => &programs::DEVICE_DISCOVERY,
            Some(Example::GpuProbe) => &programs::GPU_PROBE,
            None if self.directx_visible => &VISIBLE,
            None if self.linux => &LINUX,
            None => &PLUGIN,
        }
    }

    /// The repository to push to, and the tag of the image.
    fn target<'a>(&'a self, source: &'a Source) -> Result<(Option<&'a str>, &'a str)> {
        ensure!(!self.push.iter().any(|name| name.contains('@')), "--push names a digest");
        let (repository, pushed) = self.push.as_deref().map(registry::split).unzip();
        let (tag, pushed) = (self.tag.as_deref(), pushed.flatten());
        if let (Some(tag), Some(pushed)) = (tag, pushed) {
            ensure!(tag == pushed, "--tag is `{tag}` and --push names the tag `{pushed}`");
        }
        Ok((repository, tag.or(pushed).unwrap_or(source.version)))
    }
}

/// A built image in memory.
struct Image {
    name: &'static str,
    digest: String,
    descriptor: Value,
    layout: Layout,
    /// The bill of materials and the provenance, with their media types.
    documents: [(&'static str, Value); 2],
    /// A layout with the documents as artifacts that refer to the image, and the tag of their index.
    referrers: Layout,
    index_tag: String,
}

impl Image {
    /// Builds an image of existing programs in a folder, or of new ones.
    fn build(
        shipped: &'static Shipped,
        programs: Option<&Path>,
        profile: Option<&str>,
        base: Option<&BaseImage>,
        source: &Source,
    ) -> Result<Image> {
        // That of given programs is not known.
        let profile = profile.or(programs.is_none().then_some("release"));
        let build = || programs::build(shipped, profile.unwrap_or_default());
        let folder = programs.map_or_else(build, |folder| Ok(folder.to_owned()))?;
        let content = Content { shipped, files: programs::read(&folder, shipped.files)? };
        let mut layout = Layout::default();
        let descriptor = manifest::add(&mut layout, &content, base, source)?;
        let digest = descriptor["digest"].as_str().unwrap_or_default().to_owned();
        let documents = [
            referrers::bill_of_materials(&content, source)?,
            referrers::provenance(&digest, &content, base, profile, source)?,
        ];
        let (referrers, index_tag) = referrers::layout(&descriptor, &documents, source);
        let name = shipped.name;
        Ok(Image { name, digest, descriptor, layout, documents, referrers, index_tag })
    }

    fn tag(&mut self, tag: &str, name: Option<String>) {
        let name = name.unwrap_or_else(|| format!("{IMAGES}/{}:{tag}", self.name));
        // `ctr images import` reads the name from this annotation.
        self.descriptor["annotations"]["io.containerd.image.name"] = name.into();
        self.layout.tag(tag, self.descriptor.clone());
    }

    /// Writes the layouts and returns their folders.
    fn write(&self, folder: &Path, source: &Source) -> Result<(PathBuf, PathBuf)> {
        let path = |end| folder.join(format!("{}{end}", self.name));
        let (layout, archive, referrers) = (path(""), path(".tar"), path("-referrers"));
        self.layout.write(&layout)?;
        self.layout.write_archive(&archive, source.seconds)?;
        self.referrers.write(&referrers)?;
        println!("{}\n  layout     {}", self.digest, layout.display());
        println!("  archive    {}\n  referrers  {}", archive.display(), referrers.display());
        Ok((layout, referrers))
    }
}
