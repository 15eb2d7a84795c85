//! The control datagrams of a member: fig. 2's `ACK`s (l. 19 and 24), many in one datagram.
//!
//! With nothing going on they leave at once: the leader's as soon as a flight of packets is complete, the others' as
//! soon as they know the places of the packets they have. Under load one datagram speaks for many packets, so that
//! acknowledgements do not grow with the square of the members: each member may send one in a time that grows with
//! their number, or when it speaks for so many packets that its share of the network is small.

use alloc::vec::Vec;

use super::FastCounters;
use super::gate::Gate;
use super::in_view::InView;
use crate::fastcast::{FastControl, FastPlaces, FastRequest, FastRun};
use rota_core::burst::BurstBuilder;
use rota_core::contract::{Burst, Channel, Class, Output, Seq, Target, Time};
use rota_core::mutants::{self, Mutant};

/// The nanoseconds between two control datagrams of a member under load, for each member: the datagrams of all take one
/// or two percent of a link of 1 Gbit/s.
const SPACING_NANOS: u64 = 100_000;

/// Packets that a control datagram speaks for, for each member, so that it need not wait.
const PACKETS: u64 = 14;

/// The state that was told, and the reasons for the next control datagram.
#[derive(Clone, Debug)]
pub(super) struct ControlState {
    acked: Seq,
    delivered: Seq,
    /// The leader has told the places up to here.
    announced: Seq,
    last: Option<Time>,
    news_since: Option<Time>,
    /// Whether no packets are known to follow at once.
    pub flight_over: bool,
    /// The members that wait for an answer, bit by bit.
    pub answer: u128,
    /// The members that are asked, bit by bit, by a repeated datagram.
    pub ask: u128,
    /// The requests to be sent.
    pub requests: Vec<FastRequest>,
    /// For each member, the last of its requests for bandwidth that was applied here.
    pub applied: Vec<u64>,
    /// Whether `applied` is new.
    pub applied_news: bool,
    /// The first place that another member requested of this one.
    pub places_from: Option<Seq>,
}

impl ControlState {
    pub const fn new(_now: Time) -> Self {
        Self {
            acked: 0,
            delivered: 0,
            announced: 0,
            last: None,
            news_since: None,
            flight_over: true,
            answer: 0,
            ask: 0,
            requests: Vec::new(),
            applied: Vec::new(),
            applied_news: false,
            places_from: None,
        }
    }

    /// Notes that there is news for the others.
    pub fn on_news(&mut self, now: Time) {
        self.news_since.get_or_insert(now);
    }

    /// Whether a control datagram has to leave, with or without news.
    const fn is_urgent(&self) -> bool {
        let wanted = self.ask != 0 || !self.requests.is_empty() || self.places_from.is_some();
        wanted || self.applied_news
    }
}

impl InView {
    /// Members that each control datagram makes up for: twice as many while packets wait for the rate, as it then leaves
    /// with them.
    fn share(&self) -> u64 {
        let members = self.members() as u64;
        if self.own.held { 2 * members } else { members }
    }

    fn spacing(&self) -> u64 {
        SPACING_NANOS * self.share()
    }

    fn has_news(&self) -> bool {
        let telling = &self.telling;
        let quarter = u64::from(self.config.window / 4).max(1);
        self.acked > telling.acked
            || (self.is_leader() && self.order.aru() > telling.announced)
            || self.order.discarded() >= telling.delivered + quarter
    }

    /// The time of the next control datagram, if one is due.
    pub fn control_due_at(&self) -> Option<Time> {
        if self.members() == 1 {
            return None;
        }
        let telling = &self.telling;
        if telling.is_urgent() || telling.answer != 0 {
            return Some(Time(0));
        }
        if !self.has_news() {
            return None;
        }
        if self.acked - telling.acked >= PACKETS * self.share() {
            return Some(Time(0));
        }
        let spacing = self.spacing();
        let due = telling.last.map_or(Time(0), |last| last.after(spacing));
        let complete = match telling.news_since {
            Some(since) if !telling.flight_over => since.after(spacing),
            _ => Time(0),
        };
        Some(due.max(complete))
    }

    /// The approximate number of bytes that [`Self::ride`] would add to a burst.
    pub fn bytes_to_ride(&self) -> usize {
        if self.members() == 1 || !self.has_something_to_say() {
            return 0;
        }
        FastControl::bare_len(self.members(), self.config.seal_bytes)
            + FastControl::RUNS * FastControl::RUN_BYTES
    }

    fn has_something_to_say(&self) -> bool {
        self.has_news() || self.telling.is_urgent()
    }

    /// The control datagram that leaves with a burst of packets, if there is anything to say and it
    /// fits: half the usual time after the one before, as it costs less there.
    pub fn ride(&mut self, now: Time, burst: &mut BurstBuilder, counters: &mut FastCounters) {
        if self.members() == 1 || !self.has_something_to_say() {
            return;
        }
        let half = SPACING_NANOS * self.members() as u64 / 2;
        let lately = self.telling.last.is_some_and(|last| now < last.after(half));
        let due = self.control_due_at().is_some_and(|due| now >= due);
        if lately && !due {
            return;
        }
        let seal_bytes = self.config.seal_bytes;
        let least = FastControl::bare_len(self.members(), seal_bytes);
        let Some(room) = burst.room_for_shorter(least) else {
            return;
        };
        let control = self.compose(now, room);
        let len = control.encoded_len(seal_bytes);
        burst.push_with(len, 1, |out| control.encode_into(out, seal_bytes));
        Self::count_control(counters, true);
    }

