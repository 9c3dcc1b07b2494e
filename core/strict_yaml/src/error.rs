//! The one error of this crate: which file, which line, which key, what.

use std::fmt;

/// A place in a document: file, line and path of keys. It prints as `file:line`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) path: String,
}

impl Place {
    /// An error about what is there.
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

/// What is wrong with a document, and where.
///
/// It prints as `file:line: key.path: what`; the advice, where there is any, is
/// [`ReadError::hint`], for the program to print on a line of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    file: String,
    line: Option<u32>,
    path: String,
    what: String,
    hint: Option<String>,
}

impl ReadError {
    /// An error about the file as a whole.
    #[must_use]
    pub fn of_file(file: &str, what: impl Into<String>) -> ReadError {
        ReadError {
            file: file.to_owned(),
            line: None,
            path: String::new(),
            what: what.into(),
            hint: None,
        }
    }

    pub(crate) fn at_line(file: &str, line: u32, what: impl Into<String>) -> ReadError {
        ReadError { line: Some(line), ..ReadError::of_file(file, what) }
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

    /// The line, from 1; `None` where the error is about the whole file.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// The path of keys, such as `adapters[0].luid`; empty at the top and for syntax errors.
    #[must_use]
    pub fn key_path(&self) -> &str {
        &self.path
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
