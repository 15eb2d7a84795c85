//! The stream along the ring of one configuration: values to the coordinator, its proposals to all, and the progress of
//! votes.
//!
//! From the coordinator on, positions in the ring are counted as *distance*: the coordinator has 0, its successor 1. A
//! value goes from its proposer up to the coordinator, a proposal from the coordinator up to its predecessor. A process
//! at the distance of the proposer or beyond has had the value on the first of these ways, and is sent only its name on
//! the second; so a value crosses each link at most once (Multi-Ring Paxos §4, fig. 2).

mod multicast;
mod neighbours;
mod pass;
mod watch;

use alloc::vec::Vec;
use bytes::Bytes;

use super::cast::Cast;
use super::queue::{InTransit, Queue};
use super::successor::Successor;
use super::window::Window;
use super::word::Proposal;
use crate::{Config, Instance, Proposers, Round, Value, ValueId, Vote};
use rota_core::contract::{Process, Time};
use rota_core::fair::Fair;
use rota_core::mutants::{self, Mutant};

pub use neighbours::{Hail, PendingControl};

/// Values that were forgotten with a snapshot, and which the ring may still name.
#[derive(Clone, Copy, Debug, Default)]
struct Forgotten {
    /// The instance before which values were forgotten.
    upto: Instance,
    /// The predecessor was asked last to bring the value in this instance, and those behind it.
    asked: Option<Instance>,
}

/// The ring of a configuration, as one of its processes sees it.
#[derive(Debug)]
pub struct Stream {
    /// The number of the configuration.
    pub round: Round,
    ring: Vec<Process>,
    me: usize,
    coordinator: usize,
    pub hail: Hail,
    /// The epoch of the last resume message to the predecessor.
    epoch: u32,
    /// The time at which the predecessor was last heard.
    pub heard: Time,
    /// The time at which it last sent something beside the ring, or messages left from a configuration before: it
    /// lives.
    pub alive: Time,
    /// The time at which the successor was last sent something, or should have been.
    pub spoken: Time,
    /// The successor is to hear something even if there is nothing to say.
    pub beat: bool,
    out: Option<Successor>,
    /// The time since which the successor has not said from where on to send.
    apart: Time,
    /// The control records that the successor has not been told, if values are multicast.
    pub news: PendingControl,
    window: Window,
    /// Values that came by and were not proposed yet.
    carried: InTransit,
    forgotten: Forgotten,
    own: Queue,
    through: Queue,
    fair: Fair,
    /// The state of multicast, if values are multicast.
    pub cast: Option<Cast>,
}

impl Stream {
    /// The ring of this configuration; `None` if `me` is not in it. `window_bytes`: the bytes that one process may have
    /// under way.
    pub fn new(now: Time, config: &Config, me: Process, window_bytes: usize) -> Option<Self> {
        let most_bytes = 4 * window_bytes * config.ring.len();
        // One window on its way, and one that has counted at its proposer and not here.
        let most_carried = 2 * window_bytes;
        let place = |who: Process| config.ring.iter().position(|other| *other == who);
        let (me, coordinator) = (place(me)?, place(config.coordinator)?);
        Some(Self {
            round: config.number,
            ring: config.ring.clone(),
            me,
            coordinator,
            hail: Hail::Due,
            epoch: 0,
            heard: now,
            alive: now,
            spoken: now,
            beat: false,
            out: None,
            apart: now,
            news: PendingControl::None,
            window: Window::new(most_bytes),
            carried: InTransit::new(config.ring.len(), most_carried),
            forgotten: Forgotten::default(),
            own: Queue::default(),
            through: Queue::default(),
            fair: Fair::new(config.ring.len(), me),
            cast: None,
        })
    }

    /// The process to which this one sends; `None` if it is alone.
    pub fn successor(&self) -> Option<Process> {
        let next = (self.me + 1) % self.ring.len();
        (next != self.me).then(|| self.ring[next])
    }

