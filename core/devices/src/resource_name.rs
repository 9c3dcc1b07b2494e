//! The name of an extended resource, as the kubelet accepts it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// An extended resource's name, `domain/name`, as the kubelet accepts it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceName(Arc<str>);

impl ResourceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why the kubelet would refuse a resource name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResourceNameError {
    /// Not `domain/name`.
    #[error("`{0}` is not `domain/name`")]
    Form(String),
    /// Names in these domains are Kubernetes' own.
    #[error("`{0}` lies in kubernetes.io, which is reserved for Kubernetes itself")]
    Reserved(String),
    /// Quotas would read it as a request for another resource.
    #[error("`{0}` begins with `requests.`, which quotas reserve")]
    Requests(String),
    /// The part before the slash is no DNS subdomain.
    #[error(
        "`{0}` has a domain that is not a DNS subdomain (lower-case letters, digits, `-` and `.`, \
         at most 253 characters with `requests.` before it)"
    )]
    Domain(String),
    /// The part after the slash is no qualified name.
    #[error(
        "`{0}` has a name that is not 1 to 63 letters, digits, `-`, `_` and `.` with a letter or \
         digit at both ends"
    )]
    Name(String),
}

impl FromStr for ResourceName {
    type Err = ResourceNameError;

    /// Follows `IsExtendedResourceName` of Kubernetes: the name, with `requests.`
    /// before it, must be a qualified name, and must not be one of Kubernetes' own.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let owned = || text.to_owned();
        let Some((domain, name)) = text.split_once('/') else {
            return Err(ResourceNameError::Form(owned()));
        };
        if name.contains('/') {
            return Err(ResourceNameError::Form(owned()));
        }
        if text.contains("kubernetes.io/") {
            return Err(ResourceNameError::Reserved(owned()));
        }
        if text.starts_with("requests.") {
            return Err(ResourceNameError::Requests(owned()));
        }
        let label_ok = |label: &str| {
            let bytes = label.as_bytes();
            let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
            edge(bytes.first())
                && edge(bytes.last())
                && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
        };
        if domain.len() + "requests.".len() > 253 || !domain.split('.').all(label_ok) {
            return Err(ResourceNameError::Domain(owned()));
        }
        let bytes = name.as_bytes();
        let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let inner = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
        if name.len() > 63
            || !edge(bytes.first())
            || !edge(bytes.last())
            || !bytes.iter().all(inner)
        {
            return Err(ResourceNameError::Name(owned()));
        }
        Ok(ResourceName(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_names_are_what_the_kubelet_accepts() {
        for good in [
            "directx.microsoft.com/display",
            "nvidia.com/gpu",
            "a/B_c.d-1",
            "microsoft.com/directx",
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
        let domain = vec!["a".repeat(60); 5].join(".");
        assert!(format!("{domain}/gpu").parse::<ResourceName>().is_err());
    }
}
