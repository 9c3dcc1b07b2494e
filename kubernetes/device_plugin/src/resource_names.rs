//! Which names a kubelet accepts as extended resources.

/// Whether `name` is the name of an extended resource: `IsExtendedResourceName` of
/// `pkg/apis/core/v1/helper/helpers.go`, with `IsQualifiedName` of
/// `k8s.io/apimachinery/pkg/util/validation`.
#[must_use]
pub fn is_extended_resource_name(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.") && is_qualified_name(&format!("requests.{name}"))
}

/// A DNS subdomain, a slash, and up to 63 letters, digits, `-`, `_` and `.`, which start and end
/// with a letter or digit.
fn is_qualified_name(text: &str) -> bool {
    let Some((prefix, name)) = text.split_once('/') else { return false };
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && is_dns_subdomain(prefix)
}

/// RFC 1123: labels of lower-case letters, digits and inner dashes, at most 253 characters in
/// total.
fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_extended_resource_names() {
        for good in ["directx.microsoft.com/display", "a/b", "nvidia.com/gpu.shared", "a/B_c"] {
            assert!(is_extended_resource_name(good), "{good}");
        }
        let long = format!("{}/gpu", vec!["a".repeat(60); 5].join("."));
        for bad in [
            "",
            "cpu",
            "kubernetes.io/gpu",
            "gpu.kubernetes.io/x",
            "requests.nvidia.com/gpu",
            "Nvidia.com/gpu",
            "nvidia.com/",
            "nvidia.com/gpu/0",
            "nvidia.com/-gpu",
            "/gpu",
            &long,
        ] {
            assert!(!is_extended_resource_name(bad), "{bad}");
        }
    }
}
