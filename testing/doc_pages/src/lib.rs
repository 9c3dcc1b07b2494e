//! Pages of `docs`, and other files, that are generated from the code. Tests compare them, or write
//! them.
//!
//! A file that differs from the code fails the test.

mod reference;

use std::fs;
use std::path::{Path, PathBuf};

pub use reference::reference;

/// If set, as by `cargo xtask update`, the tests write the pages instead of comparing them.
const UPDATE: &str = "UPDATE_REFERENCE";
/// What follows a part that is generated.
const END: &str = "<!-- end -->\n";

/// Fails unless the page `page`, a path below `docs`, has this text.
///
/// # Panics
/// As [`assert_file`].
pub fn assert_page(page: &str, expected: &str) {
    assert_file(&format!("docs/{page}"), expected);
}

/// Fails unless the file at this path of the repository has this text.
///
/// # Panics
/// The file has another text, or cannot be written.
pub fn assert_file(file: &str, expected: &str) {
    let file = path(file);
    let written = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    if std::env::var_os(UPDATE).is_some() && written != expected {
        fs::write(&file, expected).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return;
    }
    if let Some(difference) = difference(&written, expected) {
        panic!("{}: `cargo xtask update` writes this page\n{difference}", file.display());
    }
}

/// The first line in which the texts differ.
fn difference(written: &str, expected: &str) -> Option<String> {
    let mut written = written.split('\n');
    let mut expected = expected.split('\n');
    for number in 1.. {
        match (written.next(), expected.next()) {
            (None, None) => break,
            (was, is) if was == is => {}
            (was, is) => {
                let line = |text: Option<&str>| text.unwrap_or("(no line)").to_owned();
                return Some(format!("line {number}: {}\nexpected: {}", line(was), line(is)));
            }
        }
    }
    None
}

/// Fails unless the page `page` has this text between the line `begin` and the end mark.
///
/// # Panics
/// As [`assert_page`], and if a mark is missing.
pub fn assert_part(page: &str, begin: &str, expected: &str) {
    let written =
        fs::read_to_string(path(&format!("docs/{page}"))).unwrap_or_default().replace("\r\n", "\n");
    let text = replaced(&written, begin, expected);
    assert_page(page, &text.unwrap_or_else(|| panic!("{page} needs the lines {begin}{END}")));
}

/// `page` with another text between its marks.
fn replaced(page: &str, begin: &str, part: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some([before, begin, part, END, after].concat())
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}
