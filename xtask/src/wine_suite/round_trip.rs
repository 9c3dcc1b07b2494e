//! From an inventory to a host and back: what `record` and `devices` say on the host
//! that the bed makes of an inventory is what they say of the inventory itself.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Test;
use super::programs::{Programs, here, same, stdout};
use crate::workspace;

/// Two tests for each fixture and for each of the `generated` inventories.
pub(super) fn tests(generated: &[PathBuf]) -> Result<Vec<Test>> {
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
            let test = move |programs: &Programs| agree(programs, arguments, &path);
            tests.push(Test::new(format!("{command}: {name}"), test));
        }
    }
    Ok(tests)
}

/// The program says the same on the host of `inventory` and of `inventory` itself.
pub(super) fn agree(programs: &Programs, arguments: &[&str], inventory: &Path) -> Result<()> {
    programs.bed.set(inventory)?;
    let expected = stdout(&mut here(arguments, inventory))?;
    same_but_for_notes(&expected, &stdout(&mut programs.windows(arguments))?)
}

/// Compares what two programs say, less what [`comparable`] takes away.
pub(super) fn same_but_for_notes(expected: &str, found: &str) -> Result<()> {
    same(&comparable(expected), &comparable(found))
}

/// Less what may differ: notes on what a live host did not tell; the case of device
/// instance ids, which Wine turns into capitals; and the order of a recording's
/// adapters, as a live host has one list for each attribute and none over all.
fn comparable(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("# adapter "));
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
    fn only_notes_order_and_the_case_of_ids_may_differ() {
        let recorded = "# adapter 1: no folder\n  id: 'VMBUS\\{DA}'\n  description: a";
        assert_eq!(comparable(recorded), comparable("  id: 'VMBUS\\{da}'\n  description: a"));
        assert_eq!(comparable(r#" "id": "a","#), comparable(r#" "id": "A","#));
        assert_eq!(
            comparable("a\n- luid: 1\n- luid: 2\n"),
            comparable("a\n- luid: 2\n- luid: 1\n")
        );
        assert_ne!(comparable("description: a"), comparable("description: A"));
    }
}
