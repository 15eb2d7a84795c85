//! What goes along the ring of one configuration: values to the coordinator, its proposals to all, and how far
//! votes go.
//!
//! From the coordinator on, positions in the ring are counted as *distance*: the coordinator has 0, its successor 1. A
//! value goes from its proposer up to the coordinator, a proposal from the coordinator up to its predecessor. Whoever
//! is at the distance of the proposer or beyond has had the value on the first of these ways, and is sent only its
//! name on the second; so a value crosses each link at most once (Multi-Ring Paxos §4, fig. 2).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::window::Window;
use super::word::{Follow, Head};
use super::write::Writer;
use crate::contract::{Pieces, Process, Session, Time};
use crate::lcr::Fair;
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

/// What the successor wants.
#[derive(Clone, Debug)]
struct Out {
    session: Session,
    epoch: u32,
    /// The next proposal to send.
    at: Instance,
    /// By acceptor: the last that was told of its votes.
    told: Vec<Instance>,
    /// Likewise of what it has learnt.
    told_learnt: Vec<Instance>,
    told_start: bool,
    told_complete: bool,
}

/// Values on their way to the coordinator, in order.
#[derive(Debug, Default)]
struct Queue {
    ids: VecDeque<ValueId>,
    /// So many were sent in this session.
    sent: usize,
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
    out: Option<Out>,
    window: Window,
    /// What came by and was not proposed yet.
    carried: BTreeMap<ValueId, Bytes>,
    own: Queue,
    through: Queue,
    fair: Fair,
}

impl Stream {
    /// Of this configuration; `None` if `me` is not in its ring.
    pub fn new(now: Time, config: &Config, me: Process, most_bytes: usize) -> Option<Self> {
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
            carried: BTreeMap::new(),
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
        place.is_some_and(|place| place != self.coordinator && to >= self.distance(place))
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
        self.out = Some(Out {
            session,
            epoch: follow.epoch,
            at: follow.next,
            told: vec![0; acceptors],
            told_learnt: vec![0; acceptors],
            told_start: false,
            told_complete: false,
        });
        self.own.sent = 0;
        self.through.sent = 0;
    }

    /// Whether a batch answers the last [`Follow`].
    pub fn is_current(&self, head: &Head) -> bool {
        head.round == self.round && head.epoch == self.epoch && self.hail == Hail::Said
    }

    /// A value goes to the coordinator. `false` if it is known, or not a member's.
    pub fn carry(&mut self, id: ValueId, frame: Bytes) -> bool {
        let Some(place) = self.place(id.process) else {
            return false;
        };
        if self.carried.contains_key(&id) {
            return false;
        }
        self.carried.insert(id, frame);
        if place == self.me {
            self.own.ids.push_back(id);
        } else {
            self.fair.on_arrival(place);
            self.through.ids.push_back(id);
        }
        true
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
        let frame = self.carried.remove(&id)?;
        if self.leads()
            && let Some(place) = self.place(id.process)
        {
            self.fair.on_served(place, frame.len());
        }
        Some(frame)
    }

    /// A proposal of this round: the next one. It goes on to the successor.
    pub fn propose(&mut self, vote: Vote, whole: bool) {
        // What is proposed again from an earlier round may not count, and is then proposed once more.
        if let (Value::Packet { id, .. }, false) = (&vote.value, whole) {
            self.carried.remove(id);
        }
        self.window.push(vote, whole);
    }

    /// A value counts: it is not proposed any more.
    pub fn counted(&mut self, id: ValueId) {
        if !self.carried.is_empty() {
            self.carried.remove(&id);
        }
    }

    /// Where the next proposal is expected; 0 if any is.
    pub const fn next(&self) -> Instance {
        self.window.next()
    }

    /// Proposals before this place do not come: somebody has forgotten them.
    pub fn jump(&mut self, to: Instance) {
        self.window.jump(to);
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

    fn put_proposals(&self, batch: &mut Writer, out: &mut Out) {
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
            if let Some(frame) = self.carried.get(&id) {
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
            let carried = &self.carried;
            let gone = |id: &mut ValueId| !carried.contains_key(id);
            while queue.ids.pop_front_if(gone).is_some() {
                queue.sent = queue.sent.saturating_sub(1);
            }
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

impl Queue {
    fn unsent(&self) -> Option<ValueId> {
        self.ids.get(self.sent).copied()
    }
}
