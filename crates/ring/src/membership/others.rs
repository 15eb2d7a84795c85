//! A process's knowledge of the others: those that were heard since the ring broke, those that are gone, and those that
//! it leaves alone for a while.
//!
//! A member that stands still for longer than the token-loss time breaks its ring, and is back a moment later. If that
//! happened every few seconds, no member would have a ring for much of the time (P-12): the others go on without members
//! that fall silent again and again, and leave them alone for longer and longer.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::hash::Hasher;

use super::evidence::{BackOff, Former, Refusals};
use crate::Counters;
use rota_core::contract::{NodeId, Process, Time};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};

/// Token-loss times after which a ring has lasted: longer than it takes to find that a member is deaf.
const LASTING: u64 = 4;

/// Token-loss times after which a ring was steady: a member that breaks it then costs the others a twentieth of the
/// time at most.
const STEADY: u64 = 48;

/// Token-loss times after which all trouble of before is forgotten: twice the longest time that a node is left alone.
const FORGETTING: u64 = 128;

/// A process that was not heard in this part of a token-loss time after the ring broke is late: processes send joins
/// several times in it.
const LATE: u64 = 4;

/// The other processes as one process knows them.
#[derive(Clone, Debug)]
pub(super) struct Others {
    me: Process,
    /// In nanoseconds.
    token_loss: u64,
    /// The time at which the ring installed last was.
    installed_at: Time,
    /// The time at which that ring broke.
    broken_at: Time,
    /// The processes that were heard themselves since then, and whether late.
    heard: BTreeMap<Process, bool>,
    /// The processes that have said since then that they leave.
    left: BTreeSet<Process>,
    /// Whether this process agrees to no ring with a process that it does not hear itself: a ring was well on which the
    /// layer above stood still.
    hears_each: bool,
    refusals: Refusals,
    back_off: BackOff,
    former: Former,
}

impl Others {
    /// Nothing is known of others yet.
    pub fn new(me: Process, token_loss: u64) -> Self {
        Self {
            me,
            token_loss,
            installed_at: Time(0),
            broken_at: Time(0),
            heard: BTreeMap::new(),
            left: BTreeSet::new(),
            hears_each: false,
            refusals: Refusals::default(),
            back_off: BackOff::default(),
            former: Former::default(),
        }
    }

    /// Takes note of a ring that breaks, and of the time for which it has lasted with these members. Returns whether it
    /// has lasted so long that all trouble of before is forgotten.
    pub fn on_broken(&mut self, now: Time, members: &[Process]) -> bool {
        self.heard.clear();
        self.left.clear();
        self.broken_at = now;
        let lasted = self.ring_lasted();
        for member in members {
            if lasted >= FORGETTING {
                self.back_off.forget(member.node);
            } else if lasted >= LASTING {
                self.back_off.lasted(now, member.node, lasted >= STEADY);
            }
        }
        lasted >= FORGETTING
    }

    /// Leaves a process alone for a while with which a ring was tried in vain, unless it is the first time.
    pub fn back_off_from(&mut self, now: Time, process: Process, counters: &mut Counters) {
        if self.back_off.failed(now, process, self.token_loss) {
            counters.back_offs += 1;
        }
    }

    /// The time that the ring installed last was in use, in token-loss times.
    fn ring_lasted(&self) -> u64 {
        let lasted = self.broken_at.since(self.installed_at);
        lasted / self.token_loss.max(1)
    }

    /// The time by which every process that is there has been heard.
    pub fn soon(&self, now: Time) -> Time {
        now.after(self.token_loss / LATE)
    }

    /// Notes that a process was heard itself, and whether late.
    pub fn on_heard(&mut self, now: Time, process: Process) {
        let is_late = now.since(self.broken_at) >= self.token_loss / LATE;
        self.heard.entry(process).or_insert(is_late);
    }

    /// Notes that a process goes of its own will: that no ring forms with it says nothing against its node.
    pub fn on_leave(&mut self, process: Process) {
        self.heard.remove(&process);
        self.left.insert(process);
        self.former.on_leave(process);
    }

    /// Whether a process was heard itself since the ring broke.
    pub fn were_heard(&self, process: Process) -> bool {
        self.heard.contains_key(&process)
    }

