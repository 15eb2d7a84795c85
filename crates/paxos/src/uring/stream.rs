//! The stream along the ring of one configuration: values to the coordinator, its proposals to all, and the progress of
//! votes.
//!
//! A value goes from its proposer to the coordinator, as the `dissemination` brings it there; a proposal goes from the
//! coordinator along the ring up to the coordinator's predecessor, with its value to processes that do not get that in
//! another way (Multi-Ring Paxos §4, fig. 2).
//!
//! A stream is put together from machines with a state of their own: the `places` of the ring, the `predecessor` and
//! the `successor`, the `window` of proposals that some process may lack, and the dissemination of values. Here are the
//! steps that concern more than one of them; `pass` writes the batches.

mod following;
mod pass;
mod places;
mod predecessor;
mod successor;

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

use super::context::Context;
use super::dissemination::{self, Dissemination, Overdue, Resolved};
use super::parts::Dropped;
use super::window::Window;
use super::word::{Head, Proposal, ResumeFrom};
use crate::{Config, Instance, Proposers, Round, Value, ValueId, Vote};
use predecessor::Predecessor;
use rota_core::contract::{Process, Session, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::Part;
use successor::Successor;

pub use following::Progress;
pub use places::Places;

/// The ring of a configuration, as one of its processes sees it.
#[derive(Debug)]
pub struct Stream {
    /// The number of the configuration.
    round: Round,
    places: Places,
    predecessor: Predecessor,
    successor: Successor,
    /// The proposals that some process may still lack.
    window: Window,
    values: Box<dyn Dissemination>,
}

/// The ring, and the neighbours in it.
impl Stream {
    /// The ring of this configuration; `None` if this process is not in it.
    pub fn of(cx: &Context, config: &Config) -> Option<Self> {
        let places = Places::of(config, cx.me)?;
        let most_bytes = 4 * cx.settings.proposer.window_bytes * places.count();
        Some(Self {
            round: config.number,
            predecessor: Predecessor::new(cx.now),
            successor: Successor::new(cx.now),
            window: Window::new(most_bytes),
            values: dissemination::of(cx, &places),
            places,
        })
    }

    /// The number of the configuration.
    pub const fn round(&self) -> Round {
        self.round
    }

    /// The process to which this one sends; `None` if it is alone.
    pub fn successor(&self) -> Option<Process> {
        self.places.successor()
    }

    /// The process that sends to this one; `None` if it is alone.
    pub fn predecessor(&self) -> Option<Process> {
        self.places.predecessor()
    }

    /// Whether this process coordinates.
    pub const fn leads(&self) -> bool {
        self.places.leads()
    }

    /// A link to a process has come up or gone down: neighbours begin again.
    pub fn on_link(&mut self, now: Time, who: Process) {
        if self.predecessor() == Some(who) {
            self.predecessor.ask();
        }
        if self.places.successor() == Some(who) {
            self.successor.on_link(now);
        }
    }

    /// A process has said something that is not of this ring.
    pub fn on_aside(&mut self, now: Time, process: Process) {
        if self.predecessor() == Some(process) {
            self.predecessor.on_aside(now);
        }
    }

    /// The predecessor was heard in this ring, or is not to be suspected before this time.
    pub const fn on_heard(&mut self, now: Time) {
        self.predecessor.on_heard(now);
    }

    /// The time since which the predecessor is silent; what it says beside the ring counts for `most_aside` nanoseconds
    /// at most.
    pub fn silent_since(&self, most_aside: u64) -> Time {
        self.predecessor.silent_since(most_aside)
    }

    /// The successor, and the time since which it has not said from where on to send; `None` if it has, or there is
    /// none.
    pub fn apart(&self) -> Option<(Process, Time)> {
        self.places.successor().zip(self.successor.apart())
    }

    /// The predecessor is to be told from where on to send, as soon as that can be.
    pub const fn ask_predecessor(&mut self) {
        self.predecessor.ask();
    }

    /// Likewise, but not before this time.
    pub const fn ask_predecessor_at(&mut self, at: Time) {
        self.predecessor.ask_at(at);
    }

    /// Whether the predecessor is to be told now.
    pub const fn is_to_ask(&self) -> bool {
        self.predecessor.is_to_be_told()
    }

    /// The resume message for the predecessor, and the instances in which it is to bring the values.
    pub fn follow(&mut self) -> (ResumeFrom, Vec<Instance>) {
        let lacks = self.values.begin_behind(self.window.next());
        let follow = ResumeFrom {
            round: self.round,
            epoch: self.predecessor.tell(),
            next: self.window.next(),
        };
        (follow, lacks)
    }

    /// Takes the resume message of the successor.
    pub fn on_resume_from(
        &mut self,
        session: Session,
        (follow, lacks): (ResumeFrom, Vec<Instance>),
        acceptors: usize,
    ) {
        let (sizes, next) = ((acceptors, self.places.count()), self.window.next());
        self.successor
            .on_resume_from(session, (&follow, lacks), sizes, next);
        if !mutants::on(Mutant::U04) {
            self.values.send_again();
        }
    }

    /// Whether a batch answers the last [`ResumeFrom`].
    pub fn is_current(&self, head: &Head) -> bool {
        self.predecessor.is_current(self.round, head)
    }

    /// The session with the successor, if it has said what it wants.
    pub fn session(&self) -> Option<Session> {
        self.successor.session()
    }

    /// Whether the successor is to hear something even if there is nothing to say.
    pub const fn is_to_speak(&self) -> bool {
        self.successor.is_to_hear()
    }

    /// A batch is sent.
    pub const fn on_batch_sent(&mut self, now: Time) {
        self.successor.on_sent(now);
    }

    /// The time at which the predecessor is to be told again, or the successor is to hear something.
    pub fn next_time(&self, heartbeat: u64) -> Option<Time> {
        let ask = self.predecessor.next_time();
        let hear = self.successor.next_time(heartbeat);
        ask.into_iter().chain(hear).min()
    }

    /// Everything that was put off until now is due.
    pub fn on_time(&mut self, now: Time, heartbeat: u64) {
        self.predecessor.on_time(now);
        self.successor.on_time(now, heartbeat);
    }
}

/// Proposals.
impl Stream {
    /// The next proposal of this round, which goes on to the successor.
    pub fn propose(&mut self, vote: Vote, whole: bool) {
        // A value that is proposed again from an earlier round may not count, and is then proposed once more.
        if let (Value::Packet { id, .. }, false) = (&vote.value, whole) {
            self.values.drop_value(&self.places, *id);
        }
        self.window.push(vote, whole);
    }

    /// The proposal that follows those that are here, from its first instance on: its value, or what becomes of it.
    pub fn on_proposal(&mut self, at: Instance, proposal: Proposal) -> Resolved {
        let resolved = self.values.on_proposal(&self.places, at, proposal);
        if matches!(resolved, Resolved::Forgotten) {
            self.predecessor.ask();
        }
        resolved
    }

    /// The next proposal that has waited for its value and need not any more: its instance, its value, and whether no
    /// process had that before.
    pub fn release(&mut self) -> Option<(Instance, (Value, bool))> {
        self.values.release(&self.places, self.window.next())
    }

    /// The instance in which the next proposal is expected; 0 if any is.
    pub const fn next(&self) -> Instance {
        self.window.next()
    }

    /// The first instance behind all proposals, those that wait included; 0 if there was none at all.
    pub fn end(&self) -> Instance {
        self.values.blocked_end().unwrap_or(self.window.next())
    }

    /// Proposals before this place do not come: they are forgotten.
    pub fn jump(&mut self, to: Instance) {
        if to > self.end() {
            self.window.jump(to);
            self.values.forget_blocked();
        }
    }

    /// Forgets proposals: all acceptors of the ring have voted for those before `low`, a majority for those before
    /// `reached`: a process that lacks a decided value gets it elsewhere.
    pub fn forget(&mut self, low: Instance, reached: Instance) {
        let low = match self.places.passes_on() {
            true => low.min(self.successor.sent()),
            false => Instance::MAX,
        };
        self.window.forget(low, reached);
    }

    /// All acceptors of the ring have the proposals before `low`, if that matters here.
    pub fn pass(&mut self, low: impl Fn() -> Instance) {
        self.values.pass(&mut self.window, &low);
    }
}

/// Values, on their ways.
impl Stream {
    /// Own values that may be under way, in bytes.
    pub fn own_window(&self, cx: &Context) -> usize {
        self.values.own_window(cx, &self.places)
    }

    /// Puts a value on its way to the coordinator, if it is a member's and new. `false` if its proposer has more under
    /// way than it may.
    pub fn carry(&mut self, id: ValueId, frame: Bytes) -> bool {
        self.values.carry(&self.places, id, frame)
    }

    /// Whether a value may still count. `counted`: the last counter of its proposer that has; `table`: at the
    /// coordinator, the values that count when all proposals are decided.
    pub fn may_count(&self, id: ValueId, counted: Option<u64>, table: Option<&Proposers>) -> bool {
        self.values.may_count(id, counted, table)
    }

    /// The bytes of values here that are on their way to the coordinator.
    pub fn carried_bytes(&self) -> usize {
        self.values.bytes()
    }

    /// A value of another process has come along the ring, and goes on.
    pub fn goes_along(&mut self, id: ValueId) {
        self.values.goes_along(&self.places, id);
    }

    /// At the coordinator: the value that is to be proposed next. `table`: the values that count when all proposals are
    /// decided.
    pub fn next_value(&mut self, table: &Proposers) -> Option<ValueId> {
        self.values.next_value(&self.places, &self.window, table)
    }

    /// Takes the value that came by under this name.
    pub fn take_value(&mut self, id: ValueId) -> Option<Bytes> {
        self.values.take(&self.places, id)
    }

    /// A value of these bytes counts: it is not proposed any more.
    pub fn counted(&mut self, now: Time, id: ValueId, bytes: usize) {
        self.values.on_counted(now, &self.places, (id, bytes));
    }

    /// Values up to some counter of each process have counted before this instance.
    pub fn counted_to(&mut self, next: Instance, counted: impl Fn(Process) -> Option<u64>) {
        self.values.forget_to(&self.places, next, &counted);
    }

    /// The process at this place had to ask for values, and says how often. Returns whether there is such a process,
    /// and not this one.
    pub fn on_lost(&mut self, cx: &Context, place: usize, count: u64) -> bool {
        self.values.on_lost(cx, &self.places, (place, count))
    }
}

/// Values as datagrams, and those that do not come.
impl Stream {
    /// Takes a part of a value. Returns the whole value, if that was the last part and the value is not here yet.
    pub fn on_part(
        &mut self,
        now: Time,
        part: &Part<'_>,
    ) -> Result<Option<(ValueId, Bytes)>, Dropped> {
        self.values.on_part(now, &self.places, part)
    }

    /// Whether there is an own value to multicast, which waits for nothing.
    pub fn has_own(&self) -> bool {
        self.values.has_own(&self.places)
    }

    /// The next own value to multicast, if it may leave, and there is another process.
    pub fn next_own(&mut self, now: Time) -> Option<(ValueId, Bytes)> {
        self.places.successor()?;
        self.values.next_own(now)
    }

    /// A datagram of an own value leaves.
    pub fn leaves(&mut self, now: Time, bytes: usize) {
        self.values.leaves(now, bytes);
    }

    /// The rate that own values keep to, in bits per second.
    pub fn rate(&self) -> Option<u64> {
        self.values.rate()
    }

    /// Looks for missing values, so that they are asked for in time. `table`: at the coordinator; `begun`: the round
    /// has begun here.
    pub fn watch(&mut self, cx: &Context, table: Option<&Proposers>, begun: bool) {
        self.values.watch(cx, &self.places, (table, begun));
    }

    /// The time at which something is to be asked for, or sent once more.
    pub fn overdue_at(&self) -> Option<Time> {
        self.values.overdue_at()
    }

    /// The steps that are due by now. `table`: at the coordinator.
    pub fn overdue(&mut self, cx: &Context, table: Option<&Proposers>) -> Overdue {
        self.values.overdue(cx, &self.places, table)
    }

    /// Somebody was asked for values that are missing here.
    pub fn on_asked(&mut self, cx: &Context) {
        self.values.on_asked(cx, &self.places);
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(self.round > 0, "it is of a configuration");
        self.places.check();
        self.successor.check(self.places.count());
        self.window.check();
        self.values.check(&self.places);
    }
}
