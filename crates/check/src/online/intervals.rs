//! A set of numbers that come nearly in order.

/// Counters seen so far, as ranges without gaps: one range in a run in which nothing is lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// Adds a number; `false` if it was there.
    pub fn insert(&mut self, number: u64) -> bool {
        if let Some((_, end)) = self.0.last_mut()
            && end.checked_add(1) == Some(number)
        {
            *end = number;
            return true;
        }
        let place = self.0.partition_point(|(_, end)| *end < number);
        if self.0.get(place).is_some_and(|(start, _)| *start <= number) {
            return false;
        }
        let joins_before = place > 0 && self.0[place - 1].1 + 1 == number;
        let after = self.0.get(place).copied();
        let joins_after = after.is_some_and(|(start, _)| start == number + 1);
        match (joins_before, joins_after) {
            (true, true) => {
                self.0[place - 1].1 = after.map_or(number, |(_, end)| end);
                self.0.remove(place);
            }
            (true, false) => self.0[place - 1].1 = number,
            (false, true) => self.0[place].0 = number,
            (false, false) => self.0.insert(place, (number, number)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_any_order() {
        let mut set = Intervals::default();
        for number in [5, 6, 1, 3, 2, 9, 4, u64::MAX] {
            assert!(set.insert(number), "{number}");
        }
        for number in [1, 2, 3, 4, 5, 6, 9, u64::MAX] {
            assert!(!set.insert(number), "{number}");
        }
        assert_eq!(set.0, [(1, 6), (9, 9), (u64::MAX, u64::MAX)]);
        assert!(set.insert(8) && set.insert(7));
        assert_eq!(set.0, [(1, 9), (u64::MAX, u64::MAX)]);
    }
}
