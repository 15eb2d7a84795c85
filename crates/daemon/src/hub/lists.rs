//! The cost of lists: a share of the time, and no more; and clients that do not read the answers.

use std::collections::VecDeque;

use rota_core::contract::Time;

use super::Hub;
use super::budget::Budget;

/// Groups and members that may be listed in a second, about: each costs some 60 nanoseconds, so that this is a tenth of
/// the time.
const EACH_SECOND: u64 = 1_600_000;

/// The entries that are listed at once, about. The size of a list is known only afterwards: the excess has to be made
/// up for.
const AT_ONCE: u64 = 4096;

/// The cost of a list beside its entries.
const LIST_COST: u64 = 16;

/// The time for which a client that asks may read nothing, while the bytes that wait for it leave no room for another
/// answer. Meanwhile nothing more is read of it, so that its end could not be seen: a descriptor of its own socket may
/// lie unread there.
const UNREAD_NANOS: u64 = 60_000_000_000;

/// The cost of the lists, and the sessions that wait for lists.
#[derive(Debug)]
pub(super) struct Lists {
    budget: Budget,
    /// Sessions whose clients ask and have to wait.
    pub asking: Vec<usize>,
    /// Sessions whose clients ask and do not read, by number, and when they are looked at; the next one first.
    unread: VecDeque<(Time, usize, u64)>,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            budget: Budget::new(EACH_SECOND, AT_ONCE),
            asking: Vec::new(),
            unread: VecDeque::new(),
        }
    }
}

impl Lists {
    pub const fn may_go_on(&self) -> bool {
        self.budget.has_room()
    }

    /// Charges a list of this many entries.
    pub const fn charge(&mut self, listed: usize) {
        self.budget.charge(LIST_COST + listed as u64);
    }

    /// The time at which the next list may be made.
    fn wake(&self) -> Time {
        self.budget.at().after(1 + self.budget.wait_nanos())
    }
}

impl Hub {
    /// The time at which sessions that ask for lists have their turn again.
    pub(super) fn lists_wake(&self) -> Option<Time> {
        let asking = (!self.lists.asking.is_empty()).then(|| self.lists.wake());
        let unread = self.lists.unread.front().map(|&(at, ..)| at);
        asking.into_iter().chain(unread).min()
    }

    /// A client has to read before its question is answered.
    pub(super) fn await_reader(&mut self, key: usize, now: Time) {
        if let Some(session) = self.sessions.get_mut(key)
            && session.is_asking()
            && !std::mem::replace(&mut session.has_to_read, true)
        {
            let at = now.after(UNREAD_NANOS);
            self.lists.unread.push_back((at, key, session.number));
        }
    }

    /// Clients that ask and do not read are disconnected in the end.
    pub(super) fn end_unread(&mut self, now: Time) {
        while let Some(&(at, key, number)) = self.lists.unread.front()
            && now >= at
        {
            self.lists.unread.pop_front();
            let session = self.sessions.get_mut(key);
            let Some(session) = session.filter(|session| session.number == number) else {
                continue;
            };
            session.has_to_read = false;
            if session.is_asking() && session.unread_nanos(now) >= UNREAD_NANOS {
                self.counters.slow += 1;
                self.end(key, "it asks, and does not read what it is answered");
            } else {
                self.await_reader(key, now);
            }
        }
    }

    /// Gives the waiting sessions their turn, if lists have cost little enough by now.
    pub(super) fn go_on_listing(&mut self, now: Time) {
        self.lists.budget.pass(now);
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
                lists.budget.pass(now);
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
        lists.budget.pass(Time(1000 * SECOND));
        lists.charge(AT_ONCE as usize);
        assert!(!lists.may_go_on());
        lists.budget.pass(lists.wake());
        assert!(lists.may_go_on());
    }
}
