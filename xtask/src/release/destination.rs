//! Where a release is published: the names in its manifests and its chart.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::names;
use crate::image::{Image, NO_REGISTRY, Shipped, Source};
use crate::workspace::{NO_REPOSITORY, VERSION};

pub(super) struct Destination {
    /// The registry with the owner, such as `ghcr.io/owner`.
    registry: String,
    repository: String,
    tag: String,
    pub(super) chart_version: String,
    /// The images that were built.
    pub(super) images: Vec<Image>,
}

impl Destination {
    /// `main` is the number of a build of the main branch.
    pub(super) fn new(
        source: &Source,
        registry: Option<String>,
        main: Option<u64>,
    ) -> Result<Destination> {
        let hint = "the repository is not known\nhint: --repository OWNER/REPOSITORY";
        let repository = source.repository.clone().context(hint)?;
        let registry = registry.or_else(|| source.registry()).context(hint)?;
        let (tag, chart_version) = match main {
            Some(number) => ("main".to_owned(), format!("0.0.0-main.{number}")),
            None => (VERSION.to_owned(), VERSION.to_owned()),
        };
        Ok(Destination { registry, repository, tag, chart_version, images: Vec::new() })
    }

    /// The full names of the images of programs, which end with the tag.
    pub(super) fn names(&self, shipped: &Shipped) -> Vec<String> {
        shipped.names(&format!("{}/{}", self.registry, shipped.name), &self.tag)
    }

    /// The full names of all images, one a line.
    pub(super) fn list(&self) -> String {
        let images = self.images.iter();
        let lines = images.map(|Image { name, digest, .. }| format!("{name}@{digest}\n"));
        lines.collect::<Vec<_>>().concat()
    }

    /// Replaces the names in a manifest or a file of the chart.
    pub(super) fn write_into(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for Image { entrypoint, name, digest } in &self.images {
            let placeholder = format!("{NO_REGISTRY}/{}:{VERSION}", entrypoint.image);
            text = text.replace(&placeholder, &format!("{name}@{digest}"));
        }
        text.replace(NO_REGISTRY, &self.registry).replace(NO_REPOSITORY, &self.repository)
    }

    /// The images in `Chart.yaml` get their digests, which the templates use. `version` is the
    /// version of the programs.
    pub(super) fn write_into_chart(&self, folder: &Path, version: &str) -> Result<()> {
        for name in names(folder)?.iter().filter(|name| folder.join(name).is_file()) {
            let path = folder.join(name);
            let mut text = self.write_into(&fs::read_to_string(&path)?);
            if name == "Chart.yaml" {
                let chart = format!("\nversion: {}\n", self.chart_version);
                text = text.replace(&format!("\nversion: {VERSION}\n"), &chart);
                let programs = format!("\nappVersion: \"{version}\"\n");
                text = text.replace(&format!("\nappVersion: \"{VERSION}\"\n"), &programs);
            }
            fs::write(&path, text)?;
        }
        Ok(())
    }
}
