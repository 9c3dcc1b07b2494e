//! Compares texts, except for what Wine changes.

/// Fails and shows where `found` differs from `expected`.
#[track_caller]
pub(crate) fn compare(what: &str, expected: &str, found: &str) {
    if expected == found {
        return;
    }
    let lines = expected.lines().zip(found.lines());
    let equal = lines.take_while(|(expected, found)| expected == found).count();
    let around = |text: &str| -> String {
        let lines: Vec<&str> = text.lines().skip(equal.saturating_sub(3)).take(10).collect();
        format!("    {}\n", lines.join("\n    "))
    };
    panic!(
        "{what}: first difference in line {}: expected\n{}found\n{}",
        equal + 1,
        around(expected),
        around(found)
    )
}

/// The output of `record` or `devices` without what may differ: notes about what a live host did
/// not report; indirect displays, which Wine's graphics kernel does not report; the software of the
/// node; what the processor says, which has no double; the end mark, which follows the last
/// adapter; the case of device instance IDs, which Wine prints in capitals; and the order of the
/// adapters in an inventory, because a live host has a list for each attribute but none of all.
pub(crate) fn without_notes(text: &str) -> String {
    let mut is_in_node = false;
    let lines = text.lines().filter(|line| {
        is_in_node = line.starts_with("node:") || (is_in_node && line.starts_with(' '));
        let is_note = line.starts_with("# adapter ") || *line == "  indirectDisplay: true";
        let is_of_processor = line.starts_with("  hypervisor: ");
        !is_in_node && !is_note && !is_of_processor && *line != "complete: true"
    });
    let folded = lines.map(|line| {
        let key = line.trim_start().trim_start_matches('"');
        let is_id = key.starts_with("id:") || key.starts_with("id\":");
        if is_id { line.to_uppercase() } else { line.to_owned() }
    });
    let text = folded.collect::<Vec<_>>().join("\n");
    let mut adapters: Vec<&str> = text.trim_end().split("\n- luid: ").collect();
    adapters[1..].sort_unstable();
    adapters.join("\n- luid: ")
}

/// The output of `test-device-discovery` without the case of instance IDs and the order of
/// devices.
pub(crate) fn without_order(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let is_id = line.starts_with("PnP Hardware ID:");
        if is_id { line.to_uppercase() } else { line.to_owned() }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut devices: Vec<&str> = text
        .split("[Device ")
        .map(|part| part.split_once(" details]").map_or(part, |part| part.1).trim_end())
        .collect();
    devices[1..].sort_unstable();
    devices.join("[Device details]")
}

#[test]
fn only_notes_software_order_and_the_case_of_ids_may_differ() {
    let inventory = "# adapter 1: no folder\n  id: 'VMBUS\\{DA}'\n  description: a";
    assert_eq!(without_notes(inventory), without_notes("  id: 'VMBUS\\{da}'\n  description: a"));
    assert_eq!(without_notes(r#" "id": "a","#), without_notes(r#" "id": "A","#));
    let one = "a\n- luid: 1\n- luid: 2\n";
    let other = "a\n- luid: 2\n- luid: 1\n";
    assert_eq!(without_notes(one), without_notes(other));
    let with_node = "host:\n  a: b\nnode:\n  nvml:\n    gpus:\n    - index: 0\nadapters: []\n";
    assert_eq!(without_notes(with_node), without_notes("host:\n  a: b\nadapters: []\n"));
    assert_ne!(without_notes(with_node), without_notes("node:\n  nvml:\nadapters: []\n"));
    assert_ne!(without_notes("description: a"), without_notes("description: A"));
    let one = "Discovered\n[Device 0 details]\na\n[Device 1 details]\nb";
    let other = "Discovered\n[Device 0 details]\nb\n[Device 1 details]\na\n";
    assert_eq!(without_order(one), without_order(other));
    assert_eq!(without_order("PnP Hardware ID: a"), without_order("PnP Hardware ID: A"));
    assert_ne!(without_order(one), without_order(&one.replace('b', "c")));
}
