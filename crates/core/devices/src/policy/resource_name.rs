//! The name of an extended resource, as the kubelet accepts it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use host::text_value;

/// An extended resource's name, `domain/name`, as the kubelet accepts it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceName(Arc<str>);

text_value!(ResourceName);

/// What the names of resources for shared devices end with, as in NVIDIA's device plugin.
const SHARED: &str = ".shared";

impl ResourceName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name belongs to a resource for shared devices.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.0.to_ascii_lowercase().ends_with(SHARED)
    }

    /// The name of the resource for shared devices: this name with `.shared` appended, as
    /// NVIDIA's device plugin renames shared resources. Fails if the name part becomes
    /// longer than 63 characters.
    pub fn shared(&self) -> Result<ResourceName, ResourceNameError> {
        format!("{self}{SHARED}").parse()
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name that the kubelet would reject, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{name}` {why}")]
pub struct ResourceNameError {
    name: String,
    why: &'static str,
}

impl FromStr for ResourceName {
    type Err = ResourceNameError;

    /// Follows `IsExtendedResourceName` of Kubernetes: the name, prefixed with `requests.`,
    /// must be a qualified name, and must not be reserved for Kubernetes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        check(text).map_err(|why| ResourceNameError { name: text.to_owned(), why })?;
        Ok(ResourceName(text.into()))
    }
}

fn check(text: &str) -> Result<(), &'static str> {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) if !name.contains('/') => (domain, name),
        _ => return Err("is not `domain/name`"),
    };
    if text.contains("kubernetes.io/") {
        return Err("is in the domain kubernetes.io, which is reserved for Kubernetes");
    }
    // Resource quotas would interpret it as a request for another resource.
    if text.starts_with("requests.") {
        return Err("starts with `requests.`, which is reserved for resource quotas");
    }
    if domain.len() + "requests.".len() > 253 || !domain.split('.').all(is_dns_label) {
        return Err(
            "has a domain that is not a DNS subdomain (lower-case letters, digits, `-` and \
             `.`, at most 253 characters with `requests.` before it)",
        );
    }
    if name.len() > 63
        || !has_alphanumeric_ends(name)
        || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    {
        return Err(
            "has a name that is not 1 to 63 letters, digits, `-`, `_` and `.` with a letter or \
             digit at both ends",
        );
    }
    Ok(())
}

fn is_dns_label(label: &str) -> bool {
    has_alphanumeric_ends(label)
        && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn has_alphanumeric_ends(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_names_are_those_that_the_kubelet_accepts() {
        for good in [
            "directx.microsoft.com/display",
            "nvidia.com/gpu",
            "a/B_c.d-1",
            "microsoft.com/directx",
            "gpu-1.example.com/gpu",
        ] {
            assert_eq!(good.parse::<ResourceName>().map(|n| n.to_string()), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "gpu",
            "a/b/c",
            "/gpu",
            "nvidia.com/",
            "kubernetes.io/gpu",
            "x.kubernetes.io/gpu",
            "requests.nvidia.com/gpu",
            "Nvidia.com/gpu",
            "-a/gpu",
            "a-/gpu",
            "a..b/gpu",
            "a/-gpu",
            "a/gpu-",
            "a/g pu",
        ] {
            assert!(bad.parse::<ResourceName>().is_err(), "{bad}");
        }
        let long = "a".repeat(64);
        assert!(format!("a/{long}").parse::<ResourceName>().is_err());
        assert!(format!("a/{}", &long[1..]).parse::<ResourceName>().is_ok());
        // With `requests.` before it, a domain has 253 characters at most.
        for (domain, is_accepted) in
            [(format!("aa{}", ".a".repeat(121)), true), (format!("a{}", ".a".repeat(122)), false)]
        {
            let name = format!("{domain}/gpu").parse::<ResourceName>();
            assert_eq!(name.is_ok(), is_accepted, "{} characters", domain.len());
        }
    }

    #[test]
    fn shared_names_have_a_suffix() {
        let shared = |name: &str| name.parse::<ResourceName>().unwrap().shared();
        let display = shared("directx.microsoft.com/display").map(|name| name.to_string());
        assert_eq!(display, Ok("directx.microsoft.com/display.shared".to_owned()));
        for (name, is_shared) in [("a/b", false), ("a/b.shared", true), ("a/b.Shared", true)] {
            assert_eq!(name.parse::<ResourceName>().unwrap().is_shared(), is_shared, "{name}");
        }
    }
}
