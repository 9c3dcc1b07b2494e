//! Checks that the book's table of contents lists every page once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::links::BOOK;
use super::markdown;

/// The table of contents, in the book's folder.
const SUMMARY: &str = "SUMMARY.md";

/// Compares the table of contents with those of `files` that are in the book's folder.
/// Whether the listed pages exist is the link check's business.
pub(super) fn check(root: &Path, files: &[PathBuf]) -> Result<()> {
    let path = root.join(BOOK).join(SUMMARY);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let pages = files.iter().filter_map(|file| file.strip_prefix(BOOK).ok());
    compare(&text, pages.filter(|page| *page != Path::new(SUMMARY)))
}

fn compare<'a>(summary: &str, pages: impl Iterator<Item = &'a Path>) -> Result<()> {
    let mut listed: Vec<PathBuf> = markdown::links(summary)
        .into_iter()
        .filter_map(|link| link.target.ok().map(PathBuf::from))
        .collect();
    listed.sort();
    let twice = listed
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| format!("{BOOK}/{SUMMARY} lists `{}` more than once", pair[0].display()));
    let missing = pages
        .filter(|page| listed.binary_search(&(*page).to_owned()).is_err())
        .map(|page| format!("{BOOK}/{SUMMARY} does not list `{}`", page.display()));
    let faults: Vec<String> = twice.chain(missing).collect();
    if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_listed_once() {
        let summary = "# Summary\n[A](a.md)\n- [B](b/b.md)\n  - [C](c.md)\n";
        let check = |pages: &[&str]| compare(summary, pages.iter().map(Path::new));
        assert!(check(&["a.md", "b/b.md", "c.md"]).is_ok());
        let error = check(&["a.md", "b.md"]).unwrap_err().to_string();
        assert_eq!(error, "docs/SUMMARY.md does not list `b.md`");
        let error = compare("[A](a.md)\n[B](a.md)\n", std::iter::empty()).unwrap_err().to_string();
        assert_eq!(error, "docs/SUMMARY.md lists `a.md` more than once");
    }
}
