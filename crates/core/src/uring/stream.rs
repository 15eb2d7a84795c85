//! What goes along the ring of one configuration: values to the coordinator, its proposals to all, and how far
//! votes go.
//!
//! From the coordinator on, positions in the ring are counted as *distance*: the coordinator has 0, its successor 1. A
//! value goes from its proposer up to the coordinator, a proposal from the coordinator up to its predecessor. Whoever
//! is at the distance of the proposer or beyond has had the value on the first of these ways, and is sent only its
//! name on the second; so a value crosses each link at most once (Multi-Ring Paxos §4, fig. 2).

use alloc::vec::Vec;
use bytes::Bytes;

use super::queue::{Carried, Queue};
use super::successor::Successor;
use super::window::Window;
use super::word::{Follow, Head};
use super::write::Writer;
use crate::contract::{Pieces, Process, Session, Time};
use crate::lcr::Fair;
use crate::mutants::{self, Mutant};
use crate::paxos::{Config, Instance, Round, Value, ValueId, Vote};

/// Whether the predecessor knows from where on to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hail {
    /// It is to be told as soon as there is a link.
    Due,
    /// It was told.
    Said,
    /// What it sent was refused: it is told again at this time.
    At(Time),
}

/// The ring of a configuration, as one of its processes sees it.
#[derive(Debug)]
pub struct Stream {
    /// Of which configuration.
    pub round: Round,
    ring: Vec<Process>,
    me: usize,
    coordinator: usize,
    pub hail: Hail,
    /// Of the last word to the predecessor.
    epoch: u32,
    /// When the predecessor was heard last.
    pub heard: Time,
    /// When the successor was sent something last, or should have been.
    pub spoken: Time,
    /// It is to hear something even if there is nothing to say.
    pub beat: bool,
    out: Option<Successor>,
    window: Window,
    /// What came by and was not proposed yet.
    carried: Carried,
    own: Queue,
    through: Queue,
    fair: Fair,
}

