//! The Events that are still to be reported. Pure.
//!
//! A device that changes all the time must not flood the API server: what repeats becomes one
//! Event with a count, and a node reports a limited number in a minute.

use std::collections::VecDeque;
use std::time::Duration;

use cluster::Event;
use devices::node_report::DeviceEvent;
use kubelet::OutdatedContainer;
use tokio::time::Instant;

/// How many Events a node may report in a minute.
const LIMIT: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// How many different Events wait at most; a node with more devices reports the newest.
const MAX_WAITING: usize = 64;

/// The reason of the Event about a configuration that cannot be used.
const CONFIGURATION_REJECTED: &str = "DirectXConfigurationRejected";
/// The reason of the Event about a pod that uses a driver which was replaced.
const DRIVER_OUTDATED: &str = "DirectXDriverOutdated";

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

    /// Adds what has happened to a device.
    pub(crate) fn add(&mut self, event: DeviceEvent) {
        self.push(event.reason.name(), "Discover", event.reason.is_warning(), event.note);
    }

    /// Adds a configuration that cannot be used.
    pub(crate) fn add_rejection(&mut self, note: String) {
        self.push(CONFIGURATION_REJECTED, "Configure", true, note);
    }

    /// Adds a container that uses a driver which was replaced.
    pub(crate) fn add_outdated(&mut self, outdated: &OutdatedContainer) {
        let OutdatedContainer { namespace, pod, container, device, before, now, .. } = outdated;
        let note = format!(
            "container {container} of pod {namespace}/{pod} uses driver {before} of {device}, \
             which was replaced by {now}; delete the pod, and cordon and drain a node before \
             you replace its driver"
        );
        self.push(DRIVER_OUTDATED, "Discover", true, note);
    }

    fn push(&mut self, reason: &'static str, action: &'static str, is_warning: bool, note: String) {
        let same = |other: &&mut Event| (other.reason, &other.note) == (reason, &note);
        if let Some(waiting) = self.waiting.iter_mut().find(same) {
            waiting.count = waiting.count.saturating_add(1);
            return;
        }
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Event { reason, action, is_warning, note, count: 1 });
    }

    /// The next Event to report.
    pub(crate) fn first(&self) -> Option<&Event> {
        self.waiting.front()
    }

    /// When the next Event may be reported, if there is one.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Instant> {
        self.waiting.front()?;
        if now - self.since >= MINUTE {
            (self.reported, self.since) = (0, now);
        }
        Some(if self.reported < LIMIT { now } else { self.since + MINUTE })
    }

    /// The first Event was reported.
    pub(crate) fn reported(&mut self) {
        self.waiting.pop_front();
        self.reported += 1;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use devices::node_report::EventReason;

    use super::*;
    use devices::PnpId;

    /// A container of this pod that uses the first version of a driver.
    pub(crate) fn container(pod: &str, name: &str) -> OutdatedContainer {
        OutdatedContainer {
            namespace: "default".to_owned(),
            pod: pod.to_owned(),
            pod_uid: "1-2".to_owned(),
            container: name.to_owned(),
            device: r"PCI\A".to_owned(),
            before: "1.0.0.1".to_owned(),
            now: "1.0.0.2".to_owned(),
        }
    }

    fn event(device: u32) -> DeviceEvent {
        let device = PnpId::new(format!("PCI\\VEN_10DE&DEV_1EB8\\{device}"));
        let note = format!("device {device} is unhealthy");
        DeviceEvent { device, reason: EventReason::Unhealthy, note }
    }

    /// How many Events are reported within `time`, if each is reported when it may be.
    fn reported(queue: &mut EventQueue, start: Instant, time: Duration) -> u64 {
        let (mut now, mut count) = (start, 0);
        while let Some(due) = queue.due(now).filter(|due| *due <= start + time) {
            if due > now {
                now = due;
            } else {
                queue.reported();
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_device_that_changes_all_the_time_is_one_event_with_a_count() {
        let mut queue = EventQueue::new(Instant::now());
        for _ in 0..1000 {
            queue.add(event(1));
        }
        assert_eq!(queue.first().map(|event| event.count), Some(1000));
        queue.reported();
        assert_eq!(queue.first(), None);
        queue.add(event(1));
        assert_eq!(queue.first().map(|event| event.count), Some(1));
    }

    #[test]
    fn each_container_with_an_earlier_driver_is_a_warning_of_its_own() {
        let mut queue = EventQueue::new(Instant::now());
        for pod in ["a", "b", "a"] {
            queue.add_outdated(&container(pod, "main"));
        }
        let first = queue.first().unwrap();
        assert_eq!((first.reason, first.is_warning, first.count), (DRIVER_OUTDATED, true, 2));
        let note =
            "container main of pod default/a uses driver 1.0.0.1 of PCI\\A, which was replaced by";
        assert!(first.note.starts_with(note), "{}", first.note);
        queue.reported();
        assert_eq!(queue.first().map(|event| event.count), Some(1));
    }

    #[test]
    fn a_rejected_configuration_is_a_warning_of_its_own() {
        let mut queue = EventQueue::new(Instant::now());
        queue.add_rejection("no configuration is named `x`".to_owned());
        queue.add_rejection("no configuration is named `y`".to_owned());
        for name in ["`x`", "`y`"] {
            let event = queue.first().unwrap();
            assert_eq!((event.reason, event.count), ("DirectXConfigurationRejected", 1));
            assert!(event.is_warning && event.note.contains(name), "{event:?}");
            queue.reported();
        }
    }

    #[test]
    fn a_storm_is_limited_in_number_and_in_time() {
        let start = Instant::now();
        let mut queue = EventQueue::new(start);
        for device in 0..1000 {
            queue.add(event(device));
        }
        assert_eq!(reported(&mut queue, start, Duration::ZERO), 10);
        assert_eq!(reported(&mut queue, start, Duration::from_secs(60)), 10);
        assert_eq!(reported(&mut queue, start, Duration::from_secs(3600)), 44);
    }
}
