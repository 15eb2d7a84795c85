//! What the answers to clients' questions cost: a part of the time, and no more.

use rota_core::contract::Time;

use super::Hub;

/// Groups and members that may be listed in a second, about: each costs some 60 nanoseconds, so that this is a tenth of
/// the time.
const EACH_SECOND: u64 = 1_600_000;

/// So many are listed at once, and how many there are is known only afterwards: what is more has to be made up for.
const AT_ONCE: u64 = 4096;

/// What a list costs beside those.
const LIST_COST: u64 = 16;

/// What lists have cost.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// What has not been made up for yet.
    owed: u64,
    /// As of when.
    at: Time,
    /// Sessions whose clients ask and have to wait.
    pub asking: Vec<usize>,
}

impl Lists {
    /// Time has passed.
    fn pass(&mut self, now: Time) {
        let made_up = u128::from(now.since(self.at)) * u128::from(EACH_SECOND) / 1_000_000_000;
        if made_up > 0 {
            self.owed = self
                .owed
                .saturating_sub(made_up.try_into().unwrap_or(u64::MAX));
            self.at = now;
        }
    }

    pub fn may_go_on(&self) -> bool {
        self.owed < AT_ONCE
    }

    /// One of so many was made.
    pub fn charge(&mut self, listed: usize) {
        self.owed += LIST_COST + listed as u64;
    }

    /// When the next may be made.
    fn wake(&self) -> Time {
        let more = (self.owed + 1).saturating_sub(AT_ONCE);
        self.at.after(1 + more * 1_000_000_000 / EACH_SECOND)
    }
}

impl Hub {
    /// When those who ask for lists have their turn again.
    pub(super) fn lists_wake(&self) -> Option<Time> {
        (!self.lists.asking.is_empty()).then(|| self.lists.wake())
    }

    /// Those who wait have their turn, if lists have cost little enough by now.
    pub(super) fn go_on_listing(&mut self, now: Time) {
        self.lists.pass(now);
        if self.lists.may_go_on() {
            for key in std::mem::take(&mut self.lists.asking) {
                self.schedule(key);
            }
        }
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
