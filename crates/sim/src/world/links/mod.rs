//! Reliable links between processes, as TCP and `rota-net` make them.
//!
//! A link is up between two live processes that reach each other. Its sessions have ascending numbers; in one of them
//! messages arrive whole, once and in order, with a bounded queue. It goes down when one of the two dies, when they
//! have not reached each other for a while, or by chance; its two ends get to know of that, and of a new session, at
//! different times. A first part of the messages under way still arrives in the old session, and the rest never.
//!
//! Links do not lose, repeat or reorder anything within a session, and do not say who is alive.

mod drive;
mod end;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use rota_core::contract::Process;

use super::queue::{LinkStep, Queue, What};
use crate::plan::{LinksPlan, MICROS, MILLIS};
use crate::rng::Rng;
use end::End;
pub use end::Told;

/// The counts of links.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LinkTally {
    /// Sessions that began.
    pub sessions: u64,
    /// Sessions that ended though both processes lived.
    pub breaks: u64,
    /// Messages that were under way in a session that ended, and never arrived.
    pub lost: u64,
}

/// Two hosts that a link may be between, when it is looked after.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The lower and the higher.
    pub hosts: [usize; 2],
    /// Their processes, if both live and run.
    pub processes: Option<[Process; 2]>,
    /// They do not reach each other, in one direction at least.
    pub cut: bool,
    /// Links still break by chance.
    pub fragile: bool,
}

/// All links.
#[derive(Debug)]
pub struct Links {
    hosts: usize,
    plan: LinksPlan,
    rng: Rng,
    /// By the host that it is at, and the other host.
    ends: Vec<End>,
    /// By the lower and the higher host: the last session between them.
    last: Vec<u64>,
    pub tally: LinkTally,
}

impl Links {
    pub fn new(plan: LinksPlan, hosts: usize, seed: u64) -> Self {
        Self {
            hosts,
            plan,
            rng: Rng::split(seed, 12),
            ends: (0..hosts * hosts).map(|_| End::default()).collect(),
            last: vec![0; hosts * hosts],
            tally: LinkTally::default(),
        }
    }

    /// Begins to look after each pair of hosts.
    pub fn begin(&mut self, queue: &mut Queue) {
        for low in 0..self.hosts {
            for high in low + 1..self.hosts {
                let at = self.rng.below(self.plan.retry.max(1));
                self.later(queue, at, (low, high), LinkStep::Tend);
            }
        }
    }

    const fn way(&self, at: usize, peer: usize) -> usize {
        at * self.hosts + peer
    }

    fn end(&mut self, at: usize, peer: usize) -> &mut End {
        let way = self.way(at, peer);
        &mut self.ends[way]
    }

    /// The hosts of a way.
    pub const fn hosts_of(&self, way: u16) -> (usize, usize) {
        (way as usize / self.hosts, way as usize % self.hosts)
    }

    fn later(&self, queue: &mut Queue, time: u64, (at, peer): (usize, usize), step: LinkStep) {
        let way = self.way(at, peer) as u16;
        queue.push(time, What::Link { way, step });
    }

    /// Both ends have one session, and neither has noticed an end of it.
    fn is_whole(&self, [low, high]: [usize; 2]) -> bool {
        let (one, other) = (
            &self.ends[self.way(low, high)],
            &self.ends[self.way(high, low)],
        );
        let opening = other.opening.map(|(session, _)| session);
        one.live().is_some() && (one.live() == other.live() || one.live() == opening)
    }

