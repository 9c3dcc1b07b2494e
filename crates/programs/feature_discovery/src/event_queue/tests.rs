//! The queue on a clock that the tests move.

use report::EventReason;

use super::*;

fn event(device: u32) -> DeviceEvent {
    let note = format!("device PCI\\VEN_10DE&DEV_1EB8\\{device} is unhealthy");
    DeviceEvent { reason: EventReason::Unhealthy, note }
}

/// How many Events are reported within `time`, if each is reported when it may be.
fn reported(queue: &mut EventQueue, start: Instant, time: Duration) -> u64 {
    let mut now = start;
    let mut count = 0;
    while let Some(due) = queue.due(now).filter(|due| *due <= start + time) {
        if due > now {
            now = due;
        } else {
            queue.take();
            queue.reported(now);
            count += 1;
        }
    }
    count
}

#[test]
fn a_device_that_changes_all_the_time_is_one_event_with_a_count() {
    let mut queue = EventQueue::new(Instant::now());
    for _ in 0..1000 {
        queue.extend(vec![event(1)]);
    }
    assert_eq!(queue.take().map(|event| event.count), Some(1000));
    assert_eq!(queue.take(), None);
    queue.extend(vec![event(1)]);
    assert_eq!(queue.take().map(|event| event.count), Some(1));
}

#[test]
fn an_event_that_could_not_be_reported_is_the_next_one_again() {
    let mut queue = EventQueue::new(Instant::now());
    queue.extend(vec![event(1)]);
    queue.extend(vec![event(2)]);
    let first = queue.take().unwrap();
    queue.put_back(first.clone());
    assert_eq!(queue.take(), Some(first.clone()));
    // It happened again meanwhile.
    queue.extend(vec![event(1)]);
    queue.put_back(first);
    let waiting = std::iter::from_fn(|| queue.take());
    assert_eq!(waiting.map(|event| event.count).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_rejected_configuration_is_a_warning_of_its_own() {
    let mut queue = EventQueue::new(Instant::now());
    queue.add_rejection("no configuration is named `x`".to_owned());
    queue.add_rejection("no configuration is named `y`".to_owned());
    for name in ["`x`", "`y`"] {
        let event = queue.take().unwrap();
        assert_eq!((event.reason, event.count), ("DirectXConfigurationRejected", 1));
        assert!(event.is_warning && event.note.contains(name), "{event:?}");
    }
}

#[test]
fn a_storm_is_limited_in_number_and_in_time() {
    let start = Instant::now();
    let mut queue = EventQueue::new(start);
    for device in 0..1000 {
        queue.extend(vec![event(device)]);
    }
    assert_eq!(reported(&mut queue, start, Duration::ZERO), 10);
    assert_eq!(reported(&mut queue, start, Duration::from_mins(1)), 10);
    assert_eq!(reported(&mut queue, start, Duration::from_hours(1)), 44);
}
