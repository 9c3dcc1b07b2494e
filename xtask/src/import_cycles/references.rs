//! Which file names which item of which other file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::module_tree::{Module, Tree};
use super::source::{Import, Visibility};

/// For each file the files whose items it names, each with one of these items.
pub(super) type References = BTreeMap<PathBuf, BTreeMap<PathBuf, String>>;

/// Bounds the chain of re-exports that is followed, as imports may lead to each other.
const LONGEST_CHAIN: usize = 16;

/// The references between different files of a crate.
pub(super) fn between_files(tree: &Tree) -> References {
    let mut references = References::new();
    for (path, module) in tree {
        let mut add = |names: &[String]| {
            let Some((target, item)) = resolve(tree, path, names, LONGEST_CHAIN) else { return };
            for file in [&target.file].into_iter().chain(&target.alternatives) {
                if *file != module.file {
                    let from = references.entry(module.file.clone()).or_default();
                    from.entry(file.clone()).or_insert_with(|| item.clone());
                }
            }
        };
        for names in &module.source.paths {
            add(names);
        }
        for import in module.source.imports.iter().filter(|import| is_used(import, module)) {
            add(&import.path);
        }
    }
    references
}

/// Whether an import is for the module itself: one that only re-exports is not.
fn is_used(import: &Import, module: &Module) -> bool {
    match &import.name {
        _ if import.visibility == Visibility::Private => true,
        Some(name) => module.source.identifiers.contains(name),
        None => false,
    }
}

/// The module that defines what `names` names in the module `from`, and the item's name;
/// `None` for items of other crates, for local names and for modules as such.
fn resolve<'a>(
    tree: &'a Tree,
    from: &[String],
    names: &[String],
    steps: usize,
) -> Option<(&'a Module, String)> {
    let (first, rest) = names.split_first()?;
    match first.as_str() {
        "crate" => resolve_in(tree, &[], rest, steps),
        "self" => resolve_in(tree, from, rest, steps),
        "super" => {
            let parent = &from[..from.len().checked_sub(1)?];
            match rest.first().map(String::as_str) {
                Some("super") => resolve(tree, parent, rest, steps),
                _ => resolve_in(tree, parent, rest, steps),
            }
        }
        _ => {
            let module = tree.get(from)?;
            let is_child = module.source.modules.iter().any(|child| child.name == *first);
            let is_import = module.source.imports.iter().any(|i| i.name.as_ref() == Some(first));
            // An item of this module is no reference to another file.
            (is_child || is_import).then(|| resolve_in(tree, from, names, steps))?
        }
    }
}

/// As [`resolve`], for `names` below the module `at`.
fn resolve_in<'a>(
    tree: &'a Tree,
    at: &[String],
    names: &[String],
    steps: usize,
) -> Option<(&'a Module, String)> {
    let steps = steps.checked_sub(1)?;
    let module = tree.get(at)?;
    let (first, rest) = names.split_first()?;
    let child = [at, std::slice::from_ref(first)].concat();
    if tree.contains_key(&child) {
        return resolve_in(tree, &child, rest, steps);
    }
    let import = module.source.imports.iter().find(|import| import.name.as_ref() == Some(first));
    if let Some(import) = import {
        let path = [&import.path[..], rest].concat();
        // A path that begins with the name that it imports is one of another crate.
        let leads_on = import.path.first() != Some(first) || import.path.len() > 1;
        return resolve(tree, at, &path, steps).filter(|_| leads_on);
    }
    if module.source.items.contains(first) {
        return Some((module, first.clone()));
    }
    let globs = module.source.imports.iter().filter(|import| import.name.is_none());
    let mut found = globs.filter_map(|glob| {
        let path = [&glob.path[..], names].concat();
        resolve(tree, at, &path, steps)
    });
    found.next()
}
