//! Distinguishes a socket's file from a later file with the same path.

use std::fmt;

/// What is known about the file of a socket at one moment.
///
/// Two observations are compared with [`Identity::is_same_file`]. The file's number is not always
/// known, so `==` can differ for two observations of the same file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The volume of the file and its number there, if the file could be opened.
    file: Option<[u64; 2]>,
    /// The part of the directory's entry that never changes while the file exists.
    entry: [u64; 2],
}

impl Identity {
    /// Creates the identity of a file that could be opened, from its volume, its number there and
    /// what the directory says about it.
    #[must_use]
    pub const fn opened(file: [u64; 2], entry: [u64; 2]) -> Self {
        Identity { file: Some(file), entry }
    }

    /// Creates the identity of a file of which only the entry in its directory is known.
    #[must_use]
    pub const fn listed(entry: [u64; 2]) -> Self {
        Identity { file: None, entry }
    }

    /// Whether both were observed of the same file. If the number of the file is unknown in one of
    /// them, because the file could be opened only once, only the entries in the directory are
    /// compared: a file that can no longer be opened is not a new file.
    #[must_use]
    pub fn is_same_file(&self, other: &Identity) -> bool {
        let numbers_agree = match (self.file, other.file) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        numbers_agree && self.entry == other.entry
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")?;
        self.file.iter().flatten().chain(&self.entry).try_for_each(|part| write!(f, ".{part:x}"))
    }
}

/// The identity of a file that was opened, or of its entry in the directory if opening it failed.
/// A file that does not exist is not searched in the directory.
///
/// # Errors
/// The directory cannot be listed either.
#[cfg(any(windows, test))]
pub(crate) fn opened_or_listed(
    opened: std::io::Result<Identity>,
    list: impl FnOnce() -> std::io::Result<Option<Identity>>,
) -> std::io::Result<Option<Identity>> {
    match opened {
        Ok(identity) => Ok(Some(identity)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(_) => list(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind, Result};

    use super::*;

    const CREATED: [u64; 2] = [133_000, 0];
    const LATER: [u64; 2] = [133_001, 0];

    #[test]
    fn the_number_of_the_file_decides_where_it_is_known() {
        let file = Identity::opened([1, 70], CREATED);
        assert!(file.is_same_file(&Identity::opened([1, 70], CREATED)));
        // A file with the same name that is created within 15 seconds has the same creation time.
        assert!(!file.is_same_file(&Identity::opened([1, 71], CREATED)));
        assert!(!file.is_same_file(&Identity::opened([2, 70], CREATED)));
        // Some file systems use a number again immediately.
        assert!(!file.is_same_file(&Identity::opened([1, 70], LATER)));
    }

    #[test]
    fn a_file_that_can_be_opened_only_sometimes_stays_the_same() {
        let (opened, listed) = (Identity::opened([1, 70], CREATED), Identity::listed(CREATED));
        assert!(opened.is_same_file(&listed) && listed.is_same_file(&opened));
        assert!(listed.is_same_file(&listed));
        let recreated = Identity::listed(LATER);
        assert!(!opened.is_same_file(&recreated) && !recreated.is_same_file(&opened));
        assert!(!listed.is_same_file(&recreated));
    }

    #[test]
    fn the_directory_is_listed_only_if_an_existing_file_cannot_be_opened() {
        let (opened, listed) = (Identity::opened([1, 70], CREATED), Identity::listed(CREATED));
        let unused = || -> Result<Option<Identity>> { panic!("the directory is listed") };
        assert_eq!(opened_or_listed(Ok(opened), unused).unwrap(), Some(opened));
        let missing = Err(Error::from(ErrorKind::NotFound));
        assert_eq!(opened_or_listed(missing, unused).unwrap(), None);
        // 433 is `ERROR_NO_SUCH_DEVICE`, which some implementations of Win32 return for every
        // socket.
        let cannot_open = || Err(Error::from_raw_os_error(433));
        assert_eq!(opened_or_listed(cannot_open(), || Ok(Some(listed))).unwrap(), Some(listed));
        assert_eq!(opened_or_listed(cannot_open(), || Ok(None)).unwrap(), None);
        let denied = || Err(Error::from(ErrorKind::PermissionDenied));
        let error = opened_or_listed(cannot_open(), denied).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }
}
