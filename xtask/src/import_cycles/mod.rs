//! Import cycles between the files of one crate, over the whole workspace.
//!
//! A file imports another one if its code, tests left out, names an item that the other
//! one defines. Two files that import each other cannot be understood one after the
//! other. A re-export leads to the file that defines the item, so a module that only
//! re-exports its children imports nothing.

mod graph;
mod module_tree;
mod references;
mod source;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace;

/// Fails if there is a cycle in a crate of the workspace, and prints each one.
pub(crate) fn check() -> Result<()> {
    let mut count = 0;
    for root in crate_roots()? {
        for cycle in cycles(&root)? {
            count += 1;
            println!("{cycle}");
        }
    }
    if count > 0 {
        bail!("import cycles: {count}\nhint: move what two files share into a file of its own");
    }
    Ok(())
}

/// The cycles of the crate whose first file is `root`, one line each.
fn cycles(root: &Path) -> Result<Vec<String>> {
    let tree = module_tree::read(root)?;
    let folder = root.parent().context("a source file lies in a folder")?;
    let workspace = workspace::root();
    let shown = folder.strip_prefix(&workspace).unwrap_or(folder);
    let cycles = graph::cycles(&references::between_files(&tree)).into_iter();
    Ok(cycles
        .map(|cycle| format!("{}: {}", workspace::shown(shown), text(&cycle, folder)))
        .collect())
}

/// `a.rs → b.rs (Item) → a.rs (Other)`: behind each file, what the one before names of it.
fn text(cycle: &graph::Cycle, folder: &Path) -> String {
    let name = |file: &Path| workspace::shown(file.strip_prefix(folder).unwrap_or(file));
    cycle.steps.iter().fold(name(&cycle.start), |text, step| {
        format!("{text} → {} ({})", name(&step.file), step.item)
    })
}

/// The first files of all libraries and programs of the workspace.
fn crate_roots() -> Result<Vec<PathBuf>> {
    let packages = workspace::packages()?;
    let targets = packages.iter().filter_map(|package| package.get("targets")?.as_array());
    let roots = targets.flatten().filter(|target| is_product(target)).filter_map(|target| {
        let path = target.get("src_path")?.as_str()?;
        Some(PathBuf::from(path))
    });
    let mut roots: Vec<PathBuf> = roots.collect();
    roots.sort();
    roots.dedup();
    if roots.is_empty() {
        bail!("cargo's metadata names no source files");
    }
    Ok(roots)
}

/// Whether a target is a library or a program rather than a test, benchmark or example.
fn is_product(target: &Value) -> bool {
    let kinds = target.get("kind").and_then(Value::as_array).into_iter().flatten();
    let mut kinds = kinds.filter_map(Value::as_str);
    kinds.any(|kind| !["test", "bench", "example", "custom-build"].contains(&kind))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The cycles of a crate with these files.
    fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let prefix = format!("{}: ", workspace::shown(folder.path()));
        let found = cycles(&folder.path().join("lib.rs")).unwrap();
        found.iter().map(|cycle| cycle.replace(&prefix, "")).collect()
    }

    #[test]
    fn this_crate_has_no_cycle() {
        let root = workspace::root().join("xtask/src/main.rs");
        assert_eq!(cycles(&root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_cycle_names_its_files_and_items() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B(crate::c::C);"),
            ("c.rs", "use super::a; pub struct C; fn f(_: a::A) {}"),
        ];
        assert_eq!(cycles_of(&files), ["a.rs → b.rs (B) → c.rs (C) → a.rs (A)"]);
    }

    #[test]
    fn imports_in_one_direction_are_no_cycle() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "pub struct B;"),
        ];
        assert_eq!(cycles_of(&files), Vec::<String>::new());
    }

    #[test]
    fn a_reexport_leads_to_the_file_of_the_item() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::*; pub use b::inner::{B as Renamed};"),
            ("a.rs", "use crate::Renamed; pub struct A;"),
            ("b/mod.rs", "pub mod inner;"),
            ("b/inner.rs", "pub struct B; fn f() { let _ = crate::A; }"),
        ];
        assert_eq!(cycles_of(&files), ["a.rs → b/inner.rs (B) → a.rs (A)"]);
    }

    #[test]
    fn a_module_and_its_child_form_a_cycle_only_if_both_name_items() {
        let child = ("a/child.rs", "use super::Shared; pub struct Child;");
        let only_child = ("a/mod.rs", "mod child; pub use child::Child; pub struct Shared;");
        let both = ("a/mod.rs", "mod child; use child::Child; pub struct Shared(Child);");
        let root = ("lib.rs", "mod a;");
        assert_eq!(cycles_of(&[root, only_child, child]), Vec::<String>::new());
        assert_eq!(
            cycles_of(&[root, both, child]),
            ["a/child.rs → a/mod.rs (Shared) → a/child.rs (Child)"]
        );
    }

    #[test]
    fn a_reexport_that_the_module_uses_itself_is_an_import() {
        let files = [
            ("lib.rs", "mod a; pub use a::A; pub struct Shared; fn f() -> A { A }"),
            ("a.rs", "use crate::Shared; pub struct A;"),
        ];
        assert_eq!(cycles_of(&files), ["a.rs → lib.rs (Shared) → a.rs (A)"]);
    }

    #[test]
    fn tests_are_left_out() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] use crate::b::{B};",
            ),
            ("b.rs", "use crate::a::A; pub struct B;"),
        ];
        assert_eq!(cycles_of(&files), Vec::<String>::new());
    }

    #[test]
    fn paths_in_macros_and_inline_modules_count() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "fn f() { println!(\"{}\", crate::b::TEXT) } pub const TEXT: &str = \"\";"),
            ("b.rs", "pub const TEXT: &str = \"\"; mod inner { use super::super::a::TEXT as T; }"),
        ];
        assert_eq!(cycles_of(&files), ["a.rs → b.rs (TEXT) → a.rs (TEXT)"]);
    }

    #[test]
    fn a_path_attribute_names_the_file_of_a_module() {
        let files = [
            ("lib.rs", "#[path = \"other/place.rs\"] mod a; mod b;"),
            ("other/place.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B(super::a::A);"),
        ];
        assert_eq!(cycles_of(&files), ["b.rs → other/place.rs (A) → b.rs (B)"]);
    }

    #[test]
    fn a_module_with_a_file_for_each_target_is_read_for_all_targets() {
        let attributes =
            "#[cfg_attr(unix, path = \"a/unix.rs\")] #[cfg_attr(windows, path = \"a/win.rs\")]";
        let root = format!("{attributes} mod a; mod b;");
        let files = [
            ("lib.rs", root.as_str()),
            ("a/unix.rs", "pub struct A;"),
            ("a/win.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B(crate::a::A);"),
        ];
        assert_eq!(cycles_of(&files), ["a/win.rs → b.rs (B) → a/win.rs (A)"]);
    }
}
