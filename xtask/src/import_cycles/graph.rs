//! Cycles in the references between files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::references::References;

/// A way from a file back to itself.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cycle {
    pub(super) start: PathBuf,
    pub(super) steps: Vec<Step>,
}

/// One reference: the file that is named, and an item of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) file: PathBuf,
    pub(super) item: String,
}

/// For each reference that lies on a cycle the shortest such cycle, each cycle once. It
/// starts with the file that sorts first.
pub(super) fn cycles(references: &References) -> Vec<Cycle> {
    let mut found = BTreeSet::new();
    for (from, targets) in references {
        for (to, item) in targets {
            if let Some(back) = shortest(references, to, from) {
                let first = Step { file: to.clone(), item: item.clone() };
                found.insert(rotated([vec![first], back].concat()));
            }
        }
    }
    found.into_iter().collect()
}

/// The steps of a shortest way between two files.
fn shortest(references: &References, from: &Path, to: &Path) -> Option<Vec<Step>> {
    // For each file that was reached, the file before it.
    let mut before: BTreeMap<&Path, &Path> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        for target in references.get(file).into_iter().flat_map(BTreeMap::keys) {
            if target != from && !before.contains_key(&**target) {
                before.insert(target, file);
                queue.push_back(target);
            }
        }
    }
    let mut steps = Vec::new();
    let mut file = to;
    while file != from {
        let previous = before.get(file)?;
        let item = references.get(*previous)?.get(file)?.clone();
        steps.push(Step { file: file.to_owned(), item });
        file = previous;
    }
    steps.reverse();
    Some(steps)
}

/// The cycle of these steps. The last step leads to where the first one starts.
fn rotated(mut steps: Vec<Step>) -> Cycle {
    let first = steps.iter().enumerate().min_by_key(|(_, step)| &step.file).map(|(n, _)| n);
    let length = steps.len();
    steps.rotate_left(first.map_or(0, |n| (n + 1) % length));
    let start = steps.last().map(|step| step.file.clone()).unwrap_or_default();
    Cycle { start, steps }
}
