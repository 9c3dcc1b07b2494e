//! The name that somebody probably meant.

/// The one of `candidates` that is closest to `name`, compared without case, if it
/// is close enough to be a slip of the fingers.
#[must_use]
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    const LONGEST: usize = 64;
    let name: Vec<char> = name.to_lowercase().chars().collect();
    if name.len() > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one into the other.
fn distance(name: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.to_lowercase().chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=candidate.len()).collect();
    for (i, a) in name.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in candidate.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == candidate[j - 1] && name[i - 1] == *b {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[candidate.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let keys = ["multitenancy", "includeIntegrated", "luid"];
        for (typed, meant) in [
            ("multitenacy", "multitenancy"),
            ("mutlitenancy", "multitenancy"),
            ("INCLUDEINTEGRATD", "includeIntegrated"),
            ("liud", "luid"),
        ] {
            assert_eq!(closest(typed, keys), Some(meant), "{typed}");
        }
        for typed in ["", "replicas", &"x".repeat(100)] {
            assert_eq!(closest(typed, keys), None, "{typed}");
        }
    }
}
