//! The cost of lists: a share of the time, and no more.

use rota_core::contract::Time;

use super::budget::Budget;

/// Groups and members that may be listed in a second, about: each costs some 60 nanoseconds, so that this is a tenth of
/// the time.
const EACH_SECOND: u64 = 1_600_000;

/// The entries that are listed at once, about. The size of a list is known only afterwards: the excess has to be made
/// up for.
const AT_ONCE: u64 = 4096;

/// The cost of a list beside its entries.
const LIST_COST: u64 = 16;

/// The cost of the lists.
#[derive(Debug)]
pub(super) struct Lists {
    budget: Budget,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            budget: Budget::new(EACH_SECOND, AT_ONCE),
        }
    }
}

impl Lists {
    /// Time has passed.
    pub fn pass(&mut self, now: Time) {
        self.budget.pass(now);
    }

    /// Whether a list may be made.
    pub const fn may_go_on(&self) -> bool {
        self.budget.has_room()
    }

    /// Charges a list of this many entries.
    pub const fn charge(&mut self, listed: usize) {
        self.budget.charge(LIST_COST + listed as u64);
    }

    /// The time at which the next list may be made.
    pub fn wake(&self) -> Time {
        self.budget.at().after(1 + self.budget.wait_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn lists_take_a_part_of_the_time_however_long_one_of_them_is() {
        for each in [0, 100, 16_384, 3 * 16_384] {
            let (mut lists, mut now, mut listed) = (Lists::default(), Time(0), 0);
            while now < Time(SECOND) {
                lists.pass(now);
                if lists.may_go_on() {
                    lists.charge(each);
                    listed += LIST_COST + each as u64;
                } else {
                    assert!(lists.wake() > now);
                    now = lists.wake();
                }
            }
            assert!(listed >= EACH_SECOND / 2, "{each}: {listed}");
            let most = EACH_SECOND + AT_ONCE + 2 * (LIST_COST + each as u64);
            assert!(listed <= most, "{each}: {listed}");
        }
    }

    #[test]
    fn nothing_is_saved_up() {
        let mut lists = Lists::default();
        lists.pass(Time(1000 * SECOND));
        lists.charge(AT_ONCE as usize);
        assert!(!lists.may_go_on());
        lists.pass(lists.wake());
        assert!(lists.may_go_on());
    }
}
