//! What is wrong with a file: which file, which line, which key.

use std::fmt;

use serde_saphyr::Spanned;

/// A place in a file. It prints as `file:line`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    file: String,
    line: u32,
    path: String,
}

impl Place {
    /// The place of a value; `path` is its path of keys, such as `resources[1]`.
    pub(crate) fn of<T>(file: &str, value: &Spanned<T>, path: impl Into<String>) -> Place {
        let line = u32::try_from(value.referenced.line()).unwrap_or(u32::MAX);
        Place::at(file, line, path)
    }

    /// The place of a value at `line`.
    pub(crate) fn at(file: &str, line: u32, path: impl Into<String>) -> Place {
        Place { file: file.to_owned(), line, path: path.into() }
    }

    /// An error about this place.
    pub(crate) fn error(&self, what: impl Into<String>) -> ReadError {
        let Place { file, line, path } = self.clone();
        ReadError { file, line: Some(line), path, what: what.into(), hint: None }
    }

    /// The line, from 1.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What is wrong with a file, and where.
///
/// It prints as `file:line: key.path: what`. The advice, if any, is [`ReadError::hint`],
/// which the program prints on a separate line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) path: String,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl ReadError {
    /// An error about the whole file.
    pub(crate) fn of_file(file: &str, what: impl Into<String>) -> ReadError {
        let what = what.into();
        ReadError { file: file.to_owned(), line: None, path: String::new(), what, hint: None }
    }

    /// Adds advice.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> ReadError {
        self.hint = Some(hint.into());
        self
    }

    /// The key that no code reads, if the error is about one.
    pub(crate) fn unknown_key(&self) -> Option<&str> {
        self.what.strip_prefix("unknown key `")?.strip_suffix('`')
    }

    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; `None` if the error is about the whole file.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Advice: what to write instead.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ReadError {}
