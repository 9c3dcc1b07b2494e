//! Failures that repeat.

/// What failed, which is logged again only after 1, 2, 4, 8 and so on repetitions. Its users
/// repeat what failed after delays that they choose, so it counts and needs no clock. Where a text
/// may contain the words of another program, `K` is the kind of the failure.
pub struct Repeated<K> {
    last: Option<K>,
    count: u32,
}

impl<K> Default for Repeated<K> {
    fn default() -> Repeated<K> {
        Repeated { last: None, count: 0 }
    }
}

impl<K: PartialEq> Repeated<K> {
    /// Whether to log a failure of this kind this time.
    pub fn is_due(&mut self, kind: K) -> bool {
        if self.last.as_ref() != Some(&kind) {
            *self = Repeated { last: Some(kind), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count.is_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_text_is_logged_more_and_more_rarely() {
        let mut repeated = Repeated::default();
        let logged: Vec<u32> = (1..=20).filter(|_| repeated.is_due("a")).collect();
        assert_eq!(logged, [1, 2, 4, 8, 16]);
        assert!(repeated.is_due("b") && repeated.is_due("a"));
    }
}