    /// Looks after a link: it breaks, or begins.
    pub fn tend(&mut self, queue: &mut Queue, now: u64, pair: &Pair) {
        let [low, high] = pair.hosts;
        if self.is_whole(pair.hosts) {
            let patience = self.plan.patience;
            let end = self.end(low, high);
            let since = *end.silent_since.get_or_insert(now);
            if !pair.cut {
                end.silent_since = None;
            }
            let given_up = pair.cut && now - since > patience;
            if given_up || pair.fragile && self.rng.ppm(self.plan.breaks) {
                self.tally.breaks += 1;
                self.snap(queue, now, pair.hosts);
            }
        } else {
            if let Some(processes) = pair.processes.filter(|_| !pair.cut) {
                self.connect(queue, now, pair.hosts, processes);
            }
            // An end whose other end is gone without a word asks in vain.
            for (at, peer) in [(low, high), (high, low)] {
                let whole = self.is_whole(pair.hosts);
                let patience = self.plan.patience;
                let end = self.end(at, peer);
                if whole || end.live().is_none() {
                    end.silent_since = None;
                } else if now - *end.silent_since.get_or_insert(now) > patience {
                    self.hang_up(queue, now, (at, peer));
                }
            }
        }
        let next = now + self.rng.range(self.plan.retry / 2, self.plan.retry * 2);
        self.later(queue, next, (low, high), LinkStep::Tend);
    }

    /// A session begins: the lower connects, and is the first to know.
    fn connect(
        &mut self,
        queue: &mut Queue,
        now: u64,
        [low, high]: [usize; 2],
        processes: [Process; 2],
    ) {
        let pair = self.way(low, high);
        self.last[pair] += 1;
        self.tally.sessions += 1;
        let (session, room) = (self.last[pair], self.plan.queue_bytes);
        let opens = now + self.rng.spread(10 * MICROS, 5 * MILLIS);
        let one = self.end(low, high);
        one.open(session, processes[1], room);
        // Nothing overtakes what tells the other that it is up.
        one.last = opens;
        self.end(high, low).opening = Some((session, processes[0]));
        self.later(queue, opens, (high, low), LinkStep::Open);
    }

    /// The higher end gets to know of a session.
    pub fn open(&mut self, at: usize, peer: usize) {
        let room = self.plan.queue_bytes;
        let end = self.end(at, peer);
        if let Some((session, process)) = end.opening.take() {
            end.open(session, process, room);
        }
    }

    /// A session ends though both processes live.
    fn snap(&mut self, queue: &mut Queue, now: u64, [low, high]: [usize; 2]) {
        for (at, peer) in [(low, high), (high, low)] {
            self.end_flight((at, peer), true);
        }
        for (at, peer) in [(low, high), (high, low)] {
            self.hang_up(queue, now, (at, peer));
        }
    }

    /// Of what is under way a first part still arrives, or nothing.
    fn end_flight(&mut self, (at, peer): (usize, usize), any: bool) {
        let session = self.end(at, peer).session;
        let flight = std::mem::take(&mut self.end(at, peer).flight);
        let arrives = if any {
            self.rng.index(flight.len() + 1)
        } else {
            0
        };
        self.tally.lost += (flight.len() - arrives) as u64;
        let other = self.end(peer, at);
        if session.is_some() && other.live() == session {
            for (_, bytes) in flight.into_iter().take(arrives) {
                other.tell(Told::Message(bytes));
            }
        }
    }

    /// An end is about to notice that its session is over.
    fn hang_up(&mut self, queue: &mut Queue, now: u64, (at, peer): (usize, usize)) {
        let closes = now + self.rng.spread(10 * MICROS, 5 * MILLIS);
        let end = self.end(at, peer);
        end.opening = None;
        if end.live().is_some() {
            end.closes = Some(closes);
            self.later(queue, closes, (at, peer), LinkStep::Close);
        }
    }

    /// An end notices that its session is over, unless another has begun since.
    pub fn close(&mut self, now: u64, at: usize, peer: usize) {
        let end = self.end(at, peer);
        if end.closes.is_some_and(|closes| closes <= now) {
            end.close();
        }
    }

