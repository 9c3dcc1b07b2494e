//! From an inventory to a host and back: `record` and `devices` print the same on a host
//! made from an inventory and for the inventory itself, except for the software of the node,
//! which is that of Wine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::programs::{Programs, compare, native, stdout};
use super::test_case::TestCase;
use crate::workspace;

/// Two tests for each fixture and for each of the `generated` inventories.
pub(super) fn tests(generated: &[PathBuf]) -> Result<Vec<TestCase>> {
    let mut inventories = yaml_files("fixtures/inventories")?;
    inventories.extend(yaml_files("fixtures/inventories/generated")?);
    inventories.extend_from_slice(generated);
    let mut tests = Vec::new();
    for path in inventories {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (command, arguments) in
            [("record", &["record"][..]), ("devices", &["devices", "--output", "json"][..])]
        {
            let path = path.clone();
            let test = move |programs: &Programs| check_host(programs, arguments, &path);
            tests.push(TestCase::new(format!("{command}: {name}"), test));
        }
    }
    Ok(tests)
}

/// The program prints the same on the host of `inventory` and for `inventory` itself.
pub(super) fn check_host(programs: &Programs, arguments: &[&str], inventory: &Path) -> Result<()> {
    programs.host.set(inventory)?;
    let expected = stdout(&mut native(arguments, inventory))?;
    compare_without_notes(&expected, &stdout(&mut programs.windows(arguments))?)
}

/// Compares two outputs after [`comparable`].
pub(super) fn compare_without_notes(expected: &str, found: &str) -> Result<()> {
    compare(&comparable(expected), &comparable(found))
}

/// The text without what may differ: notes about what a live host did not report; the software
/// of the node; the case of device instance ids, which Wine prints in capitals; and the order
/// of the adapters in an inventory, because a live host has a list for each attribute but none
/// of all.
fn comparable(text: &str) -> String {
    let mut is_in_node = false;
    let lines = text.lines().filter(|line| {
        is_in_node = line.starts_with("node:") || (is_in_node && line.starts_with(' '));
        !is_in_node && !line.starts_with("# adapter ")
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

fn yaml_files(folder: &str) -> Result<Vec<PathBuf>> {
    let folder = workspace::root().join(folder);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_notes_software_order_and_the_case_of_ids_may_differ() {
        let inventory = "# adapter 1: no folder\n  id: 'VMBUS\\{DA}'\n  description: a";
        assert_eq!(comparable(inventory), comparable("  id: 'VMBUS\\{da}'\n  description: a"));
        assert_eq!(comparable(r#" "id": "a","#), comparable(r#" "id": "A","#));
        assert_eq!(
            comparable("a\n- luid: 1\n- luid: 2\n"),
            comparable("a\n- luid: 2\n- luid: 1\n")
        );
        let with_node = "host:\n  a: b\nnode:\n  nvml:\n    gpus:\n    - index: 0\nadapters: []\n";
        assert_eq!(comparable(with_node), comparable("host:\n  a: b\nadapters: []\n"));
        assert_ne!(comparable(with_node), comparable("node:\n  nvml:\nadapters: []\n"));
        assert_ne!(comparable("description: a"), comparable("description: A"));
    }
}