    /// The process that sends to this one; `None` if it is alone.
    pub fn predecessor(&self) -> Option<Process> {
        let count = self.ring.len();
        let before = (self.me + count - 1) % count;
        (before != self.me).then(|| self.ring[before])
    }

    /// A process has said something that is not of this ring.
    pub fn on_aside(&mut self, now: Time, process: Process) {
        if self.predecessor() == Some(process) {
            self.alive = now;
        }
    }

    /// Whether this process coordinates.
    pub fn leads(&self) -> bool {
        self.me == self.coordinator
    }

    fn distance(&self, place: usize) -> usize {
        let count = self.ring.len();
        (place + count - self.coordinator) % count
    }

    /// The place of a process in the ring.
    pub fn place(&self, who: Process) -> Option<usize> {
        self.ring.iter().position(|other| *other == who)
    }

    /// Whether the successor has had the values of this process on their way to the coordinator.
    fn successor_has(&self, place: Option<usize>) -> bool {
        let to = self.distance((self.me + 1) % self.ring.len());
        let had = |place| to >= self.distance(place) || mutants::on(Mutant::U06);
        let along = |place| place != self.coordinator && had(place);
        place.is_some_and(|place| self.cast.is_some() || along(place))
    }

    /// Puts a value on its way to the coordinator, if it is a member's and new. `false` if its proposer has more under
    /// way than it may.
    pub fn carry(&mut self, id: ValueId, frame: Bytes) -> bool {
        let place = self.place(id.process);
        let Some(place) = place.filter(|_| self.carried.get(id).is_none()) else {
            return true;
        };
        if place == self.me {
            self.own.ids.push_back(id);
        } else if !self.has_room(place, id) {
            return false;
        } else if self.cast.is_none() {
            self.fair.on_arrival(place);
            self.through.compact(&self.carried);
            self.through.ids.push_back(id);
        }
        self.carried.put(place, id, frame);
        self.forget_part(place, id);
        true
    }

    /// Whether there is room for a value, if need be in place of one that comes behind it.
    fn has_room(&mut self, place: usize, id: ValueId) -> bool {
        if self.cast.is_some() {
            self.carried.makes_room(place, id)
        } else {
            self.carried.has_room(place)
        }
    }

    /// The bytes of values here that are on their way to the coordinator.
    pub fn carried_bytes(&self) -> usize {
        let cast = self.cast.as_ref().map_or(0, Cast::bytes);
        self.carried.bytes() + cast
    }

    fn uncarry(&mut self, id: ValueId) -> Option<(usize, Bytes)> {
        let place = self.place(id.process)?;
        Some((place, self.carried.take(place, id)?))
    }

    /// At the coordinator: the value that is to be proposed next. `table`: the values that count when all proposals are
    /// decided.
    pub fn next_value(&mut self, table: &Proposers) -> Option<ValueId> {
        if self.cast.is_some() {
            return self.next_multicast(table);
        }
        self.clean();
        let through = self.through.ids.front().copied();
        let next = through.and_then(|id| self.place(id.process));
        if self.fair.own_first(!self.own.ids.is_empty(), next) {
            return self.own.ids.front().copied();
        }
        through
    }

    /// Takes the value that came by under this name.
    pub fn take_value(&mut self, id: ValueId) -> Option<Bytes> {
        let (place, frame) = self.uncarry(id)?;
        if self.leads() {
            self.fair.on_served(place, frame.len());
        }
        Some(frame)
    }

    /// Takes the next proposal of this round, which goes on to the successor.
    pub fn propose(&mut self, vote: Vote, whole: bool) {
        // A value that is proposed again from an earlier round may not count, and is then proposed once more.
        if let (Value::Packet { id, .. }, false) = (&vote.value, whole) {
            self.uncarry(*id);
        }
        self.window.push(vote, whole);
    }

