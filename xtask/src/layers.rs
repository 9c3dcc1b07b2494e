//! The dependency rule of the workspace, checked on `cargo metadata`.
//!
//! The folders of the workspace are layers. A crate depends only on crates of its own
//! folder or of an earlier one, so every decision can be tested without the layers
//! that run it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace;

/// The folders that contain crates, from the lowest layer to the highest.
const FOLDERS: [&str; 5] = ["core", "windows", "kubernetes", "programs", "testing"];

/// The crate that lies in no folder.
const XTASK: &str = "xtask";

/// The folder of the crates that decide and do no I/O.
const PURE_FOLDER: &str = "core";

/// The folder of the crates that no released program contains.
const TEST_FOLDER: &str = "testing";

/// Dependencies that do I/O or call the operating system, by the start of their names.
const OPERATING_SYSTEM: [&str; 18] = [
    "async-std",
    "ctrlc",
    "errno",
    "h2",
    "hyper",
    "inotify",
    "libc",
    "mio",
    "nix",
    "notify",
    "rustix",
    "smol",
    "socket2",
    "tokio",
    "tonic",
    "tracing",
    "winapi",
    "windows",
];

/// Crates of [`PURE_FOLDER`] that may still use one of [`OPERATING_SYSTEM`], and why.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

/// Folders whose crates may contain unsafe code: they call Windows.
const UNSAFE_FOLDERS: [&str; 2] = ["windows", "testing"];

/// Crates elsewhere that may contain unsafe code, and why.
const UNSAFE_CRATES: [(&str, &str); 2] = [
    ("discovery_dll", "exports a C interface"),
    ("gpu_probe", "calls GPU libraries, on Windows and Linux"),
];

/// Checks every crate of the workspace.
pub(crate) fn check() -> Result<()> {
    let crates = workspace::packages()?.iter().map(Crate::read).collect::<Result<Vec<_>>>()?;
    let violations = violations(&crates);
    if violations.is_empty() {
        println!("{} crates follow the dependency rule", crates.len());
        return Ok(());
    }
    bail!("{}", violations.join("\n"))
}

/// A member of the workspace.
struct Crate {
    name: String,
    /// The folder below the workspace's, such as `core`; `xtask` for itself.
    folder: String,
    dependencies: Vec<Dependency>,
    /// Whether the crate applies the workspace's lints, which deny unsafe code.
    lints: Lints,
    /// Source files that allow unsafe code.
    unsafe_files: Vec<PathBuf>,
}

#[derive(PartialEq, Eq)]
enum Lints {
    Workspace,
    Other,
}

struct Dependency {
    name: String,
    kind: DependencyKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DependencyKind {
    /// A normal or build dependency, for any target.
    Normal,
    Dev,
}

impl Crate {
    fn read(package: &Value) -> Result<Crate> {
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str).map(str::to_owned);
            text.with_context(|| format!("cargo's metadata lacks `{key}`"))
        };
        let manifest = PathBuf::from(text(package, "manifest_path")?);
        let folder = manifest
            .strip_prefix(workspace::root())
            .ok()
            .and_then(|path| Some(path.components().next()?.as_os_str().to_str()?.to_owned()))
            .with_context(|| format!("{} lies outside the workspace", manifest.display()))?;
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        let dependencies = dependencies.into_iter().flatten().map(|dependency| {
            let is_dev = dependency.get("kind").and_then(Value::as_str) == Some("dev");
            let kind = if is_dev { DependencyKind::Dev } else { DependencyKind::Normal };
            Ok(Dependency { name: text(dependency, "name")?, kind })
        });
        let own = manifest.parent().context("a manifest lies in a folder")?;
        Ok(Crate {
            name: text(package, "name")?,
            folder,
            dependencies: dependencies.collect::<Result<_>>()?,
            lints: lints(&fs::read_to_string(&manifest)?),
            unsafe_files: files_with_unsafe_code(&own.join("src"))?,
        })
    }

    /// Its place in the order of [`FOLDERS`].
    fn layer(&self) -> Option<usize> {
        FOLDERS.iter().position(|folder| *folder == self.folder)
    }
}

/// Whether a manifest has `[lints]` with `workspace = true`.
fn lints(manifest: &str) -> Lints {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]");
    if lines.nth(1) == Some("workspace = true") { Lints::Workspace } else { Lints::Other }
}

