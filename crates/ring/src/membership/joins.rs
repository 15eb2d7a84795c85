//! The joins that a process sends while it gathers: to all by time and when its sets change, and to single processes
//! that may not know its beliefs. Each of these has a bound, so that processes that answer each other come to an end.

use alloc::collections::BTreeMap;
use core::hash::Hasher;

use super::local::Local;
use crate::wire::{Join, Packet};
use rota_core::contract::{Process, Time};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::random::Random;

/// Answers to one process between two joins to all: two processes that answer each other must come to
/// an end.
const ANSWERS: u32 = 3;

/// Answers to all processes together in that time: a stranger that makes up processes gets no more out of it.
const ALL_ANSWERS: u32 = 64;

/// Joins to all that go out at once when the sets change, before the next waits for its time: many processes that start
/// together bring news many times (A10, join storms).
const JOINS: u32 = 8;

/// The pace of the joins of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Joins {
    random: Random,
    /// The time of the next join to all.
    due_at: Time,
    /// The processes answered since the last join to all, and how often.
    answered: BTreeMap<Process, u32>,
    /// Joins to all since one was due by time.
    said: u32,
}

impl Joins {
    /// For a process with these random numbers.
    pub fn new(random: Random) -> Self {
        Self {
            random,
            ..Self::default()
        }
    }

    /// Begins anew, as the process begins to gather: a join to all is due.
    pub fn begin(&mut self, now: Time) {
        self.due_at = now;
        self.answered.clear();
        self.said = 0;
    }

    /// The time of the next join to all.
    pub const fn due_at(&self) -> Time {
        self.due_at
    }

    /// Whether a join to all is due by time; then more may go out at once again.
    pub fn is_due(&mut self, now: Time) -> bool {
        let is_due = now >= self.due_at;
        if is_due {
            self.said = 0;
        }
        is_due
    }

    /// Whether a join to all may go out at once, as the sets have changed.
    pub const fn may_hurry(&self) -> bool {
        self.said < JOINS
    }

    /// Takes note of a join to all. The next is due after `pause` nanoseconds and up to half as much more.
    pub fn on_said(&mut self, now: Time, pause: u64) {
        let wait = pause + self.random.below(pause / 2 + 1);
        self.due_at = now.after(wait);
        self.answered.clear();
        self.said += 1;
    }

    /// Whether a process may be answered now; counts the answer.
    pub fn may_answer(&mut self, process: Process) -> bool {
        let all: u32 = self.answered.values().sum();
        let answers = self.answered.entry(process).or_default();
        let may = *answers < ANSWERS && all < ALL_ANSWERS;
        *answers += u32::from(may);
        may
    }

    /// Feeds `print` with all that decides on the next joins but the random numbers.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        print.add((&self.answered, self.said));
        print.due(self.due_at);
    }

    /// Its invariants.
    pub fn check(&self) {
        let answers = || self.answered.values();
        assert!(
            answers().all(|&answers| answers <= ANSWERS) && answers().sum::<u32>() <= ALL_ANSWERS,
            "answers come to an end"
        );
    }
}

impl Local {
    /// Sends a join to all at once, as the sets have changed, unless many were sent since one was due by time.
    pub fn send_join_at_once(&mut self) {
        if self.joins.may_hurry() {
            self.send_join();
        }
    }

    /// Sends a join to all.
    pub fn send_join(&mut self) {
        self.joins.on_said(self.now, self.config.timers.join);
        if self.is_silent() {
            return;
        }
        self.counters.joins_sent += 1;
        let join = self.join(false);
        self.outputs.send_to_others(&Packet::Join(join));
    }

    /// Sends a join to one process that may not know the beliefs of this one: a few times between two joins to all.
    pub fn answer(&mut self, process: Process) {
        if self.is_silent() || !self.joins.may_answer(process) {
            return;
        }
        self.counters.joins_sent += 1;
        let join = self.join(false);
        self.outputs.send(process.node, &Packet::Join(join));
    }

    /// Tells the others that this process leaves, so that they need not wait for a token to be missed.
    pub fn say_goodbye(&mut self) {
        let mut join = self.join(true);
        join.procs.remove(&self.me);
        join.fails.insert(self.me);
        let goodbye = Packet::Join(join);
        // Twice: the others would notice the loss of the first only by a lost token.
        self.outputs.send_to_others(&goodbye);
        self.outputs.send_to_others(&goodbye);
    }

    fn join(&self, leaving: bool) -> Join {
        let mut procs = self.sets.said();
        let fails = self.sets.fails().clone();
        self.others.keep_heard(&mut procs, &fails);
        Join {
            cluster: self.config.cluster,
            sender: self.me,
            ring_seq: self.durable.newest(),
            leaving,
            procs,
            fails,
        }
    }

    /// The time, in nanoseconds, that this process waits longer than others before it gives processes up, so that its
    /// word does not part processes that hear each other. A process waits longer if less than half of the process set
    /// was on its ring: the others know better. So does a process that agrees to no ring with a process that it does
    /// not hear itself: it leaves it to the others to give that one up.
    pub fn modesty(&self) -> u64 {
        let ring = self.installed.members().len();
        let is_guest = 2 * ring < self.sets.procs().len() && !mutants::on(Mutant::M60);
        match self.others.hears_each() || is_guest {
            true => self.config.timers.token_loss,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::{Incarnation, NodeId};

    fn process(id: u16) -> Process {
        Process {
            node: NodeId::new(id).expect("not 0"),
            incarnation: Incarnation(1),
        }
    }

    #[test]
    fn a_process_is_answered_a_few_times_between_two_joins_to_all() {
        let mut joins = Joins::default();
        for _ in 0..ANSWERS {
            assert!(joins.may_answer(process(2)));
        }
        assert!(!joins.may_answer(process(2)));
        assert!(joins.may_answer(process(3)), "another is");
        joins.on_said(Time(0), 10);
        assert!(joins.may_answer(process(2)));
        joins.check();
    }

    #[test]
    fn many_processes_together_are_answered_a_bounded_number_of_times() {
        let mut joins = Joins::default();
        let answered = (1..=200).filter(|&id| joins.may_answer(process(id)));
        assert_eq!(answered.count(), ALL_ANSWERS as usize);
        joins.check();
    }

    #[test]
    fn joins_at_once_are_bounded_until_one_is_due_by_time() {
        let mut joins = Joins::default();
        joins.begin(Time(0));
        let mut at_once = 0;
        while joins.may_hurry() {
            joins.on_said(Time(0), 10);
            at_once += 1;
        }
        assert_eq!(at_once, JOINS);
        assert!(!joins.is_due(Time(9)) && !joins.may_hurry());
        assert!(joins.is_due(Time(15)) && joins.may_hurry());
    }
}
