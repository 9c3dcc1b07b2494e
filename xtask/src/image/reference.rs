//! The names of images in registries.
//!
//! <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests>
//! defines which repositories and tags are valid.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, bail};

/// `REGISTRY/REPOSITORY[:TAG]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Such as `ghcr.io` or `127.0.0.1:5000`.
    pub(super) registry: String,
    pub(super) repository: String,
    pub(super) tag: Option<String>,
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Reference> {
        let invalid = |reason: &str| {
            let hint = "name it REGISTRY/REPOSITORY[:TAG], such as ghcr.io/owner/image:1.0";
            Err(anyhow::anyhow!("invalid image name `{text}`: {reason}\nhint: {hint}"))
        };
        let Some((registry, rest)) = text.split_once('/') else {
            return invalid("it has no registry");
        };
        if rest.contains('@') {
            return invalid("it contains a digest");
        }
        if !is_registry(registry) {
            return invalid("its first part is not a registry");
        }
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (rest, None),
        };
        if !repository.split('/').all(is_component) {
            return invalid("a repository has lower-case letters, digits and single separators");
        }
        if let Some(tag) = &tag {
            check_tag(tag)?;
        }
        let (registry, repository) = (registry.to_owned(), repository.to_owned());
        Ok(Reference { registry, repository, tag })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        match &self.tag {
            Some(tag) => write!(f, ":{tag}"),
            None => Ok(()),
        }
    }
}

/// A host name, with a dot or a port or `localhost`: as Docker tells it from a repository.
fn is_registry(text: &str) -> bool {
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    (text.contains(['.', ':']) || text == "localhost") && text.chars().all(is_host)
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`.
fn is_component(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator =
        |text: &str| matches!(text, "." | "_" | "__") || text.chars().all(|c| c == '-');
    let mut separators = text.split(is_word).filter(|part| !part.is_empty());
    text.starts_with(is_word) && text.ends_with(is_word) && separators.all(is_separator)
}

/// Fails unless `tag` is valid: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
pub(super) fn check_tag(tag: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_inner = |c: char| is_word(c) || c == '.' || c == '-';
    if tag.len() > 128 || !tag.starts_with(is_word) || !tag.chars().all(is_inner) {
        bail!(
            "invalid tag `{tag}`\nhint: use at most 128 letters, digits, underscores, dots and hyphens"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_printed_as_they_were_given() {
        for text in [
            "ghcr.io/owner/image:1.0",
            "ghcr.io/owner/image",
            "localhost/a",
            "127.0.0.1:5000/a/b__c/d--e.f:T_1.2-x",
            "[::1]:5000/a",
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
        let reference: Reference = "localhost:5000/a".parse().unwrap();
        assert_eq!((&*reference.registry, reference.tag), ("localhost:5000", None));
    }

    #[test]
    fn invalid_names_are_rejected_with_the_reason() {
        for (text, reason) in [
            ("image", "it has no registry"),
            ("owner/image", "its first part is not a registry"),
            ("ghcr.io/a@sha256:00", "it contains a digest"),
            ("ghcr.io/A", "a repository has lower-case letters"),
            ("ghcr.io/a..b", "a repository has lower-case letters"),
            ("ghcr.io/a/", "a repository has lower-case letters"),
            ("ghcr.io/-a", "a repository has lower-case letters"),
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            let start = format!("invalid image name `{text}`: {reason}");
            assert!(error.starts_with(&start) && error.contains("\nhint: "), "{error}");
        }
    }

    #[test]
    fn tags_follow_the_specification() {
        for tag in ["latest", "1.0", "_x", &"a".repeat(128)] {
            check_tag(tag).unwrap();
        }
        for tag in ["", ".a", "-a", "a b", "a/b", "ä", &"a".repeat(129)] {
            assert!(check_tag(tag).is_err(), "{tag}");
        }
        assert!("ghcr.io/a:b+c".parse::<Reference>().is_err());
    }
}