/// The Rust files below `folder` that name the lint `unsafe_code`, which they do only to
/// allow it. Integration tests are not looked at: their allocators may be unsafe.
fn files_with_unsafe_code(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_with_unsafe_code(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let allows = |line: &str| {
                let line = line.trim();
                line.starts_with('#') && line.contains("unsafe_code") || line == "unsafe_code,"
            };
            if text.lines().any(allows) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Everything in `crates` that breaks the rule.
fn violations(crates: &[Crate]) -> Vec<String> {
    let by_name: BTreeMap<&str, &Crate> = crates.iter().map(|c| (&*c.name, c)).collect();
    let mut found = Vec::new();
    for member in crates {
        found.extend(folder_violation(member));
        found.extend(unsafe_violation(member));
        for dependency in member.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            found.extend(match by_name.get(&*dependency.name) {
                Some(target) => direction_violation(member, target),
                None => purity_violation(member, &dependency.name),
            });
        }
    }
    found.extend(dependency_cycle(&by_name));
    found
}

fn folder_violation(member: &Crate) -> Option<String> {
    let known = member.layer().is_some() || member.folder == XTASK;
    (!known).then(|| {
        format!(
            "crate `{}` lies in `{}`: every crate lies in one of the folders {}, or is `{XTASK}`",
            member.name,
            member.folder,
            FOLDERS.join(", ")
        )
    })
}

fn direction_violation(member: &Crate, target: &Crate) -> Option<String> {
    let (name, folder) = (&member.name, &member.folder);
    let (other, other_folder) = (&target.name, &target.folder);
    if other_folder == TEST_FOLDER && folder != TEST_FOLDER {
        return Some(format!(
            "`{name}` ({folder}) depends on `{other}` ({other_folder}): crates of {TEST_FOLDER} \
             are dependencies only of crates in {TEST_FOLDER}, or dev-dependencies"
        ));
    }
    // Without a layer: xtask, which may use every crate but is used by none.
    let allowed = match (member.layer(), target.layer()) {
        (Some(own), Some(other)) => other <= own,
        (None, Some(_)) => true,
        (_, None) => false,
    };
    (!allowed).then(|| {
        format!(
            "`{name}` ({folder}) depends on `{other}` ({other_folder}): a crate depends only on \
             crates of its own folder or of an earlier one in the order {}",
            FOLDERS.join(", ")
        )
    })
}

fn purity_violation(member: &Crate, dependency: &str) -> Option<String> {
    let restricted = member.folder == PURE_FOLDER
        && OPERATING_SYSTEM.iter().any(|name| {
            let rest = dependency.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
        });
    let excepted = EXCEPTIONS.iter().any(|(a, b, _)| *a == member.name && *b == dependency);
    (restricted && !excepted).then(|| {
        format!(
            "`{}` ({PURE_FOLDER}) depends on `{dependency}`: crates of {PURE_FOLDER} use no \
             operating-system, network or logging crate, so that they stay pure",
            member.name
        )
    })
}

fn unsafe_violation(member: &Crate) -> Option<String> {
    if member.lints == Lints::Other {
        return Some(format!(
            "crate `{}` does not apply the lints of the workspace, which deny unsafe code\n\
             hint: begin its `[lints]` with `workspace = true`",
            member.name
        ));
    }
    let allowed = UNSAFE_FOLDERS.contains(&&*member.folder)
        || UNSAFE_CRATES.iter().any(|(name, _)| *name == member.name);
    let file = member.unsafe_files.first()?;
    let allowed_crates = UNSAFE_CRATES.map(|(name, _)| name);
    (!allowed).then(|| {
        format!(
            "crate `{}` ({}) allows unsafe code in {}: only crates of {}, and the crates {}, may",
            member.name,
            member.folder,
            file.display(),
            UNSAFE_FOLDERS.join(" and "),
            allowed_crates.join(" and ")
        )
    })
}

/// A cycle of dependencies that goes through a dev-dependency. cargo allows these; other
/// cycles it rejects itself.
fn dependency_cycle(crates: &BTreeMap<&str, &Crate>) -> Option<String> {
    let mut finished = BTreeSet::new();
    let cycle =
        crates.keys().find_map(|name| cycle_from(name, crates, &mut Vec::new(), &mut finished))?;
    Some(format!(
        "the dependencies {} form a cycle: dev-dependencies may point in any direction, but not \
         back to a crate that depends on this one",
        cycle.join(" → ")
    ))
}

fn cycle_from<'a>(
    name: &'a str,
    crates: &BTreeMap<&'a str, &'a Crate>,
    path: &mut Vec<&'a str>,
    finished: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(start) = path.iter().position(|earlier| *earlier == name) {
        return Some([&path[start..], &[name]].concat());
    }
    let member = crates.get(name)?;
    if finished.contains(name) {
        return None;
    }
    path.push(name);
    let mut dependencies = member.dependencies.iter();
    let found = dependencies.find_map(|d| cycle_from(&d.name, crates, path, finished));
    path.pop();
    finished.insert(name);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, name: &str, dependencies: &[&str]) -> Crate {
        let dependencies = dependencies.iter().map(|word| {
            let (name, kind) = match word.strip_prefix("dev:") {
                Some(name) => (name, DependencyKind::Dev),
                None => (*word, DependencyKind::Normal),
            };
            Dependency { name: name.to_owned(), kind }
        });
        Crate {
            name: name.to_owned(),
            folder: folder.to_owned(),
            dependencies: dependencies.collect(),
            lints: Lints::Workspace,
            unsafe_files: Vec::new(),
        }
    }

    /// The one violation of these crates.
    fn violation(crates: &[Crate]) -> String {
        let found = violations(crates);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }

    #[test]
    fn this_workspace_follows_the_rule() {
        check().unwrap();
    }

    #[test]
    fn dependencies_on_the_own_and_earlier_folders_are_allowed() {
        let crates = [
            member("core", "a", &["thiserror", "dev:tokio", "tokenizer"]),
            member("core", "b", &["a"]),
            member("programs", "c", &["a", "b", "tokio"]),
            member("testing", "d", &["c", "e"]),
            member("testing", "e", &[]),
            member("xtask", "xtask", &["serde_json"]),
            member("windows", "f", &["dev:d"]),
        ];
        assert_eq!(violations(&crates), Vec::<String>::new());
    }

    #[test]
    fn a_dependency_on_a_later_folder_names_both_crates() {
        let crates = [member("core", "a", &["b"]), member("windows", "b", &[])];
        assert!(violation(&crates).starts_with("`a` (core) depends on `b` (windows): "));
        let crates = [member("core", "a", &["xtask"]), member("xtask", "xtask", &[])];
        assert!(violation(&crates).starts_with("`a` (core) depends on `xtask` (xtask): "));
    }

    #[test]
    fn only_test_crates_depend_on_test_crates() {
        for folder in ["programs", "xtask"] {
            let crates = [member(folder, "a", &["b"]), member("testing", "b", &[])];
            let found = violation(&crates);
            assert!(found.contains("`b` (testing): crates of testing are"), "{found}");
        }
    }

    #[test]
    fn core_crates_use_no_operating_system_crate() {
        for name in ["tokio", "tokio-stream", "windows-registry", "libc", "notify"] {
            let found = violation(&[member("core", "devices", &[name])]);
            assert!(found.starts_with(&format!("`devices` (core) depends on `{name}`: ")));
        }
    }

    #[test]
    fn every_crate_lies_in_a_known_folder() {
        assert!(violation(&[member("tools", "a", &[])]).starts_with("crate `a` lies in `tools`"));
    }

    #[test]
    fn dev_dependencies_form_no_cycle() {
        let crates = [
            member("core", "a", &["dev:c"]),
            member("core", "b", &["a"]),
            member("windows", "c", &["b"]),
        ];
        assert!(violation(&crates).starts_with("the dependencies a → c → b → a form a cycle"));
    }

    #[test]
    fn unsafe_code_stays_where_windows_is_called() {
        let with_unsafe = |folder: &str, name: &str| Crate {
            unsafe_files: vec!["src/x.rs".into()],
            ..member(folder, name, &[])
        };
        assert!(violation(&[with_unsafe("programs", "cli")]).contains("unsafe code in src/x.rs"));
        let allowed = [with_unsafe("windows", "win32"), with_unsafe("programs", "discovery_dll")];
        assert!(violations(&allowed).is_empty());
        let unlinted = Crate { lints: Lints::Other, ..member("core", "a", &[]) };
        assert!(violation(&[unlinted]).contains("does not apply the lints"));
    }

    #[test]
    fn manifests_and_sources_are_read() {
        assert!(lints("[package]\n\n[lints]\nworkspace = true\n") == Lints::Workspace);
        assert!(lints("[lints.rust]\nunsafe_code = \"allow\"\n") == Lints::Other);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        let file = folder.path().join("inner/a.rs");
        fs::write(&file, "    #[allow(unsafe_code, reason = \"x\")]\nfn f() {}\n").unwrap();
        fs::write(folder.path().join("b.rs"), "//! Needs no `unsafe_code`.\n").unwrap();
        assert_eq!(files_with_unsafe_code(folder.path()).unwrap(), [file]);
    }
}
