//! A lane: the part of one ring that is known, and not delivered yet.

use alloc::collections::VecDeque;

use super::load::Load;
use super::{Merged, PushError};
use crate::mutants::{self, Mutant};
use crate::order::{Constants, Instance, Place, Round};

#[derive(Clone, Debug)]
struct Item<T> {
    instance: Instance,
    index: u32,
    bytes: usize,
    message: T,
}

/// One ring of a merge.
#[derive(Clone, Debug)]
pub(super) struct Lane<T> {
    pub of: Constants,
    /// Messages before this round are not delivered.
    from: Round,
    /// Messages in this round, and later, are not delivered either.
    pub until: Option<Round>,
    /// Everything before this instance is known; of this one, the messages that were pushed.
    next: Instance,
    /// The instance and the index of the message that was pushed last.
    last: (Instance, u32),
    /// The instance of the message that was delivered last.
    inside: Option<Instance>,
    waiting: VecDeque<Item<T>>,
    bytes: usize,
    load: Load,
    /// Nothing was left out from this instance on.
    start: Instance,
    /// The last hold that was ordered in the ring for the partition of this learner.
    hold: Option<Instance>,
    /// For a mutant: instances that carried nothing.
    empty: u64,
}

impl<T> Lane<T> {
    /// A ring that is known up to an instance.
    pub const fn new(of: Constants, next: Instance) -> Self {
        Self {
            of,
            from: 0,
            until: None,
            next,
            last: (0, 0),
            inside: None,
            waiting: VecDeque::new(),
            bytes: 0,
            load: Load::new(),
            start: next,
            hold: None,
            empty: 0,
        }
    }

    /// The same, without the messages before a round.
    pub fn from(self, from: Round) -> Self {
        let first = self.of.first_of(from);
        let at = self.waiting.partition_point(|item| item.instance < first);
        let mut lane = Self { from, ..self };
        lane.bytes -= lane
            .waiting
            .drain(..at)
            .map(|item| item.bytes)
            .sum::<usize>();
        lane
    }

    /// Nothing is delivered from a round on. Returns the lane of what has come behind that, if a hold there wants it
    /// kept.
    pub fn end(&mut self, until: Round) -> Option<Self> {
        self.until = Some(until);
        let first = self.of.first_of(until);
        let at = self.waiting.partition_point(|item| item.instance < first);
        let rest = self.waiting.split_off(at);
        let bytes = rest.iter().map(|item| item.bytes).sum();
        self.bytes -= bytes;
        let hold = self
            .hold
            .filter(|hold| *hold >= first && !mutants::on(Mutant::A36))?;
        let next = self.next.max(first);
        Some(Self {
            next,
            last: self.last,
            waiting: rest,
            bytes,
            start: first,
            hold: Some(hold),
            ..Self::new(self.of, next)
        })
    }

    /// Whether the lane has ended before an instance.
    pub fn has_ended_before(&self, instance: Instance) -> bool {
        let until = self.until;
        until.is_some_and(|until| self.of.round_of(instance) >= until)
    }

    /// Whether some of these instances are delivered: from `first` up to `next`.
    pub fn wants(&self, first: Instance, next: Instance) -> bool {
        !self.has_ended_before(first) && next > self.of.first_of(self.from)
    }

    /// A hold was ordered in this instance.
    pub const fn on_hold(&mut self, instance: Instance) {
        self.hold = Some(instance);
    }

    pub const fn hold(&self) -> Option<Instance> {
        self.hold
    }

    /// Whether nothing was left out from this round on.
    pub fn has_all_from(&self, round: Round) -> bool {
        self.start <= self.of.first_of(round)
    }

    pub const fn start(&self) -> Instance {
        self.start
    }

    /// The first instance of which nothing has come.
    pub fn untold(&self) -> Instance {
        self.next.max(self.last.0.saturating_add(1))
    }

    pub const fn begins(&self) -> Round {
        self.from
    }

    /// Whether everything before the round in which it begins is known.
    pub fn has_begun(&self) -> bool {
        self.next >= self.of.first_of(self.from)
    }

    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(
        &mut self,
        (instance, index): (Instance, u32),
        (message, bytes): (T, usize),
    ) -> Result<(), PushError> {
        if instance < self.next || self.last >= (instance, index) {
            return Err(PushError::Behind {
                rank: self.of.rank,
                instance,
                next: self.next,
            });
        }
        self.count_empty(instance);
        self.last = (instance, index);
        let instance = instance - self.empty;
        self.next = instance;
        self.load.add(instance, 1, bytes);
        let round = self.of.round_of(instance);
        if round >= self.from && self.until.is_none_or(|until| round < until) {
            self.bytes += bytes;
            self.waiting.push_back(Item {
                instance,
                index,
                bytes,
                message,
            });
        }
        Ok(())
    }

    pub fn pass(&mut self, next: Instance, records: u32) {
        let has_any = self
            .waiting
            .back()
            .is_some_and(|last| last.instance == self.next);
        if mutants::on(Mutant::A03) && !has_any {
            self.count_empty(next);
        }
        let next = next - self.empty;
        if next > self.next {
            self.load.add(next - 1, records, 0);
            self.next = next;
        }
    }

    /// For a mutant, by which instances without messages do not count.
    fn count_empty(&mut self, instance: Instance) {
        if mutants::on(Mutant::A03) {
            let first = self.next + self.empty;
            self.empty += instance.saturating_sub(first);
        }
    }

    /// The place of the first message that waits.
    pub fn head(&self) -> Option<Place> {
        let first = self.waiting.front()?;
        let place = self.of.place(first.instance);
        Some(Place {
            index: first.index,
            ..place
        })
    }

    pub fn take(&mut self) -> Option<Merged<T>> {
        let place = self.head()?;
        let item = self.waiting.pop_front()?;
        self.bytes -= item.bytes;
        self.inside = Some(item.instance);
        Some(Merged {
            place,
            message: item.message,
        })
    }

    /// The place of the first instance that may hold something undelivered; `None` if nothing of this ring is to come.
    pub fn first_open(&self) -> Option<Place> {
        let unknown = self.next.max(self.of.first_of(self.from));
        let first = self.waiting.front().map_or(unknown, |first| first.instance);
        let place = self.of.place(first);
        let is_over = self.until.is_some_and(|until| place.round >= until);
        (!is_over).then_some(place)
    }

    /// Whether some of an instance was delivered, and more of it may be.
    pub fn is_inside(&self, instance: Instance) -> bool {
        self.inside == Some(instance)
    }

    /// The last round that is known whole.
    pub fn known_up_to(&self) -> Option<Round> {
        let next = self.of.round_of(self.next);
        let rest = match self.until {
            Some(until) if next >= until => Round::MAX,
            _ => next,
        };
        rest.checked_sub(1)
    }

    /// Whether much of it waits from this instance on.
    pub fn is_much_behind(&self, point: Instance) -> bool {
        self.load.is_much_from(point)
    }
}