    /// The value of a proposal, and whether no process had it before; `None` if the value is not here.
    pub fn resolve(&mut self, proposal: Proposal) -> Option<(Value, bool)> {
        Some(match proposal {
            Proposal::Named(id) => {
                let Some(frame) = self.take_value(id) else {
                    return mutants::on(Mutant::U27).then_some((Value::Skip(1), false));
                };
                (Value::Packet { id, frame }, false)
            }
            Proposal::Packet { id, frame, whole } => (Value::Packet { id, frame }, whole),
            Proposal::Members(number, members) => (Value::Members(number, members), true),
            Proposal::Skip(count) => (Value::Skip(count), true),
        })
    }

    /// A value is named in an instance, and is not here. If it was forgotten with a snapshot, the predecessor is asked
    /// to bring it and those behind, once: the predecessor may not know what is meant. Returns whether it is asked.
    pub fn ask_forgotten(&mut self, first: Instance) -> bool {
        let Forgotten { upto, asked } = self.forgotten;
        let asks = first < upto && asked != Some(first) && self.cast.is_none();
        let asks = asks && !mutants::on(Mutant::U40);
        if asks {
            self.forgotten.asked = Some(first);
            self.hail = Hail::Due;
        }
        asks
    }

    /// Instances whose values were forgotten with a snapshot, and are to be brought.
    fn forgotten(&self) -> impl Iterator<Item = Instance> {
        let Forgotten { upto, asked } = self.forgotten;
        let next = self.window.next();
        let lacks = asked.map(|asked| asked.max(next)..upto);
        lacks.into_iter().flatten().take(multicast::MOST_LACKS)
    }

    /// A value counts: it is not proposed any more.
    pub fn counted(&mut self, id: ValueId) {
        if !self.carried.is_empty() {
            self.uncarry(id);
        }
        self.forget_parts(id);
    }

    /// Values up to some counter of each process have counted before this instance.
    pub fn counted_to(&mut self, next: Instance, counted: impl Fn(Process) -> Option<u64>) {
        self.forgotten.upto = next;
        for (place, process) in self.ring.clone().into_iter().enumerate() {
            if let Some(counter) = counted(process) {
                let last = ValueId { process, counter };
                self.carried.forget_to(place, last);
                self.forget_parts(last);
            }
        }
    }

    /// The instance in which the next proposal is expected; 0 if any is.
    pub const fn next(&self) -> Instance {
        self.window.next()
    }

    /// The first instance behind all proposals, those that wait included; 0 if there was none at all.
    pub fn end(&self) -> Instance {
        let held = self.cast.as_ref().and_then(|cast| cast.held.end());
        held.unwrap_or(self.window.next())
    }

    /// Proposals before this place do not come: they are forgotten.
    pub fn jump(&mut self, to: Instance) {
        if to > self.end() {
            self.window.jump(to);
            if let Some(cast) = &mut self.cast {
                cast.held.clear();
            }
        }
    }

    /// Forgets proposals: all acceptors of the ring have voted for those before `low`, a majority for those before
    /// `reached`: a process that lacks a decided value gets it elsewhere.
    pub fn forget(&mut self, low: Instance, reached: Instance) {
        let coordinator = self.ring[self.coordinator];
        let goes_on = self.successor().is_some_and(|next| next != coordinator);
        let sent = self.out.as_ref().map_or(Instance::MAX, |out| out.at);
        let low = if goes_on {
            low.min(sent)
        } else {
            Instance::MAX
        };
        self.window.forget(low, reached);
    }

    /// Forgets names whose values were proposed, where they are first.
    fn clean(&mut self) {
        for queue in [&mut self.own, &mut self.through] {
            queue.clean(&self.carried);
        }
    }
}

impl Stream {
    /// Its invariants.
    pub fn check(&self) {
        let places = self.ring.len();
        assert!(self.me < places, "this process is in it");
        assert!(self.coordinator < places, "so is the coordinator");
        assert!(self.round > 0, "it is of a configuration");
        assert!(
            self.out.is_none() || places > 1,
            "nobody follows who is alone"
        );
        self.window.check();
        self.carried.check();
        self.own.check();
        self.through.check();
        if let Some(cast) = &self.cast {
            cast.check(places);
            assert!(
                self.forgotten.asked.is_none(),
                "nothing that was multicast is asked for along the ring"
            );
        }
    }
}
