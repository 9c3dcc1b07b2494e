//! What pods wait for as long as the startup taint stays. Pure, but for the log.

use std::time::Duration;

use report::Message;
use tokio::time::Instant;

use crate::event_queue::EventQueue;

/// How long the taint stays for the same reason before there is an Event about it. A driver and a
/// kubelet take some time to start.
const PATIENCE: Duration = Duration::from_mins(1);

/// What pods wait for.
#[derive(Default)]
pub(crate) struct TaintWait(Option<Wait>);

struct Wait {
    /// The key of the taint, and what this program says about the reason.
    what: (String, String),
    since: Instant,
    is_reported: bool,
}

impl TaintWait {
    /// The taint with this key stays until what the message says has happened. `None`: there is no
    /// taint, or it is about to be removed.
    pub(crate) fn follow(
        &mut self,
        waiting: Option<(&str, &Message)>,
        events: &mut EventQueue,
        now: Instant,
    ) {
        let Some((key, why)) = waiting else {
            self.0 = None;
            return;
        };
        let what = (key.to_owned(), why.own().to_owned());
        let wait = match &mut self.0 {
            Some(wait) if wait.what == what => wait,
            other => {
                tracing::info!(taint = key, reason = %why, "the startup taint stays");
                other.insert(Wait { what, since: now, is_reported: false })
            }
        };
        if !wait.is_reported && now >= wait.since + PATIENCE {
            wait.is_reported = true;
            let note = format!("the startup taint {key} stays: {why}");
            events.add_warning("DirectXDevicesNotReady", "Discover", note);
        }
    }

    /// When there is an Event about it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let wait = self.0.as_ref().filter(|wait| !wait.is_reported)?;
        Some(wait.since + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_that_lasts_a_minute_is_one_event() {
        let begin = Instant::now();
        let (mut wait, mut events) = (TaintWait::default(), EventQueue::new(begin));
        for (second, why, is_event, deadline) in [
            (0, Some("not registered"), false, Some(60)),
            (59, Some("not registered"), false, Some(60)),
            (60, Some("not registered"), true, None),
            (200, Some("not registered"), false, None),
            (210, Some("not allocatable"), false, Some(270)),
            (260, None, false, None),
            (280, Some("not allocatable"), false, Some(340)),
            (340, Some("not allocatable"), true, None),
        ] {
            let at = |second| begin + Duration::from_secs(second);
            let why = why.map(|why| Message::from(why.to_owned()));
            wait.follow(why.as_ref().map(|why| ("key", why)), &mut events, at(second));
            assert_eq!(events.take().is_some(), is_event, "{second}");
            assert_eq!(wait.deadline(), deadline.map(at), "{second}");
        }
    }
}