impl Stream {
    /// Of this configuration; `None` if `me` is not in its ring. `window_bytes`: what one process may have under way.
    pub fn new(now: Time, config: &Config, me: Process, window_bytes: usize) -> Option<Self> {
        let most_bytes = 4 * window_bytes * config.ring.len();
        // One window on its way, and one that has counted where it comes from and not here.
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
            spoken: now,
            beat: false,
            out: None,
            window: Window::new(most_bytes),
            carried: Carried::new(config.ring.len(), most_carried),
            own: Queue::default(),
            through: Queue::default(),
            fair: Fair::new(config.ring.len(), me),
        })
    }

    /// To whom it sends; `None` if it is alone.
    pub fn successor(&self) -> Option<Process> {
        let next = (self.me + 1) % self.ring.len();
        (next != self.me).then(|| self.ring[next])
    }

    /// Who sends to it; `None` if it is alone.
    pub fn predecessor(&self) -> Option<Process> {
        let count = self.ring.len();
        let before = (self.me + count - 1) % count;
        (before != self.me).then(|| self.ring[before])
    }

    /// Whether this process coordinates.
    pub fn leads(&self) -> bool {
        self.me == self.coordinator
    }

    fn distance(&self, place: usize) -> usize {
        let count = self.ring.len();
        (place + count - self.coordinator) % count
    }

    fn place(&self, who: Process) -> Option<usize> {
        self.ring.iter().position(|other| *other == who)
    }

    /// Whether the successor has had the values of this process on their way to the coordinator.
    fn successor_has(&self, place: Option<usize>) -> bool {
        let to = self.distance((self.me + 1) % self.ring.len());
        let had = |place| to >= self.distance(place) || mutants::on(Mutant::U06);
        place.is_some_and(|place| place != self.coordinator && had(place))
    }

    /// A link to a neighbour has come up or gone down: both begin again.
    pub fn on_link(&mut self, who: Process) {
        if self.predecessor() == Some(who) {
            self.hail = Hail::Due;
        }
        if self.successor() == Some(who) {
            self.out = None;
        }
    }

    /// What to tell the predecessor now.
    pub fn follow(&mut self) -> Follow {
        self.epoch = self.epoch.wrapping_add(1);
        self.hail = Hail::Said;
        Follow {
            round: self.round,
            epoch: self.epoch,
            next: self.window.next(),
        }
    }

    /// The successor says what it has.
    pub fn on_follow(&mut self, session: Session, follow: Follow, acceptors: usize) {
        let mut out = Successor::new(session, &follow, acceptors);
        if mutants::on(Mutant::U03) {
            out.at = self.window.next();
        }
        self.out = Some(out);
        if !mutants::on(Mutant::U04) {
            self.own.sent = 0;
            self.through.sent = 0;
        }
    }

    /// Whether a batch answers the last [`Follow`].
    pub fn is_current(&self, head: &Head) -> bool {
        let answers = head.epoch == self.epoch || mutants::on(Mutant::U19);
        head.round == self.round && answers && self.hail == Hail::Said
    }

    /// A value goes to the coordinator, if it is a member's and new. `false` if its proposer has more under way than it
    /// may.
    pub fn carry(&mut self, id: ValueId, frame: Bytes) -> bool {
        let place = self.place(id.process);
        let Some(place) = place.filter(|_| self.carried.get(id).is_none()) else {
            return true;
        };
        if place == self.me {
            self.own.ids.push_back(id);
        } else if self.carried.has_room(place) {
            self.fair.on_arrival(place);
            self.through.compact(&self.carried);
            self.through.ids.push_back(id);
        } else {
            return false;
        }
        self.carried.put(place, id, frame);
        true
    }

    /// What is on its way to the coordinator here, in bytes.
    pub fn carried_bytes(&self) -> usize {
        self.carried.bytes()
    }

    fn uncarry(&mut self, id: ValueId) -> Option<(usize, Bytes)> {
        let place = self.place(id.process)?;
        Some((place, self.carried.take(place, id)?))
    }

    /// At the coordinator: the value that is to be proposed next. It stays until it is ([`Self::propose`]), or not
    /// ([`Self::drop_value`]).
    pub fn next_value(&mut self) -> Option<ValueId> {
        self.clean();
        let through = self.through.ids.front().copied();
        let next = through.and_then(|id| self.place(id.process));
        if self.fair.own_first(!self.own.ids.is_empty(), next) {
            return self.own.ids.front().copied();
        }
        through
    }

    /// What came by under this name.
    pub fn take_value(&mut self, id: ValueId) -> Option<Bytes> {
        let (place, frame) = self.uncarry(id)?;
        if self.leads() {
            self.fair.on_served(place, frame.len());
        }
        Some(frame)
    }

    /// A proposal of this round: the next one. It goes on to the successor.
    pub fn propose(&mut self, vote: Vote, whole: bool) {
        // What is proposed again from an earlier round may not count, and is then proposed once more.
        if let (Value::Packet { id, .. }, false) = (&vote.value, whole) {
            self.uncarry(*id);
        }
        self.window.push(vote, whole);
    }

    /// A value counts: it is not proposed any more.
    pub fn counted(&mut self, id: ValueId) {
        if !self.carried.is_empty() {
            self.uncarry(id);
        }
    }

    /// Where the next proposal is expected; 0 if any is.
    pub const fn next(&self) -> Instance {
        self.window.next()
    }

    /// Proposals before this place do not come: somebody has forgotten them.
    pub fn jump(&mut self, to: Instance) {
        if to > self.window.next() {
            self.window.jump(to);
        }
    }

    /// All acceptors of the ring have voted for what is before `low`, a majority for what is before `reached`: who lacks
    /// that gets it elsewhere.
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

    /// The session with the successor, if it has said what it wants.
    pub fn session(&self) -> Option<Session> {
        self.out.as_ref().map(|out| out.session)
    }

    /// The next message to the successor, of at most `room` bytes; with nothing in it only if `force`. `own`: which
    /// votes are the successor's.
    pub fn batch(
        &mut self,
        mut head: Head,
        (voted, learnt): (&[Instance], &[Instance]),
        own: impl Fn(usize) -> bool,
        (room, enough): (usize, usize),
        force: bool,
    ) -> Option<Pieces> {
        let mut out = self.out.take()?;
        out.at = out.at.max(self.window.first());
        head.epoch = out.epoch;
        head.from = out.at;
        let mut batch = Writer::new(&head, room, enough);
        self.put_proposals(&mut batch, &mut out);
        self.put_values(&mut batch);
        for (index, (told, next)) in out.told.iter_mut().zip(voted).enumerate() {
            if *told < *next && !own(index) && batch.takes_vote() {
                batch.voted(index as u8, *next);
                *told = *next;
            }
        }
        let news = head.start > 0 && !out.told_start || head.complete && !out.told_complete;
        out.told_start |= head.start > 0;
        out.told_complete |= head.complete;
        let leaves = !batch.is_empty() || news || force;
        if leaves {
            // Nobody waits for these.
            for (index, (told, next)) in out.told_learnt.iter_mut().zip(learnt).enumerate() {
                if *told < *next && !own(index) && batch.takes_vote() {
                    batch.learnt(index as u8, *next);
                    *told = *next;
                }
            }
        }
        self.out = Some(out);
        leaves.then(|| batch.finish())
    }

    fn put_proposals(&self, batch: &mut Writer, out: &mut Successor) {
        if self.successor() == Some(self.ring[self.coordinator]) {
            return;
        }
        for item in self.window.from(out.at) {
            match &item.vote.value {
                Value::Packet { id, frame } => {
                    let place = self.place(id.process);
                    if !item.whole && self.successor_has(place) {
                        if !batch.takes(0) {
                            return;
                        }
                        batch.proposal(place, *id);
                    } else {
                        if !batch.takes(frame.len()) {
                            return;
                        }
                        batch.packet(place, *id, frame, item.whole);
                    }
                }
                Value::Members(members) => {
                    if !batch.takes(2 + 10 * members.len()) {
                        return;
                    }
                    batch.members(members);
                }
                Value::Skip(count) => {
                    if !batch.takes(0) {
                        return;
                    }
                    batch.skip(*count);
                }
            }
            out.at = item.vote.end();
        }
    }

    fn put_values(&mut self, batch: &mut Writer) {
        if self.leads() {
            return;
        }
        self.clean();
        loop {
            let through = self.through.unsent();
            let own = self.own.unsent();
            let next = through.and_then(|id| self.place(id.process));
            let own_first = self.fair.own_first(own.is_some(), next);
            let Some(id) = (if own_first { own } else { through }) else {
                return;
            };
            let place = self.place(id.process);
            if let Some(frame) = self.carried.get(id) {
                if !batch.takes(frame.len()) {
                    return;
                }
                batch.value(place, id, frame);
                self.fair.on_served(place.unwrap_or(self.me), frame.len());
            }
            let queue = if own_first {
                &mut self.own
            } else {
                &mut self.through
            };
            queue.sent += 1;
        }
    }

    /// Forgets names whose values were proposed, where they are first.
    fn clean(&mut self) {
        for queue in [&mut self.own, &mut self.through] {
            queue.clean(&self.carried);
        }
    }

    /// What was put off until now is due.
    pub fn on_time(&mut self, now: Time, heartbeat: u64) {
        if matches!(self.hail, Hail::At(at) if at <= now) {
            self.hail = Hail::Due;
        }
        if self.out.is_some() && self.spoken.after(heartbeat) <= now {
            self.spoken = now;
            self.beat = true;
        }
    }
}
