//! The name that was probably meant.

/// The longest name that is compared. A longer one is not a misspelled name, and comparing takes
/// long.
const LONGEST: usize = 64;

/// The name in `candidates` that is most similar to `name`, compared without case, if it is similar
/// enough to be a typing mistake.
#[must_use]
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let most = (candidate.len() / 3).clamp(1, 3);
            let distance = strsim::osa_distance(&name, &candidate.to_lowercase());
            (distance <= most).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_recognized_and_other_words_are_not() {
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
