//! Which warnings about mounts were logged, so that each is logged once.
//!
//! Every new pair of driver folders has new warnings, so there is a limit on how many are
//! remembered. When it is reached, all are forgotten, and what still applies is logged again.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How many warnings are remembered: far more than a node has. Each has two paths, so this is less
/// than 1 MiB.
const REMEMBERED: usize = 1024;

/// The warnings of all resources.
#[derive(Debug, Default)]
pub(crate) struct LoggedMounts(Mutex<BTreeSet<Warning>>);

/// Resource, skipped file, and the file or the destination that it conflicts with.
type Warning = (String, String, String);

impl LoggedMounts {
    /// Remembers a warning, and returns whether it is not known.
    pub(crate) fn is_new(&self, resource: &str, source: &str, other: &str) -> bool {
        let warning = (resource.to_owned(), source.to_owned(), other.to_owned());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&warning) {
            return false;
        }
        if known.len() == REMEMBERED {
            known.clear();
        }
        known.insert(warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_new_once_for_each_resource() {
        let logged = LoggedMounts::default();
        assert!(logged.is_new("gpu", "a", "b") && !logged.is_new("gpu", "a", "b"));
        assert!(logged.is_new("npu", "a", "b") && logged.is_new("gpu", "b", "a"));
    }

    #[test]
    fn driver_folders_that_keep_changing_do_not_use_more_and_more_memory() {
        let logged = LoggedMounts::default();
        for n in 0..3 * REMEMBERED {
            assert!(logged.is_new("gpu", &n.to_string(), "b"), "{n}");
            assert!(!logged.is_new("gpu", &n.to_string(), "b"), "{n}");
            assert!(logged.0.lock().unwrap().len() <= REMEMBERED);
        }
    }
}
