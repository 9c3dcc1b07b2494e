//! The error of this crate: which file, which line, which key, and what is wrong.

use std::fmt;

/// A place in a file. It prints as `file:line`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    file: String,
    line: u32,
    path: String,
}

impl Place {
    /// The place of a value that was read with its position; `path` is its path of keys,
    /// such as `resources[1]`.
    pub fn of<T>(file: &str, value: &crate::Spanned<T>, path: impl Into<String>) -> Place {
        Place { file: file.to_owned(), line: value.line, path: path.into() }
    }

    /// An error about this place.
    #[must_use]
    pub fn error(&self, what: impl Into<String>) -> ReadError {
        ReadError { path: self.path.clone(), ..ReadError::at_line(&self.file, self.line, what) }
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
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
/// which the program prints on a line of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    file: String,
    line: Option<u32>,
    path: String,
    what: String,
    hint: Option<String>,
}

impl ReadError {
    /// An error about the whole file.
    pub(crate) fn of_file(file: &str, what: impl Into<String>) -> ReadError {
        let what = what.into();
        ReadError { file: file.to_owned(), line: None, path: String::new(), what, hint: None }
    }

    pub(crate) fn at_line(file: &str, line: u32, what: impl Into<String>) -> ReadError {
        ReadError { line: Some(line), ..ReadError::of_file(file, what) }
    }

    pub(crate) fn with_path(mut self, path: String) -> ReadError {
        self.path = path;
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ReadError {
        self.hint = Some(hint.into());
        self
    }

    /// The name of the file.
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
