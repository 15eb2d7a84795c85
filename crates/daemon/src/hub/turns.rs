//! Whose turn it is, and what sessions without a turn wait for: room on the ring, or a share of the daemon's time.
//!
//! A session has its turn when its client may have sent something, and again as long as it has more to handle. A
//! request that cannot be done yet ends the turn; nothing more is read of its client until the session has another one,
//! when what it waits for may be there.

use rota_core::contract::Time;
use rota_core::groups::GroupName;

use super::changes::{self, Changes};
use super::lists::Lists;
use crate::keys::KeyQueue;

/// Sessions that have their turn before the ring has its own: their requests have to take much less than a token-loss
/// time.
const AT_ONCE: usize = 64;

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WaitsFor {
    /// Room on the ring: what it has delivered may have made some.
    Room,
    /// Lists have cost too much of the time.
    Lists,
    /// So have changes of groups, or one of the same group has to be told first.
    Changes,
}

/// The sessions that have their turn next, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Turns {
    next: KeyQueue,
    /// Sessions with requests for which there was no room.
    for_room: KeyQueue,
    /// Sessions that may be in groups that they may not be in, for want of room to have them leave.
    leaving: KeyQueue,
    /// The ring has delivered something since requests were last tried, so there may be room for more.
    has_moved: bool,
    for_lists: KeyQueue,
    lists: Lists,
    for_changes: KeyQueue,
    changes: Changes,
}

impl Turns {
    /// The session has its turn soon.
    pub fn schedule(&mut self, key: usize) {
        self.next.push(key);
    }

    /// The session has its turn when there may be what its request waits for.
    pub fn wait(&mut self, key: usize, what: WaitsFor) {
        match what {
            WaitsFor::Room => self.for_room.push(key),
            WaitsFor::Lists => self.for_lists.push(key),
            WaitsFor::Changes => self.for_changes.push(key),
        }
    }

    /// The session is to leave groups when there may be room for that.
    pub fn leave_later(&mut self, key: usize) {
        self.leaving.push(key);
    }

    /// The ring has delivered something.
    pub const fn moved(&mut self) {
        self.has_moved = true;
    }

    /// If the ring has delivered something since the last call: the number of sessions that are to leave groups now, each
    /// of which [`Self::next_leaving`] names. Those whose requests wait for room come behind them, with
    /// [`Self::retry_requests`].
    pub fn take_moved(&mut self) -> Option<usize> {
        std::mem::replace(&mut self.has_moved, false).then(|| self.leaving.len())
    }

    pub fn next_leaving(&mut self) -> Option<usize> {
        self.leaving.pop()
    }

    /// Sessions whose requests wait for room have their turn.
    pub fn retry_requests(&mut self) {
        self.next.append(&mut self.for_room);
    }

    /// Time has passed: sessions that wait for lists and changes have their turn, if these have cost little enough.
    pub fn pass(&mut self, now: Time) {
        self.lists.pass(now);
        if self.lists.may_go_on() {
            self.next.append(&mut self.for_lists);
        }
        self.changes.pass(now);
        if self.for_changes.is_empty() || !self.changes.look(now) {
            return;
        }
        for _ in 0..self.for_changes.len().min(changes::TURNS) {
            if let Some(key) = self.for_changes.pop() {
                self.next.push(key);
            }
        }
    }

    /// The number of turns before the ring has its own.
    pub fn count(&self) -> usize {
        self.next.len().min(AT_ONCE)
    }

    /// The session that has its turn.
    pub fn next(&mut self) -> Option<usize> {
        self.next.pop()
    }

    /// Whether a session has its turn without waiting.
    pub fn has_work(&self) -> bool {
        let waits_for_room = !(self.for_room.is_empty() && self.leaving.is_empty());
        !self.next.is_empty() || self.has_moved && waits_for_room
    }

    /// The time at which waiting sessions have their turn.
    pub fn next_wake(&self) -> Option<Time> {
        let lists = (!self.for_lists.is_empty()).then(|| self.lists.wake());
        let changes = (!self.for_changes.is_empty()).then(|| self.changes.wake());
        lists.into_iter().chain(changes).min()
    }

    /// Whether a list may be made.
    pub const fn may_list(&self) -> bool {
        self.lists.may_go_on()
    }

    /// A list of this many entries was made.
    pub const fn listed(&mut self, entries: usize) {
        self.lists.charge(entries);
    }

    /// Whether one more change of a group may enter the order.
    pub fn may_change(&mut self, group: GroupName, now: Time) -> bool {
        self.changes.may_begin(group, now)
    }

    /// One more change of a group has entered the order.
    pub fn change_begins(&mut self, group: GroupName, now: Time) {
        self.changes.begin(group, now);
    }

    /// A change of a group was told, with these bytes for all clients.
    pub fn change_told(&mut self, group: GroupName, cost: u64) {
        self.changes.told(group, cost);
    }

    #[cfg(test)]
    pub fn has_waiting_changes(&self) -> bool {
        !self.for_changes.is_empty()
    }

    /// What holds between inputs.
    pub fn check(&self) {
        let rows = [
            &self.next,
            &self.for_room,
            &self.leaving,
            &self.for_lists,
            &self.for_changes,
        ];
        rows.into_iter().for_each(KeyQueue::check);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn all(turns: &mut Turns) -> Vec<usize> {
        turns.check();
        std::iter::from_fn(|| turns.next()).collect()
    }

    #[test]
    fn a_request_without_room_is_tried_again_when_the_ring_has_moved() {
        let mut turns = Turns::default();
        turns.wait(4, WaitsFor::Room);
        assert!(!turns.has_work());
        assert_eq!(turns.take_moved(), None);
        turns.moved();
        assert!(turns.has_work());
        assert_eq!(turns.take_moved(), Some(0));
        turns.retry_requests();
        assert_eq!(all(&mut turns), [4]);
        assert!(!turns.has_work());
    }

    #[test]
    fn a_session_that_has_to_leave_and_finds_no_room_waits_for_the_next_delivery() {
        let mut turns = Turns::default();
        turns.leave_later(3);
        turns.moved();
        assert_eq!(turns.take_moved(), Some(1));
        assert_eq!(turns.next_leaving(), Some(3));
        turns.leave_later(3);
        assert!(!turns.has_work());
        turns.moved();
        assert!(turns.has_work());
    }

    #[test]
    fn questions_wait_until_lists_have_cost_little_enough() {
        let mut turns = Turns::default();
        turns.pass(Time(SECOND));
        turns.listed(1 << 20);
        assert!(!turns.may_list());
        turns.wait(1, WaitsFor::Lists);
        turns.pass(Time(SECOND + 1000));
        assert_eq!(all(&mut turns), [0_usize; 0]);
        let wake = turns.next_wake().expect("a time");
        turns.pass(wake);
        assert_eq!(all(&mut turns), [1]);
        assert_eq!(turns.next_wake(), None);
    }

    #[test]
    fn few_sessions_have_their_turn_before_the_ring() {
        let mut turns = Turns::default();
        (0..2 * AT_ONCE).for_each(|key| turns.schedule(key));
        assert_eq!(turns.count(), AT_ONCE);
    }
}
