//! The documentation as a website with a search, which mdBook makes of `docs` alone.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::prerequisites;
use crate::process::run;
use crate::workspace::{self, NO_REPOSITORY};

/// The website's folder.
pub(crate) fn build() -> Result<PathBuf> {
    let source = workspace::target_dir().join("book-source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    let docs = workspace::root().join("docs");
    let repository = env::var("GITHUB_REPOSITORY").unwrap_or_else(|_| NO_REPOSITORY.to_owned());
    copy(&docs, &source.join("src"), &repository)?;
    let contents = fs::read_to_string(docs.join("README.md")).context("docs/README.md")?;
    fs::write(source.join("src/SUMMARY.md"), summary(&contents))?;
    let settings = include_str!("book.toml").replace(NO_REPOSITORY, &repository);
    fs::write(source.join("book.toml"), settings)?;
    fs::write(source.join("book.css"), include_str!("book.css"))?;
    fs::create_dir(source.join("theme"))?;
    fs::copy(docs.join("icon.svg"), source.join("theme/favicon.svg"))?;
    let website = workspace::target_dir().join("book");
    let mut mdbook = prerequisites::mdbook()?;
    run(mdbook.arg("build").arg(&source).arg("--dest-dir").arg(&website))?;
    Ok(website)
}

/// Copies a folder. Its pages get the name of the repository.
fn copy(from: &Path, to: &Path, repository: &str) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copied = to.join(path.file_name().context("a file has a name")?);
        if path.is_dir() {
            copy(&path, &copied, repository)?;
        } else if is_page(&path) {
            let text = fs::read_to_string(&path)?;
            fs::write(copied, text.replace(NO_REPOSITORY, repository))?;
        } else {
            fs::copy(path, copied)?;
        }
    }
    Ok(())
}

/// The list of pages that mdBook needs, from the table of contents. The first page of each entry is
/// a chapter. The further pages are its subchapters, without links to headings.
fn summary(contents: &str) -> String {
    let mut summary = vec!["[Documentation](README.md)\n".to_owned()];
    for line in contents.lines() {
        if let Some(section) = line.strip_prefix("## ") {
            summary.push(format!("\n# {section}\n\n"));
        }
        let is_entry = line.starts_with("- ");
        if is_entry || line.starts_with("  ") {
            for (position, link) in links(line).enumerate() {
                let indent = if is_entry && position == 0 { "" } else { "  " };
                summary.push(format!("{indent}- {link}\n"));
            }
        }
    }
    summary.concat()
}

/// The links of a line to whole pages, as `[text](page.md)`.
fn links(line: &str) -> impl Iterator<Item = String> {
    line.split('[').filter_map(|part| {
        let (text, rest) = part.split_once("](")?;
        let (page, _) = rest.split_once(')')?;
        is_page(Path::new(page)).then(|| format!("[{text}]({page})"))
    })
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn a_table_of_contents_becomes_a_summary() {
        let contents = "\
# Documentation

## Start

- [Introduction](introduction.md): what it does, and the [words](introduction.md#words)

## Install

- [By platform](cloud/README.md): [EKS](cloud/eks.md), [AKS](cloud/aks.md),
  [self-managed](cloud/self-managed.md)

[Contributing](https://example.com/CONTRIBUTING.md): changing the code.
";
        let expected = "\
[Documentation](README.md)

# Start

- [Introduction](introduction.md)

# Install

- [By platform](cloud/README.md)
  - [EKS](cloud/eks.md)
  - [AKS](cloud/aks.md)
  - [self-managed](cloud/self-managed.md)
";
        assert_eq!(summary(contents), expected);
    }
}
