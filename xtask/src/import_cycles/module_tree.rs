//! The modules of one crate, read from its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::source::{self, Body, Source};

/// The modules of a crate by their paths: `[]` is the crate itself.
pub(super) type Tree = BTreeMap<Vec<String>, Module>;

pub(super) struct Module {
    /// The file that contains the module.
    pub(super) file: PathBuf,
    pub(super) source: Source,
}

/// Reads the crate whose first file is `root`.
pub(super) fn read(root: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let folder = root.parent().context("a source file lies in a folder")?;
    add_file(root.to_owned(), folder, Vec::new(), &mut tree)?;
    Ok(tree)
}

/// Adds the module `path` in `file`, whose child modules lie in `folder`.
fn add_file(file: PathBuf, folder: &Path, path: Vec<String>, tree: &mut Tree) -> Result<()> {
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let source = source::read(&text).with_context(|| format!("cannot parse {}", file.display()))?;
    add(source, file, folder, path, tree)
}

fn add(
    mut source: Source,
    file: PathBuf,
    folder: &Path,
    path: Vec<String>,
    tree: &mut Tree,
) -> Result<()> {
    for child in &mut source.modules {
        let child_path = [&path[..], &[child.name.clone()]].concat();
        let child_folder = folder.join(&child.name);
        match &mut child.body {
            Body::Inline(inner) => {
                add(std::mem::take(inner), file.clone(), &child_folder, child_path, tree)?;
            }
            Body::File(Some(attribute)) => {
                let place = file.parent().unwrap_or(Path::new("")).join(attribute);
                let beside = place.parent().unwrap_or(Path::new("")).to_owned();
                add_file(place, &beside, child_path, tree)?;
            }
            Body::File(None) => {
                let candidates =
                    [folder.join(format!("{}.rs", child.name)), child_folder.join("mod.rs")];
                let Some(place) = candidates.iter().find(|candidate| candidate.is_file()) else {
                    bail!("module `{}` of {} has no file", child.name, file.display());
                };
                add_file(place.clone(), &child_folder, child_path, tree)?;
            }
        }
    }
    tree.insert(path, Module { file, source });
    Ok(())
}
