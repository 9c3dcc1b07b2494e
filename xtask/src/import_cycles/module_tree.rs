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
    /// The module's files for other targets, with the same public items.
    pub(super) alternatives: Vec<PathBuf>,
    pub(super) source: Source,
}

/// Reads the crate whose first file is `root`.
pub(super) fn read(root: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let folder = root.parent().context("a source file lies in a folder")?;
    add_file(root, folder, &[], &mut tree)?;
    Ok(tree)
}

/// Adds the module `path` in `file`, whose child modules lie in `folder`.
fn add_file(file: &Path, folder: &Path, path: &[String], tree: &mut Tree) -> Result<()> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let source = source::read(&text).with_context(|| format!("cannot parse {}", file.display()))?;
    add(source, file, folder, path, tree)
}

fn add(
    mut source: Source,
    file: &Path,
    folder: &Path,
    path: &[String],
    tree: &mut Tree,
) -> Result<()> {
    for child in &mut source.modules {
        let child_path = [path, std::slice::from_ref(&child.name)].concat();
        let child_folder = folder.join(&child.name);
        match &mut child.body {
            Body::Inline(inner) => {
                add(std::mem::take(inner), file, &child_folder, &child_path, tree)?;
            }
            Body::File(paths) if paths.is_empty() => {
                let candidates =
                    [folder.join(format!("{}.rs", child.name)), child_folder.join("mod.rs")];
                let Some(place) = candidates.iter().find(|candidate| candidate.is_file()) else {
                    bail!("module `{}` of {} has no file", child.name, file.display());
                };
                add_file(place, &child_folder, &child_path, tree)?;
            }
            Body::File(paths) => {
                let beside = file.parent().unwrap_or(Path::new(""));
                let places: Vec<PathBuf> = paths.iter().map(|path| beside.join(path)).collect();
                add_alternatives(&places, &child_path, tree)?;
            }
        }
    }
    let module = Module { file: file.to_owned(), alternatives: Vec::new(), source };
    tree.insert(path.to_owned(), module);
    Ok(())
}

/// Adds a module that has a file for each target. The first file gets the module's
/// path. The others get paths that no code can name, so that their imports count too.
fn add_alternatives(places: &[PathBuf], path: &[String], tree: &mut Tree) -> Result<()> {
    for (number, place) in places.iter().enumerate() {
        let mut path = path.to_owned();
        if let (Some(name), 1..) = (path.last_mut(), number) {
            *name = format!("{name} (alternative {number})");
        }
        add_file(place, place.parent().unwrap_or(Path::new("")), &path, tree)?;
    }
    if let (Some(module), [_, others @ ..]) = (tree.get_mut(path), places) {
        module.alternatives = others.to_vec();
    }
    Ok(())
}
