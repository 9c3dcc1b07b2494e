//! `cargo xtask image`: builds container images without a container engine.
//!
//! The images for nodes are `HostProcess` images with one layer. Example images have a layer on
//! top of a Windows image. `docs/images.md` describes the options and the files.

mod hive;
mod layer;
mod layout;
mod manifest;
mod programs;
mod referrers;
mod registry;
mod security;
mod source;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use serde_json::Value;

pub(crate) use self::programs::built as built_name;
pub(crate) use self::programs::{PLUGIN, Shipped, VISIBLE};

use self::layout::Layout;
use self::manifest::{BaseImage, Content};
use self::registry::Registry;
use self::source::Source;
use crate::workspace;

/// The repository that images are named after in an archive, unless they are pushed.
const IMAGES: &str = "ghcr.io/directx-device-plugin";

/// Builds the container image of the plugin or of an example, and pushes it
#[derive(Parser)]
#[command(bin_name = "cargo xtask image")]
struct Options {
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
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let words = [OsString::from("image")].into_iter().chain(arguments.iter().cloned());
    let options = match Options::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            error.print()?;
            return Ok(if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS });
        }
    };
    let source = Source::read()?;
    let registry = Registry { plain_http: options.plain_http };
    let (repository, tag) = options.target(&source)?;
    let target = repository.map(|repository| format!("{repository}:{tag}"));
    if let Some(target) = &target {
        // A registry that cannot be read is an error before the build, which takes minutes.
        registry.digest(target)?;
    }
    let mut image = Image::build(&options, &source, registry)?;
    let name = target.clone().unwrap_or_else(|| format!("{IMAGES}/{}:{tag}", image.name));
    image.tag(tag, &name);
    let folder = options.output.clone().unwrap_or_else(|| workspace::target_dir().join("images"));
    image.write(&folder, &source)?;
    let Some((repository, target)) = repository.zip(target) else { return Ok(ExitCode::SUCCESS) };

    let digest = &image.digest;
    if let Some(existing) = registry.digest(&target)?.filter(|existing| existing != digest) {
        ensure!(
            options.replace,
            "{target} exists with the digest {existing}; this image has {digest}\nhint: use another tag, or --replace"
        );
    }
    let (layout, referrers) = (folder.join(image.name), folder.join(image.referrers_name()));
    // The tag is last, so a push that fails leaves it as it was.
    registry.push(&layout, tag, &format!("{repository}@{digest}"))?;
    registry.push_index(
        &referrers,
        &image.index_tag,
        &format!("{repository}:{}", image.index_tag),
    )?;
    registry.push(&layout, tag, &target)?;
    println!("pushed {target}@{digest}");
    Ok(ExitCode::SUCCESS)
}

impl Options {
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
    /// A layout with the artifacts that refer to the image, and the tag of their index.
    referrers: Layout,
    index_tag: String,
}

impl Image {
    fn build(options: &Options, source: &Source, registry: Registry) -> Result<Image> {
        let base = options.base.as_deref().map(|name| BaseImage::read(registry, name));
        let base = base.transpose()?;
        let shipped = match options.example {
            Some(Example::DeviceDiscovery) => &programs::DEVICE_DISCOVERY,
            Some(Example::GpuProbe) => &programs::GPU_PROBE,
            None if options.directx_visible => &VISIBLE,
            None => &PLUGIN,
        };
        // That of given programs is not known.
        let default = options.programs.is_none().then_some("release");
        let profile = options.profile.as_deref().or(default);
        let build = || programs::build(shipped, profile.unwrap_or_default());
        let folder = options.programs.clone().map_or_else(build, Ok)?;
        let content = Content { shipped, files: programs::read(&folder, shipped.files)? };
        let mut layout = Layout::default();
        let descriptor = manifest::add(&mut layout, &content, base.as_ref(), source)?;
        let digest = descriptor["digest"].as_str().unwrap_or_default().to_owned();
        let documents = [
            referrers::bill_of_materials(&content, source)?,
            referrers::provenance(&digest, &content, base.as_ref(), profile, source)?,
        ];
        let (referrers, index_tag) = referrers::layout(&descriptor, &documents, source);
        Ok(Image { name: shipped.name, digest, descriptor, layout, referrers, index_tag })
    }

    fn referrers_name(&self) -> String {
        format!("{}-referrers", self.name)
    }

    fn tag(&mut self, tag: &str, name: &str) {
        // `ctr images import` reads the name from this annotation.
        self.descriptor["annotations"]["io.containerd.image.name"] = name.into();
        self.layout.tag(tag, self.descriptor.clone());
    }

    fn write(&self, folder: &Path, source: &Source) -> Result<()> {
        let (layout, referrers) = (folder.join(self.name), folder.join(self.referrers_name()));
        let archive = folder.join(format!("{}.tar", self.name));
        self.layout.write(&layout)?;
        self.layout.write_archive(&archive, source.seconds)?;
        self.referrers.write(&referrers)?;
        println!("{}\n  layout     {}", self.digest, layout.display());
        println!("  archive    {}\n  referrers  {}", archive.display(), referrers.display());
        Ok(())
    }
}
