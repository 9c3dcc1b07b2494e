//! The Events that are still to be reported. Pure.
//!
//! A device that changes all the time must not flood the API server: what repeats becomes one
//! Event with a count, and a node reports a limited number in a minute.

use std::collections::VecDeque;
use std::time::Duration;

use cluster::Event;
use report::DeviceEvent;
use tokio::time::Instant;

/// How many Events a node may report in a minute.
const LIMIT: u32 = 10;
const MINUTE: Duration = Duration::from_mins(1);
/// How many different Events wait at most; a node with more devices reports the newest.
const MAX_WAITING: usize = 64;

/// The reason of the Event about a configuration that cannot be used.
const CONFIGURATION_REJECTED: &str = "DirectXConfigurationRejected";

/// The Events that are still to be reported.
pub(crate) struct EventQueue {
    waiting: VecDeque<Event>,
    /// How many were reported in the minute that began at `since`.
    reported: u32,
    since: Instant,
}

impl EventQueue {
    pub(crate) fn new(now: Instant) -> EventQueue {
        EventQueue { waiting: VecDeque::new(), reported: 0, since: now }
    }

    /// Adds what has happened to devices.
    pub(crate) fn extend(&mut self, events: Vec<DeviceEvent>) {
        for DeviceEvent { reason, note } in events {
            self.push(reason.into(), "Discover", reason.is_warning(), note);
        }
    }

    /// Adds a configuration that cannot be used.
    pub(crate) fn add_rejection(&mut self, note: String) {
        self.add_warning(CONFIGURATION_REJECTED, "Configure", note);
    }

    /// Adds something that an administrator should act on.
    pub(crate) fn add_warning(&mut self, reason: &'static str, action: &'static str, note: String) {
        self.push(reason, action, true, note);
    }

    fn push(&mut self, reason: &'static str, action: &'static str, is_warning: bool, note: String) {
        let event = Event { reason, action, is_warning, note, count: 1 };
        if self.merge(&event) {
            return;
        }
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
    }

    /// Counts the Event with one that waits and has the same text, if there is one.
    fn merge(&mut self, event: &Event) -> bool {
        let mut waiting = self.waiting.iter_mut();
        let same = waiting.find(|other| (other.reason, &other.note) == (event.reason, &event.note));
        if let Some(same) = same {
            same.count = same.count.saturating_add(event.count);
            return true;
        }
        false
    }

    /// When the next Event may be reported, if there is one.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        self.waiting.front()?;
        let end = self.since + MINUTE;
        Some(if self.reported < LIMIT { now } else { end.max(now) })
    }

    /// Takes the next Event to report.
    pub(crate) fn take(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }

    /// Returns an Event that could not be reported.
    pub(crate) fn put_back(&mut self, event: Event) {
        if !self.merge(&event) && self.waiting.len() < MAX_WAITING {
            self.waiting.push_front(event);
        }
    }

    /// An Event was reported.
    pub(crate) fn reported(&mut self, now: Instant) {
        if now - self.since >= MINUTE {
            (self.reported, self.since) = (0, now);
        }
        self.reported += 1;
    }
}

#[cfg(test)]
mod tests;
