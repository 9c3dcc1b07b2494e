//! The names that kubelets and plugins agree on: of extended resources, of the directory with their
//! sockets, and of the sockets in it.

use std::path::{Path, PathBuf};

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

/// The name of the kubelet's own socket in its device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";

/// The device plugin directory of every kubelet. Its device manager ignores `--root-dir`
/// (`NewManagerImpl`, pkg/kubelet/cm/devicemanager); on Windows the directory is on the system
/// drive.
#[must_use]
pub fn default_device_plugin_dir() -> PathBuf {
    if cfg!(windows) {
        let mut path = std::env::var_os("SystemDrive").unwrap_or_else(|| "C:".into());
        path.push(r"\var\lib\kubelet\device-plugins");
        PathBuf::from(path)
    } else {
        PathBuf::from("/var/lib/kubelet/device-plugins")
    }
}

const EXTENSION: &str = ".sock";

/// How much of a resource's name is in its default prefix: the paths of sockets are short.
const NAME_LENGTH: usize = 24;

/// The prefix of a resource's sockets, unless [`Resource::socket_prefix`](crate::Resource) chooses
/// another one. It is the part of the name after the domain, cut if it is long, and a hash of the
/// whole name, because the same part can follow several domains.
#[must_use]
pub fn default_socket_prefix(resource: &str) -> String {
    let name = resource.rsplit_once('/').map_or(resource, |(_domain, name)| name);
    let start: String = name.chars().take(NAME_LENGTH).collect();
    format!("{start}-{:08x}", fnv1a(resource.as_bytes()))
}

/// The hash FNV-1a, which never changes.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Whether a prefix can be part of a file name on every system.
pub(crate) fn is_prefix(prefix: &str) -> bool {
    !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// Whether a lock that a resource needs can have this name. It is never the name of a resource, nor
/// is the name of its file, in which `_` replaces the `/` of a resource.
pub(crate) fn is_lock_name(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
    !name.is_empty() && name.bytes().all(is_allowed)
}

/// The name of a socket.
pub(crate) fn socket_name(prefix: &str, milliseconds: u64) -> String {
    format!("{prefix}-{milliseconds}{EXTENSION}")
}

/// Whether the name of a file has the form of [`socket_name`] for `prefix`.
pub(crate) fn has_prefix(prefix: &str, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.strip_suffix(EXTENSION))
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
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

    #[test]
    fn a_default_prefix_is_short_and_of_one_resource() {
        assert_eq!(default_socket_prefix("example.com/gpu"), "gpu-1182f76b");
        assert_ne!(default_socket_prefix("a.com/gpu"), default_socket_prefix("b.com/gpu"));
        let [a, b] = ["a", "b"].map(|end| format!("example.com/{}{end}", "x".repeat(62)));
        assert_ne!(default_socket_prefix(&a), default_socket_prefix(&b));
        assert_eq!(default_socket_prefix(&a).len(), NAME_LENGTH + 9);
        assert!(!has_prefix("gpu", socket_name(&default_socket_prefix("a.com/gpu"), 12).as_ref()));
    }

    #[test]
    fn a_lock_never_has_the_file_of_a_resource() {
        assert!(is_lock_name("acme-gpus.v2"));
        for bad in ["", "a.com/gpu", "a.com_gpu", "Acme", "..\\gpus", "g p"] {
            assert!(!is_lock_name(bad), "{bad}");
        }
    }

    #[test]
    fn names_of_sockets_are_recognized() {
        assert!(has_prefix("wddm", socket_name("wddm", 1_732_000_000_000).as_ref()));
        for other in [
            "kubelet.sock",
            "wddm-.sock",
            "wddm-12a.sock",
            "wddm-12.sock.bak",
            "wddm12.sock",
            "xwddm-12.sock",
            "wddm-x-12.sock",
            "kubelet_internal_checkpoint",
        ] {
            assert!(!has_prefix("wddm", other.as_ref()), "{other}");
        }
    }
}