    /// Whether a process is an earlier life of a node that has been on a ring in a later one.
    pub fn are_former(&self, process: Process) -> bool {
        self.former.contains(process)
    }

    /// Agrees from now on to no ring with a process that was not heard itself.
    pub const fn hear_each(&mut self) {
        self.hears_each = true;
    }

    /// Whether that is so.
    pub const fn hears_each(&self) -> bool {
        self.hears_each
    }

    /// Takes the processes out of a process set that a join must not name, as this process has to hear each itself and
    /// does not hear them; those `given_up` stay.
    pub fn keep_heard(&self, said: &mut BTreeSet<Process>, given_up: &BTreeSet<Process>) {
        if self.hears_each {
            said.retain(|process| {
                *process == self.me || self.were_heard(*process) || given_up.contains(process)
            });
        }
    }

    /// Notes that no process listens at a node's address; returns whether the node's process is dead.
    pub fn on_refused(&mut self, now: Time, node: NodeId) -> bool {
        self.refusals.note(now, node)
    }

    /// Forgets the refusals of a node, as a process of it was heard.
    pub fn forget_refusals(&mut self, node: NodeId) {
        self.refusals.clear(node);
    }

    /// Whether a node is to be left alone now.
    pub fn are_avoided(&self, now: Time, node: NodeId) -> bool {
        self.back_off.is_avoided(now, node)
    }

    /// Whether a join of this node may be let in although the node is left alone. Two that leave each other alone at
    /// different times would never come together otherwise.
    pub fn are_open_to(&self, now: Time, node: NodeId) -> bool {
        self.back_off.is_open(now, node)
    }

    /// Notes that such a join was let in.
    pub fn let_in(&mut self, now: Time, node: NodeId) {
        self.back_off.let_in(now, node, self.token_loss);
    }

    /// Whether a node falls silent again and again.
    pub fn are_unsteady(&self, node: NodeId) -> bool {
        self.back_off.is_unsteady(node)
    }

    /// The nodes that are left alone now, each with whether it falls silent again and again.
    pub fn avoided(&self, now: Time) -> impl Iterator<Item = (NodeId, bool)> {
        self.back_off.avoided(now)
    }

    /// The time until which some node is left alone.
    pub fn avoided_until(&self) -> Option<Time> {
        self.back_off.until()
    }

    /// Judges the members of the ring `before`, as the `next` one is installed without some of them.
    pub fn on_next_ring(
        &mut self,
        now: Time,
        before: &[Process],
        next: &[Process],
        counters: &mut Counters,
    ) {
        self.leave_unsteady_alone(now, before, next, counters);
        self.leave_lost_alone(now, next, counters);
    }

    /// Counts the members that kept the others for long from the ring that follows.
    fn leave_unsteady_alone(
        &mut self,
        now: Time,
        before: &[Process],
        next: &[Process],
        counters: &mut Counters,
    ) {
        if self.ring_lasted() >= STEADY || mutants::on(Mutant::M48) {
            return;
        }
        for process in self.fell_silent(now, before, next) {
            self.heard.remove(&process);
            self.on_silent(now, process, counters);
        }
    }

    fn on_silent(&mut self, now: Time, process: Process, counters: &mut Counters) {
        if self.back_off.fell_silent(now, process, self.token_loss) {
            counters.members_unsteady += 1;
        }
    }

    /// Leaves the processes alone for a while that could be heard and are not on the ring all the same.
    fn leave_lost_alone(&mut self, now: Time, members: &[Process], counters: &mut Counters) {
        for (process, _) in core::mem::take(&mut self.heard) {
            let back = members.iter().any(|member| member.node == process.node);
            if !back {
                self.back_off_from(now, process, counters);
            }
        }
    }