    /// The control datagram that leaves alone, if it is time.
    pub fn send_control(&mut self, now: Time, gate: &mut Gate, counters: &mut FastCounters) {
        if self.control_due_at().is_none_or(|due| now < due) {
            return;
        }
        let to = self.control_target();
        if mutants::on(Mutant::F02) && !self.has_news() && self.telling.requests.is_empty() {
            (self.telling.ask, self.telling.answer) = (0, 0);
            self.telling.places_from = None;
            return;
        }
        let control = self.compose(now, self.config.datagram_bytes);
        let seal_bytes = self.config.seal_bytes;
        let mut bytes = Vec::with_capacity(control.encoded_len(seal_bytes));
        control.encode_into(&mut bytes, seal_bytes);
        Self::count_control(counters, false);
        gate.owe(now, bytes.len());
        let class = match to {
            Target::Others => self.config.control,
            Target::Node(_) => Class::Token,
        };
        self.outputs
            .push_back(send(class, to, Burst::single(bytes)));
    }

    /// The receivers of a control datagram: all, or one member for an answer that only that one has asked for.
    fn control_target(&self) -> Target {
        let answer = self.telling.answer;
        let telling = &self.telling;
        let asks = telling.ask != 0 || !telling.requests.is_empty();
        if asks || telling.applied_news || self.has_news() || answer.count_ones() != 1 {
            return Target::Others;
        }
        let one = answer.trailing_zeros() as usize;
        Target::Node(self.view.members[one].node)
    }

    /// The next control datagram, of at most `room` bytes where that is possible.
    fn compose(&mut self, now: Time, room: usize) -> FastControl {
        let seal_bytes = self.config.seal_bytes;
        let again = self.telling.ask != 0 || self.telling.answer != 0;
        let applied = if again || self.telling.applied_news {
            self.telling.applied.clone()
        } else {
            Vec::new()
        };
        let fixed = FastControl::bare_len(self.members(), seal_bytes) + 8 * applied.len();
        let room = room.saturating_sub(fixed);
        // A few runs always find room.
        let for_runs = FastControl::RUNS * FastControl::RUN_BYTES;
        let most = room.saturating_sub(for_runs) / FastControl::REQUEST_BYTES;
        let mut requests = core::mem::take(&mut self.telling.requests);
        requests.truncate(most.max(1));
        let room = room.saturating_sub(requests.len() * FastControl::REQUEST_BYTES);
        let runs = (room / FastControl::RUN_BYTES).max(FastControl::RUNS);
        let (first, runs) = self.places_to_tell(again, runs);
        let head = &self.view.members[self.me()];
        let control = FastControl {
            cluster: self.config.cluster,
            ring: self.view.ring,
            sender: head.node,
            acked: self.acked_to_tell(),
            delivered: self.order.discarded().min(self.acked),
            ask: self.telling.ask,
            have: self
                .streams
                .iter()
                .map(|stream| stream.packets.aru())
                .collect(),
            first,
            runs,
            requests,
            applied,
        };
        self.told(now, &control);
        control
    }

    fn acked_to_tell(&self) -> Seq {
        if mutants::on(Mutant::F03) && self.unplaced == 0 {
            // As if packets alone were enough.
            return self.top;
        }
        self.acked
    }

    fn told(&mut self, now: Time, control: &FastControl) {
        let leader = self.is_leader();
        let telling = &mut self.telling;
        telling.acked = self.acked;
        telling.delivered = control.delivered;
        if let Some(last) = control.last().filter(|_| leader) {
            telling.announced = telling.announced.max(last);
            self.patience.begin(now, last);
        }
        telling.last = Some(now);
        telling.news_since = None;
        telling.applied_news = false;
        (telling.ask, telling.answer, telling.places_from) = (0, 0, None);
    }

    /// Whether the leader has told all places up to `seq`.
    pub const fn has_told(&self, seq: Seq) -> bool {
        self.telling.announced >= seq
    }

    /// Notes places that left with their packets. A member that learns them learns that this one, which gives places
    /// only to packets it has, acknowledges all up to there.
    pub fn told_places(&mut self, now: Time, places: FastPlaces) {
        self.telling.announced = places.last();
        self.telling.acked = self.acked;
        self.telling.news_since = None;
        self.patience.begin(now, places.last());
    }

    /// The places that go into a control datagram: of the leader those it has not told, or, when it repeats itself, all
    /// that not all members have acknowledged; and those that another member has requested.
    fn places_to_tell(&self, again: bool, most: usize) -> (Seq, Vec<FastRun>) {
        let announced = if again {
            self.acks.ready()
        } else {
            self.telling.announced
        };
        let own = self.is_leader().then_some(announced + 1);
        let wanted = self.telling.places_from;
        let first = match (own, wanted) {
            (Some(own), Some(wanted)) => own.min(wanted),
            (one, other) => one.or(other).unwrap_or(0),
        };
        let first = first.max(self.order.discarded() + 1);
        let mut runs: Vec<FastRun> = Vec::new();
        for seq in first..=self.order.aru() {
            if own.is_none() && wanted.is_none() {
                break;
            }
            let Some(&sender) = self.order.get(seq) else {
                break;
            };
            let sender = self.mistaken(sender, again);
            if let Some(run) = runs.last_mut()
                && run.sender == sender
                && run.count < u16::MAX
            {
                run.count += 1;
                continue;
            }
            if runs.len() == most {
                break;
            }
            runs.push(FastRun { sender, count: 1 });
        }
        (first, runs)
    }

    /// The sender that the leader names for a place: always the same.
    fn mistaken(&self, sender: u16, again: bool) -> u16 {
        if mutants::on(Mutant::F04) && again {
            return (sender + 1) % self.members() as u16;
        }
        sender
    }
}

/// Datagrams for others.
pub(super) const fn send(class: Class, to: Target, burst: Burst) -> Output {
    Output::Send {
        class,
        channel: Channel(0),
        to,
        burst,
        after: None,
        pace: None,
    }
}
