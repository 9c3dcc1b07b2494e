//! The version that a program prints.

use std::fmt;

/// A version: its first three numbers, which compare, and its text with all that follows
/// (`-beta.1`, `+k3s1`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Version {
    numbers: [u32; 3],
    text: String,
}

impl Version {
    /// The first word of `line` that is a version, with or without a `v` before it:
    /// `containerd github.com/containerd/containerd v1.7.0 1fbd70…`, `Kubernetes v1.29.2`.
    #[cfg(any(windows, test))]
    pub(crate) fn find(line: &str) -> Option<Version> {
        line.split_whitespace().find_map(Version::parse)
    }

    #[cfg(any(windows, test))]
    fn parse(word: &str) -> Option<Version> {
        let text = word.strip_prefix('v').unwrap_or(word);
        let bare = text.split(['-', '+']).next()?;
        let numbers: Option<Vec<u32>> = bare.split('.').map(|part| part.parse().ok()).collect();
        match numbers?.as_slice() {
            &[major, minor, patch] => {
                Some(Version { numbers: [major, minor, patch], text: text.to_owned() })
            }
            _ => None,
        }
    }

    /// Whether this is `major.minor` or newer. A pre-release counts as its release.
    pub(crate) fn is_at_least(&self, major: u32, minor: u32) -> bool {
        self.numbers >= [major, minor, 0]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_output_of_programs() {
        for (line, version) in [
            ("containerd github.com/containerd/containerd v1.7.0 1fbd70374134", "1.7.0"),
            ("containerd github.com/containerd/containerd/v2 v2.1.4 061792f", "2.1.4"),
            ("containerd github.com/containerd/containerd 1.6.8+azure 9cd3357", "1.6.8+azure"),
            ("Kubernetes v1.31.0-rc.1", "1.31.0-rc.1"),
            ("containerd.exe github.com/containerd/containerd v1.7.22-k3s1", "1.7.22-k3s1"),
        ] {
            assert_eq!(Version::find(line).unwrap().to_string(), version);
        }
        for line in ["", "containerd github.com/containerd/containerd unknown", "v1.7", "1.2.3.4"] {
            assert_eq!(Version::find(line), None, "{line}");
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        let version = |text| Version::find(text).unwrap();
        assert!(version("1.10.0").is_at_least(1, 7));
        assert!(version("2.0.0").is_at_least(1, 7));
        assert!(version("1.7.0-beta.1").is_at_least(1, 7));
        assert!(!version("1.6.36").is_at_least(1, 7));
        assert!(!version("0.9.9").is_at_least(1, 0));
    }
}
