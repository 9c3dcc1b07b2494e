//! Checks the links of the Markdown files.
//!
//! A relative link must lead to a file or folder of the workspace and, with `#`, to a
//! heading of that page. An external link must have a valid form; nothing is fetched.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::markdown;
use crate::workspace;

/// The folder of the book's pages and of its `book.toml`.
pub(super) const BOOK: &str = "docs";

/// A file that cargo puts into its output folders, and other tools into their caches
/// (<https://bford.info/cachedir/>).
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Every Markdown file below `root`, relative to it and sorted. Folders of build output
/// and of git are left out.
pub(super) fn markdown_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        if path.join(CACHE_MARK).exists() {
            continue;
        }
        let entries =
            fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if entry.file_name() != ".git" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Checks every link in `files`, which are relative to `root`, and returns their number.
/// The error has one line for each broken link.
pub(super) fn check(root: &Path, files: &[PathBuf]) -> Result<usize> {
    let mut count = 0;
    let mut broken = Vec::new();
    for file in files {
        for link in markdown::links(&read(&root.join(file))?) {
            count += 1;
            let (target, fault) = match &link.target {
                Ok(target) => (target, fault(root, file, target)?),
                Err(label) => (label, Some("the reference has no definition".to_owned())),
            };
            if let Some(fault) = fault {
                broken.push(format!(
                    "{}:{}: `{target}`: {fault}",
                    workspace::shown(file),
                    link.line
                ));
            }
        }
    }
    if !broken.is_empty() {
        bail!("broken links:\n{}", broken.join("\n"));
    }
    Ok(count)
}

/// What is wrong with the link from `file` to `target`.
fn fault(root: &Path, file: &Path, target: &str) -> Result<Option<String>> {
    if let Some((scheme, rest)) = target.split_once(':') {
        return Ok(external_fault(scheme, rest));
    }
    if target.is_empty() {
        return Ok(Some("the target is empty".to_owned()));
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    if path.starts_with('/') {
        return Ok(Some("the path is absolute".to_owned()));
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let resolved = if path.is_empty() {
        Some(file.to_owned())
    } else {
        resolve(folder, &path.replace("%20", " "))
    };
    let Some(resolved) = resolved else {
        return Ok(Some("the path leads out of the repository".to_owned()));
    };
    if !root.join(&resolved).exists() {
        return Ok(Some(format!("no file {}", workspace::shown(&resolved))));
    }
    if in_book(file) && !in_book(&resolved) {
        let fault = "the book does not contain the file; name it without a link";
        return Ok(Some(fault.to_owned()));
    }
    if anchor.is_empty() {
        return Ok(target.ends_with('#').then(|| "the anchor is empty".to_owned()));
    }
    if resolved.extension().is_none_or(|extension| extension != "md") {
        return Ok(Some("only Markdown files have anchors".to_owned()));
    }
    let exists = markdown::anchors(&read(&root.join(&resolved))?).contains(anchor);
    Ok((!exists).then(|| format!("no heading with this anchor in {}", workspace::shown(&resolved))))
}

/// What is wrong with an external link, by its form.
fn external_fault(scheme: &str, rest: &str) -> Option<String> {
    match scheme {
        "http" | "https" => {
            let host = rest.strip_prefix("//").unwrap_or_default();
            let host = host.split(['/', '?', '#']).next().unwrap_or_default();
            let name = host.split(':').next().unwrap_or_default();
            let is_host = name.contains('.') && name.split('.').all(|label| !label.is_empty());
            let is_allowed = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
            (!is_host || !rest.chars().all(is_allowed)).then(|| "not a valid URL".to_owned())
        }
        "mailto" => (!rest.contains('@')).then(|| "not a valid address".to_owned()),
        _ => Some(format!("unknown scheme `{scheme}`")),
    }
}

/// `path` as seen from `folder`, or `None` if it leads out of the workspace.
fn resolve(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut resolved = folder.to_owned();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir if resolved.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(resolved)
}

/// Whether mdBook copies the file `path` into the book.
fn in_book(path: &Path) -> bool {
    path.starts_with(BOOK)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a workspace with these files.
    #[allow(clippy::unwrap_used, reason = "part of the tests")]
    fn check_files(files: &[(&str, &str)]) -> Result<usize> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        check(root.path(), &markdown_files(root.path())?)
    }

    #[test]
    fn links_to_files_folders_and_headings_are_accepted() {
        let files = [
            ("README.md", "# Top\n[a](docs/a.md) [b](docs/a.md#two-words) [c](docs) [d](#top)\n"),
            ("docs/a.md", "# A\n## Two words\n[up](./b/c.md#c) [file](b/my%20file.txt)\n"),
            ("docs/b/c.md", "# C\n[a](../a.md#a) [web](https://example.com:80/x?y#z)\n"),
            ("docs/b/my file.txt", ""),
        ];
        assert_eq!(check_files(&files).unwrap(), 8);
    }

    #[test]
    fn a_broken_link_names_file_line_and_target() {
        let files = [
            ("README.md", "# Top\n\n[a](no.md) [b](docs/a.md#no)\n[c](#no) [d](../x) [e](/y)\n"),
            ("docs/a.md", "[f](../README.md) [g](b.txt#no) []() [h][i] [j](#)\n"),
            ("docs/b.txt", ""),
        ];
        let expected = "broken links:\n\
            README.md:3: `no.md`: no file no.md\n\
            README.md:3: `docs/a.md#no`: no heading with this anchor in docs/a.md\n\
            README.md:4: `#no`: no heading with this anchor in README.md\n\
            README.md:4: `../x`: the path leads out of the repository\n\
            README.md:4: `/y`: the path is absolute\n\
            docs/a.md:1: `../README.md`: the book does not contain the file; name it without a link\n\
            docs/a.md:1: `b.txt#no`: only Markdown files have anchors\n\
            docs/a.md:1: ``: the target is empty\n\
            docs/a.md:1: `i`: the reference has no definition\n\
            docs/a.md:1: `#`: the anchor is empty";
        let error = check_files(&files).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn external_links_are_checked_by_their_form() {
        for link in ["https://example.com", "http://a.example.com:8080/b#c", "mailto:a@b.example"] {
            assert_eq!(check_files(&[("a.md", &format!("[x]({link})"))]).unwrap(), 1, "{link}");
        }
        for link in [
            "https:example.com",
            "https://example",
            "https://example..com/",
            "https://example.com/{id}",
            "mailto:nobody",
            "ftp://example.com",
        ] {
            let error = check_files(&[("a.md", &format!("[x]({link})"))]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("broken links:\na.md:1: `{link}`: ")), "{error}");
        }
    }

    #[test]
    fn build_output_is_not_read() {
        let broken = "[x](no.md)";
        let files = [
            ("out/CACHEDIR.TAG", ""),
            ("out/inner/a.md", broken),
            (".git/b.md", broken),
            (".github/c.md", "[x](../out)"),
        ];
        assert_eq!(check_files(&files).unwrap(), 1);
    }
}