    /// The process of a host has died. Others notice soon, unless its machine is gone as well.
    pub fn lost(&mut self, queue: &mut Queue, now: u64, at: usize, machine_too: bool) {
        for peer in (0..self.hosts).filter(|&peer| peer != at) {
            self.end_flight((at, peer), !machine_too);
            self.end_flight((peer, at), false);
            *self.end(at, peer) = End::default();
            self.end(peer, at).opening = None;
            if !machine_too {
                self.hang_up(queue, now, (peer, at));
            }
        }
    }

    /// A process sends a message, whose first byte takes `delay`. In a session that has ended it sends nothing.
    ///
    /// # Errors
    /// There is only so much room.
    pub fn send(
        &mut self,
        queue: &mut Queue,
        now: u64,
        (at, peer): (usize, usize),
        (session, bytes): (u64, Bytes),
        delay: u64,
    ) -> Result<(), usize> {
        let byte_nanos = self.plan.byte_nanos;
        let end = self.end(at, peer);
        if end.session != Some(session) {
            return Ok(());
        }
        let length = bytes.len();
        if length > end.granted {
            return Err(end.granted);
        }
        end.granted -= length;
        end.unread += length;
        if end.closes.is_some() {
            self.tally.lost += 1;
            return Ok(());
        }
        let arrives = end.last.max(now + delay) + length as u64 * byte_nanos;
        end.last = arrives;
        end.flight.push_back((arrives, bytes));
        if end.flight.len() == 1 {
            self.later(queue, arrives, (at, peer), LinkStep::Move);
        }
        Ok(())
    }

    /// Lets messages from one host to another arrive whose time has come. Whether any did.
    pub fn carry(&mut self, queue: &mut Queue, now: u64, way: (usize, usize), cut: bool) -> bool {
        let (at, peer) = way;
        let again = now + self.rng.spread(100 * MICROS, 50 * MILLIS);
        let end = self.end(at, peer);
        let Some(due) = end.flight.front().map(|(due, _)| *due) else {
            return false;
        };
        if due > now {
            // The message of this event has been lost with its session.
            return false;
        }
        let session = end.live();
        let arrived = if cut {
            if let Some(first) = end.flight.front_mut() {
                first.0 = again;
            }
            Vec::new()
        } else {
            let mut arrived = Vec::new();
            while let Some((_, bytes)) = end.flight.pop_front_if(|(due, _)| *due <= now) {
                arrived.push(bytes);
            }
            arrived
        };
        let next = end.flight.front().map(|(due, _)| *due);
        if let Some(next) = next {
            self.later(queue, next, way, LinkStep::Move);
        }
        let other = self.end(peer, at);
        let any = !arrived.is_empty() && session.is_some() && other.live() == session;
        if any {
            for bytes in arrived {
                other.tell(Told::Message(bytes));
            }
        }
        any
    }

    /// The next thing that a process is told: of which host, of which session, what; and how many bytes it may send,
    /// if that is it.
    pub fn next(&mut self, at: usize) -> Option<(usize, u64, Told, usize)> {
        let row = at * self.hosts..(at + 1) * self.hosts;
        let waiting = |end: &End| !end.inbox.is_empty();
        let count = self.ends[row.clone()]
            .iter()
            .filter(|end| waiting(end))
            .count();
        if count == 0 {
            return None;
        }
        let nth = self.rng.index(count);
        let mut places = row.filter(|&place| waiting(&self.ends[place]));
        let peer = places.nth(nth)? % self.hosts;
        let queue_bytes = self.plan.queue_bytes;
        let end = self.end(at, peer);
        let (session, told) = end.inbox.pop_front()?;
        let mut room = 0;
        match &told {
            Told::Message(bytes) => {
                let length = bytes.len();
                let other = self.end(peer, at);
                if other.session == Some(session) {
                    other.unread = other.unread.saturating_sub(length);
                    other.tell_room(queue_bytes);
                }
            }
            Told::Room => {
                room = queue_bytes.saturating_sub(end.unread);
                if end.session == Some(session) {
                    end.granted = room;
                }
            }
            Told::Up(_) | Told::Down => {}
        }
        Some((peer, session, told, room))
    }
}
