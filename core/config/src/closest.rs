//! The name that was probably meant.

/// The one of `candidates` most similar to `name`, compared without case, if it is similar
/// enough to be a typing mistake.
#[must_use]
pub(crate) fn closest<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    /// No key or variable is longer; comparing takes time that grows with the square.
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    let similar = |candidate: &'c str| {
        let most = (candidate.len() / 3).clamp(1, 3);
        let lower = candidate.to_lowercase();
        // A daemon compares every variable of its environment with its own.
        if least_distance(&name, &lower) > most {
            return None;
        }
        let distance = strsim::osa_distance(&name, &lower);
        (distance <= most).then_some((distance, candidate))
    };
    let closest = candidates.into_iter().filter_map(similar).min_by_key(|(distance, _)| *distance);
    closest.map(|(_, candidate)| candidate)
}

/// A lower bound of the edit distance that takes linear time: an edit adds, removes or replaces one
/// character.
fn least_distance(a: &str, b: &str) -> usize {
    /// Characters that share a count only make the bound lower.
    const COUNTS: usize = 32;
    let mut counts = [0_isize; COUNTS];
    for c in a.chars() {
        counts[c as usize % COUNTS] += 1;
    }
    for c in b.chars() {
        counts[c as usize % COUNTS] -= 1;
    }
    let sum = |sign: isize| counts.iter().map(|n| (n * sign).max(0).unsigned_abs()).sum::<usize>();
    sum(1).max(sum(-1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_lower_bound_is_never_above_the_distance(a in "[a-cé]{0,8}", b in "[a-cé]{0,8}") {
            prop_assert!(least_distance(&a, &b) <= strsim::osa_distance(&a, &b));
        }
    }

    #[test]
    fn most_names_are_told_apart_without_their_distance() {
        let variable = "mcdm_device_plugin_config_file";
        for other in ["path", "kubernetes_service_port_https", "tigera_api_service_port"] {
            assert!(least_distance(other, variable) > 3, "{other}");
        }
    }

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
