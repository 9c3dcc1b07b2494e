//! The names of the plugin's sockets: `<prefix>-<unix milliseconds>.sock`.

const EXTENSION: &str = ".sock";

/// How much of a resource's name is in its default prefix: the paths of sockets are short.
const NAME_LENGTH: usize = 24;

/// The prefix of a resource's sockets, unless [`Resource::socket_prefix`](crate::Resource) chooses
/// another one: the part of the name behind the domain, cut if it is long, and a hash of the whole name,
/// because the same part can follow several domains.
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

/// The name of a socket.
pub(crate) fn socket_name(prefix: &str, milliseconds: u64) -> String {
    format!("{prefix}-{milliseconds}{EXTENSION}")
}

/// Whether `name` has the form of [`socket_name`] for `prefix`.
pub(crate) fn has_prefix(prefix: &str, name: &str) -> bool {
    name.strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.strip_suffix(EXTENSION))
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_prefix_is_short_and_of_one_resource() {
        assert_eq!(default_socket_prefix("example.com/gpu"), "gpu-1182f76b");
        assert_ne!(default_socket_prefix("a.com/gpu"), default_socket_prefix("b.com/gpu"));
        let [a, b] = ["a", "b"].map(|end| format!("example.com/{}{end}", "x".repeat(62)));
        assert_ne!(default_socket_prefix(&a), default_socket_prefix(&b));
        assert_eq!(default_socket_prefix(&a).len(), NAME_LENGTH + 9);
        assert!(!has_prefix("gpu", &socket_name(&default_socket_prefix("a.com/gpu"), 12)));
    }

    #[test]
    fn names_of_sockets_are_recognized() {
        assert!(has_prefix("wddm", &socket_name("wddm", 1_732_000_000_000)));
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
            assert!(!has_prefix("wddm", other), "{other}");
        }
    }
}
