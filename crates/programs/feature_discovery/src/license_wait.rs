//! Which devices lack the license that their driver needs. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use host::LicenseState::{Licensed, NotRequired, Unlicensed};
use host::PnpId;
use report::{NodeReport, ReportedDevice};
use tokio::time::Instant;

use crate::event_queue::EventQueue;

/// How long a device may lack a license that it has not had yet. A virtual machine gets its
/// licenses some time after it has started, and the plugin asks for them every ten minutes: by then
/// it has asked twice.
const PATIENCE: Duration = Duration::from_mins(15);

/// What is known of each device that needs a license.
#[derive(Default)]
pub(crate) struct LicenseWait(BTreeMap<PnpId, Known>);

enum Known {
    Licensed,
    /// It has had no license yet.
    Waiting {
        since: Instant,
    },
    /// There was an Event that it has none.
    Reported,
}

impl LicenseWait {
    /// Adds an Event for each device that has lost its license, or has not got one for some time.
    /// While the license is not known, as after a restart of the plugin, nothing changes. A device
    /// that was away gets its license some time after it has returned.
    pub(crate) fn follow(&mut self, node: &NodeReport, events: &mut EventQueue, now: Instant) {
        let is_known =
            |id: &PnpId| node.devices().any(|device| device.id == *id && device.is_present());
        self.0.retain(|id, _| is_known(id));
        for device in node.devices() {
            let Some(license) = device.license else { continue };
            let next = match (license, self.0.remove(&device.id)) {
                (NotRequired, _) => continue,
                (Licensed, _) => Known::Licensed,
                (Unlicensed, None) => Known::Waiting { since: now },
                (Unlicensed, Some(Known::Waiting { since })) if now < since + PATIENCE => {
                    Known::Waiting { since }
                }
                (Unlicensed, Some(Known::Waiting { .. })) => {
                    report(device, "has got no license", events);
                    Known::Reported
                }
                (Unlicensed, Some(Known::Licensed)) => {
                    report(device, "lost its license", events);
                    Known::Reported
                }
                (Unlicensed, Some(Known::Reported)) => Known::Reported,
            };
            self.0.insert(device.id.clone(), next);
        }
    }

    /// An earlier run reported the devices that wait.
    pub(crate) fn were_reported(&mut self) {
        for known in self.0.values_mut() {
            if matches!(known, Known::Waiting { .. }) {
                *known = Known::Reported;
            }
        }
    }

    /// When a device has waited long enough. A license that is unknown then is followed when it is
    /// known again.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let waiting = self.0.values().filter_map(|known| match known {
            Known::Waiting { since } => Some(*since + PATIENCE),
            Known::Licensed | Known::Reported => None,
        });
        waiting.filter(|at| *at > now).min()
    }
}

fn report(device: &ReportedDevice, what: &str, events: &mut EventQueue) {
    let id = &device.id;
    let name = &device.description;
    let note = format!(
        "the driver of device {id} ({name}) {what}, without which the GPU is slowed down; doctor \
         prints the fix"
    );
    events.add_warning("DirectXDeviceUnlicensed", "Discover", note);
}

#[cfg(test)]
mod tests {
    use host::LicenseState;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn node(license: Option<LicenseState>) -> NodeReport {
        let device = serde_json::json!({
            "id": "PCI\\1", "description": "GPU", "vendorId": 1, "deviceId": 2,
            "driverModel": "wddm", "integrated": false, "detachable": false, "license": license,
        });
        let resource = serde_json::json!({"name": "a/gpu", "replicas": 1, "devices": [device]});
        let resources = vec![serde_json::from_value(resource).unwrap()];
        NodeReport { resources, ..NodeReport::default() }
    }

    /// The texts of the Events after these states, one a minute.
    fn events(states: &[Option<LicenseState>]) -> Vec<String> {
        let begin = Instant::now();
        let mut events = EventQueue::new(begin);
        let mut wait = LicenseWait::default();
        let mut now = begin;
        for state in states {
            wait.follow(&node(*state), &mut events, now);
            assert!(wait.deadline(now).is_none_or(|at| at > now), "not reported in time");
            now += MINUTE;
        }
        // Events with one text are one Event with a count.
        std::iter::from_fn(|| events.take())
            .flat_map(|event| {
                std::iter::repeat_n(event.note, usize::try_from(event.count).unwrap())
            })
            .collect()
    }