    /// Members of the ring before for which the others had to wait: they are not on the next one, or were heard late.
    /// None if these are half of all or more: then this process, or the network, may have been away.
    fn fell_silent(&self, now: Time, before: &[Process], next: &[Process]) -> Vec<Process> {
        let waited = now.since(self.broken_at) >= self.token_loss / LATE;
        let is_silent = |process: &&Process| {
            let is_back = next.iter().any(|member| member.node == process.node);
            let is_late = self.heard.get(process).copied().unwrap_or(false);
            is_late || waited && !is_back
        };
        let stays = |process: &&Process| **process != self.me && !self.left.contains(process);
        let others = before.iter().filter(stays);
        let silent: Vec<Process> = others.filter(is_silent).copied().collect();
        match 2 * silent.len() < before.len() {
            true => silent,
            false => Vec::new(),
        }
    }

    /// Takes note of the members of a ring that is installed.
    pub fn on_installed(&mut self, now: Time, members: &[Process], counters: &mut Counters) {
        for &member in members {
            let since = self.former.on_ring(now, member);
            if let Some(since) = since.filter(|_| member != self.me) {
                self.on_short_life(now, member, since, counters);
            }
        }
        self.installed_at = now;
    }

    /// Counts a node that is on the ring again after a short life, which came to a ring at `since`. A process that
    /// crashes as soon as it is started has such lives, and each costs the others two rings.
    fn on_short_life(&mut self, now: Time, process: Process, since: Time, counters: &mut Counters) {
        let is_short = now.since(since) < STEADY * self.token_loss;
        if is_short && !mutants::on(Mutant::M61) {
            self.on_silent(now, process, counters);
        }
    }

    /// Feeds `print` with all that is known.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            me: _,
            token_loss: _,
            installed_at,
            broken_at,
            heard,
            left,
            hears_each,
            refusals,
            back_off,
            former,
        } = self;
        print.past(*installed_at);
        print.past(*broken_at);
        print.add((heard, left, hears_each));
        refusals.fingerprint(print);
        back_off.fingerprint(print);
        former.fingerprint(print);
    }

    /// Its invariants.
    pub fn check(&self, now: Time) {
        self.former.check();
        assert!(
            self.installed_at.max(self.broken_at) <= now,
            "rings began, and broke, in the past"
        );
        assert!(
            !self.left.contains(&self.me),
            "it has not heard itself leave"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::Incarnation;

    const LOSS: u64 = 1000;

    fn process(id: u16) -> Process {
        Process {
            node: NodeId::new(id).expect("not 0"),
            incarnation: Incarnation(1),
        }
    }

    /// A ring of four that broke at time 0 before it was steady, twice, and each time without the fourth.
    fn without_the_fourth(hear: impl Fn(&mut Others)) -> (Others, Counters) {
        let mut others = Others::new(process(1), LOSS);
        let mut counters = Counters::default();
        let members: Vec<Process> = (1..=4).map(process).collect();
        for _ in 0..2 {
            others.on_broken(Time(0), &members);
            others.on_heard(Time(1), process(2));
            others.on_heard(Time(1), process(3));
            hear(&mut others);
            let late = Time(LOSS / LATE);
            others.on_next_ring(late, &members, &members[..3], &mut counters);
            others.check(late);
        }
        (others, counters)
    }

    #[test]
    fn a_member_that_falls_silent_twice_is_left_alone() {
        let (others, counters) = without_the_fourth(|_| ());
        assert_eq!((counters.members_unsteady, counters.back_offs), (1, 0));
        let avoided: Vec<_> = others.avoided(Time(LOSS / LATE)).collect();
        assert_eq!(avoided, [(process(4).node, true)]);
    }

    #[test]
    fn a_member_that_leaves_of_its_own_will_is_not() {
        let (others, counters) = without_the_fourth(|others| others.on_leave(process(4)));
        assert_eq!((counters.members_unsteady, counters.back_offs), (0, 0));
        assert_eq!(others.avoided(Time(0)).count(), 0);
    }

    #[test]
    fn a_ring_that_lasted_has_all_trouble_forgotten() {
        let (mut others, mut counters) = without_the_fourth(|_| ());
        let members: Vec<Process> = (1..=4).map(process).collect();
        assert!(others.are_unsteady(process(4).node));
        others.on_installed(Time(LOSS), &members, &mut counters);
        assert!(!others.on_broken(Time(FORGETTING * LOSS), &members));
        assert!(others.on_broken(Time(LOSS + FORGETTING * LOSS), &members));
        assert!(!others.are_unsteady(process(4).node));
    }
}
