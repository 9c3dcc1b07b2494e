//! What the supervisor knows of other daemons.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::claim::Claim;
use crate::other_daemons::OtherSocket;

/// What the searches found.
pub(super) struct OtherDaemons {
    pub(super) claim: Claim,
    pub(super) known: Vec<OtherSocket>,
    /// The other sockets that the first search found.
    pub(super) found_first: Option<BTreeSet<PathBuf>>,
    pub(super) refused: BTreeSet<PathBuf>,
    pub(super) next_search: NextSearch,
    pub(super) running: Option<RunningSearch>,
}

/// When the next search starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextSearch {
    Due,
    WithNextCheck,
}

/// A search whose queries have not ended.
pub(super) struct RunningSearch {
    pub(super) task: AbortHandle,
    pub(super) started: Instant,
    /// The resources that had a socket when the search started. Its result holds only for these.
    pub(super) resources: BTreeSet<String>,
}

impl OtherDaemons {
    pub(super) fn new(claim: Claim) -> Self {
        OtherDaemons {
            claim,
            known: Vec::new(),
            found_first: None,
            refused: BTreeSet::new(),
            next_search: NextSearch::Due,
            running: None,
        }
    }

    pub(super) fn claim(&self) -> Claim {
        self.claim
    }

    /// The next call of `Supervisor::search_for_other_daemons` searches.
    pub(super) fn search_is_due(&mut self) {
        self.next_search = NextSearch::Due;
    }

    pub(super) fn abort_search(&self) {
        if let Some(running) = &self.running {
            running.task.abort();
        }
    }
}