    #[test]
    fn a_license_that_is_lost_is_reported_at_once_and_once() {
        let lost = [Some(Licensed), Some(Unlicensed), Some(Unlicensed)];
        let [note] = events(&lost).try_into().unwrap();
        assert!(note.starts_with("the driver of device PCI\\1 (GPU) lost its license"), "{note}");
        // Also over a restart of the plugin, which does not know it at first.
        assert_eq!(
            events(&[Some(Licensed), None, Some(Unlicensed), None, Some(Unlicensed)]).len(),
            1
        );
        let again = [Some(Licensed), Some(Unlicensed), Some(Licensed), Some(Unlicensed)];
        assert_eq!(events(&again).len(), 2);
    }

    #[test]
    fn a_license_that_was_never_there_is_reported_after_some_time() {
        let mut states = vec![Some(Unlicensed); 15];
        assert_eq!(events(&states), [""; 0]);
        states.extend([Some(Unlicensed); 20]);
        let [note] = events(&states).try_into().unwrap();
        assert!(note.contains("has got no license"), "{note}");
        // It gets one in time.
        states[10] = Some(Licensed);
        states.truncate(11);
        assert_eq!(events(&states), [""; 0]);
    }

    /// NVML fails, or an earlier plugin runs, when the device has waited long enough.
    #[test]
    fn a_deadline_that_has_passed_wakes_nobody_while_the_license_is_unknown() {
        let begin = Instant::now();
        let (mut events, mut wait) = (EventQueue::new(begin), LicenseWait::default());
        wait.follow(&node(Some(Unlicensed)), &mut events, begin);
        assert_eq!(wait.deadline(begin), Some(begin + PATIENCE));
        for now in [begin + PATIENCE, begin + 2 * PATIENCE] {
            wait.follow(&node(None), &mut events, now);
            assert_eq!(wait.deadline(now), None);
        }
        assert!(events.take().is_none());
        wait.follow(&node(Some(Unlicensed)), &mut events, begin + 2 * PATIENCE);
        assert!(events.take().is_some());
    }

    #[test]
    fn a_driver_that_starts_again_has_the_time_of_a_start() {
        let begin = Instant::now();
        let (mut events, mut wait) = (EventQueue::new(begin), LicenseWait::default());
        wait.follow(&node(Some(Licensed)), &mut events, begin);
        let mut away = node(None);
        away.resources[0].devices[0].unhealthy =
            serde_json::from_value(serde_json::json!({"kind": "removed", "text": "removed"})).ok();
        assert!(!away.resources[0].devices[0].is_present());
        wait.follow(&away, &mut events, begin);
        wait.follow(&node(Some(Unlicensed)), &mut events, begin + MINUTE);
        assert!(events.take().is_none());
        wait.follow(&node(Some(Unlicensed)), &mut events, begin + MINUTE + PATIENCE);
        assert!(events.take().unwrap().note.contains("has got no license"));
    }

    #[test]
    fn what_an_earlier_run_reported_is_not_reported_again() {
        let begin = Instant::now();
        let (mut events, mut wait) = (EventQueue::new(begin), LicenseWait::default());
        wait.follow(&node(Some(Unlicensed)), &mut events, begin);
        wait.were_reported();
        wait.follow(&node(Some(Unlicensed)), &mut events, begin + 2 * PATIENCE);
        assert!(events.take().is_none());
    }

    #[test]
    fn what_is_not_known_or_needs_no_license_is_no_event() {
        for state in [None, Some(NotRequired), Some(Licensed)] {
            assert_eq!(events(&[state; 30]), [""; 0]);
        }
        assert_eq!(events(&[Some(Licensed), Some(NotRequired), Some(Unlicensed)]), [""; 0]);
    }
}
