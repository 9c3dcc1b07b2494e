//! `cargo xtask image`: builds container images without a container engine.
//!
//! The plugin's image is a `HostProcess` image with one layer. Example images have a layer
//! on top of a Windows image. For each image three things are written:
//! an OCI layout, the same as an archive for `ctr images import`, and a second layout with
//! its bill of materials and its provenance. The same source gives the same bytes on every
//! machine. `--push` then pushes the image with skopeo.

mod base_image;
mod digest;
mod example;
mod hive;
mod layer;
mod layout;
mod manifest;
mod options;
mod programs;
mod provenance;
mod push;
mod reference;
mod referrers;
mod sbom;
mod security;
mod source;
mod source_date;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

pub(crate) use self::digest::Digest;
pub(crate) use self::hive::check as check_hive;
pub(crate) use self::layer::{HIVE_FOLDER, HIVES};
pub(crate) use self::layout::{INDEX, MANIFEST};
pub(crate) use self::programs::{PACKAGES as PROGRAM_PACKAGES, names as program_names};
pub(crate) use self::security::base64;
pub(crate) use self::source_date::civil;

use self::base_image::BaseImage;
use self::example::Example;
use self::layout::Layout;
use self::manifest::Title;
use self::options::{ImageKind, Options};
use self::provenance::Programs;
use self::referrers::Referrers;
use self::source::{Source, Tree};

/// The name of the plugin's image, of its layout and of its repository.
pub(crate) const PLUGIN: &str = "directx-device-plugin";

/// The repository that images are named after in an archive, unless they are pushed to
/// another one.
const REPOSITORY: &str = "ghcr.io/directx-device-plugin";

/// The annotation by which `ctr images import` names an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// `cargo xtask image`.
pub(crate) fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let source = Source::read()?;
    let options = Options::parse(arguments, source.version)?;
    if options.push.is_some() {
        push::require_skopeo()?;
    }
    if source.tree == Tree::Modified {
        eprintln!("warning: the files of the workspace differ from the commit");
    }
    let image = Image::build(&options, &source)?;
    image.write(&options, &source)?;
    image.print(&options);
    if let Some(push_options) = &options.push {
        let content = push::Content {
            folder: &options.output,
            image: &image.name,
            tag: &options.tag,
            digest: image.digest(),
            referrers: &image.referrers_name(),
            artifacts: &image.referrers.artifacts,
            index_tag: &image.referrers.index_tag,
        };
        println!("pushed {}", push::push(&content, push_options)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// What an image is made of, apart from the programs.
enum Content {
    Plugin,
    Example(&'static Example, BaseImage),
}

impl Content {
    fn read(kind: &ImageKind) -> Result<Content> {
        Ok(match kind {
            ImageKind::Plugin => Content::Plugin,
            ImageKind::Example(example, base) => Content::Example(example, BaseImage::read(base)?),
        })
    }

    fn title(&self) -> Title<'static> {
        match self {
            Content::Plugin => Title {
                name: PLUGIN,
                description: "Advertises the DirectX devices of Windows nodes to Kubernetes",
            },
            Content::Example(example, _) => {
                Title { name: example.name, description: example.description }
            }
        }
    }

    /// The names of the files in it.
    fn files(&self) -> Vec<&'static str> {
        match self {
            Content::Plugin => programs::names().collect(),
            Content::Example(example, _) => example.files.to_vec(),
        }
    }
}

/// A built image in memory.
struct Image {
    /// Its name, which its files have too.
    name: String,
    layout: Layout,
    descriptor: Value,
    referrers: Referrers,
}

impl Image {
    fn build(options: &Options, source: &Source) -> Result<Image> {
        // Read before the programs are built, which takes minutes.
        let content = Content::read(&options.kind)?;
        let (folder, origin) = match &options.programs {
            Some(folder) => (folder.clone(), Programs::Given),
            None => (programs::build()?, Programs::Built),
        };
        let title = content.title();
        let files = programs::read(&folder, &content.files())?;
        let mut layout = Layout::default();
        let (descriptor, base) = match &content {
            Content::Plugin => (manifest::add_plugin(&mut layout, &title, &files, source)?, None),
            Content::Example(example, base) => {
                let layout = &mut layout;
                let descriptor =
                    manifest::add_example(layout, &title, example, base, &files, source)?;
                (descriptor, Some(base))
            }
        };
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        let sbom = sbom::document(&title, source)?;
        let provenance = provenance::statement(&title, digest, &files, base, origin, source)?;
        let referrers = Referrers::new(&descriptor, &sbom, &provenance, source);
        Ok(Image { name: title.name.to_owned(), layout, descriptor, referrers })
    }

    fn digest(&self) -> &str {
        self.descriptor["digest"].as_str().unwrap_or_default()
    }

    fn referrers_name(&self) -> String {
        format!("{}-referrers", self.name)
    }

    /// Writes the layouts and the archive into the output folder.
    fn write(&self, options: &Options, source: &Source) -> Result<()> {
        let folder = &options.output;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let repository = match &options.push {
            Some(push) => format!("{}/{}", push.target.registry, push.target.repository),
            None => format!("{REPOSITORY}/{}", self.name),
        };
        let mut descriptor = self.descriptor.clone();
        let name = format!("{repository}:{}", options.tag);
        descriptor["annotations"] = BTreeMap::from([(CONTAINERD_NAME, name)]).into_iter().collect();
        let mut layout = self.layout.clone();
        layout.tag(&options.tag, descriptor);
        layout.write(&folder.join(&self.name))?;
        layout.write_archive(&folder.join(format!("{}.tar", self.name)), source.date)?;
        self.referrers.layout.write(&folder.join(self.referrers_name()))
    }

    fn print(&self, options: &Options) {
        let folder = options.output.join(&self.name);
        let kilobytes = self.layout.size() / 1000;
        println!("{} ({}.{:03} MB)", self.digest(), kilobytes / 1000, kilobytes % 1000);
        println!("  layout     {}", folder.display());
        println!("  archive    {}.tar", folder.display());
        println!("  referrers  {}-referrers", folder.display());
    }
}
