//! The names of the plugin's sockets: `<prefix>-<unix milliseconds>.sock`.

const EXTENSION: &str = ".sock";

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
