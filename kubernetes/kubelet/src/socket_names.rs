//! The names of the plugin's sockets: `<prefix>-<unix milliseconds>.sock`.

use std::time::{SystemTime, UNIX_EPOCH};

const EXTENSION: &str = ".sock";

/// Generates names that are unique within this process.
#[derive(Debug, Default)]
pub(crate) struct SocketNames {
    last: u64,
}

impl SocketNames {
    /// The next name for `prefix`: with the current time, or the time of the last name plus one
    /// millisecond if that is later.
    pub(crate) fn next(&mut self, prefix: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = u64::try_from(now).unwrap_or_default();
        self.last = now.max(self.last + 1);
        format!("{prefix}-{}{EXTENSION}", self.last)
    }
}

/// Whether `name` has the form that [`SocketNames`] generates for `prefix`.
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
    fn generates_unique_names_and_recognizes_them() {
        let mut names = SocketNames::default();
        let mut generated: Vec<String> = (0..1000).map(|_| names.next("wddm")).collect();
        assert!(generated.iter().all(|name| has_prefix("wddm", name)));
        assert!(generated.is_sorted());
        generated.dedup();
        assert_eq!(generated.len(), 1000);
    }

    #[test]
    fn rejects_other_names() {
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
