//! The control datagrams of a member: fig. 2's `ACK`s (l. 19 and 24), many in one datagram.
//!
//! With nothing going on they leave at once: the leader's as soon as a flight of packets is complete, the others' as
//! soon as they know the places of the packets they have. Under load one datagram speaks for many packets, so that
//! acknowledgements do not grow with the square of the members: each member may send one in a time that grows with
//! their number, or when it speaks for so many packets that its share of the network is small.

use alloc::vec::Vec;

use super::FastCounters;
use super::in_view::Facts;
use super::patience::RoundTrip;
use crate::fastcast::{FastControl, FastPlaces, FastRequest, FastRun};
use rota_core::buffer::Buffer;
use rota_core::burst::BurstBuilder;
use rota_core::contract::{Burst, Channel, Class, Output, Seq, Target, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::RequestRange;

/// The nanoseconds between two control datagrams of a member under load, for each member: the datagrams of all take one
/// or two percent of a link of 1 Gbit/s.
const SPACING_NANOS: u64 = 100_000;

/// Packets that a control datagram speaks for, for each member, so that it need not wait.
const PACKETS: u64 = 14;

/// The state that was told, and the reasons for the next control datagram.
#[derive(Debug)]
pub(super) struct ControlState {
    acked: Seq,
    delivered: Seq,
    /// The leader has told the places up to here.
    announced: Seq,
    last: Option<Time>,
    news_since: Option<Time>,
    /// Whether no packets are known to follow at once.
    flight_over: bool,
    /// The members that wait for an answer, bit by bit.
    answer: u128,
    /// The members that are asked, bit by bit, by a repeated datagram.
    ask: u128,
    /// The requests to be sent.
    requests: Vec<FastRequest>,
    /// For each member, the last of its requests for bandwidth that was applied here.
    applied: Vec<u64>,
    /// Whether `applied` is new.
    applied_news: bool,
    /// The first place that another member requested of this one.
    places_from: Option<Seq>,
}

/// What happens.
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

    /// There is news for the others.
    pub fn on_news(&mut self, now: Time) {
        self.news_since.get_or_insert(now);
    }

    /// Its invariants, at a member that has acknowledged and delivered so much.
    pub fn check(&self, (acked, delivered): (Seq, Seq)) {
        assert!(
            self.acked <= acked && self.delivered <= delivered,
            "no more is told than is so"
        );
    }

    /// A packet has come or left; `over`: none is known to follow at once.
    pub const fn on_flight(&mut self, over: bool) {
        self.flight_over = over;
    }

    /// A member asks for an answer.
    pub const fn on_asked(&mut self, from: u16) {
        self.answer |= 1 << from;
    }

    /// A member requests places from this one on.
    pub fn on_places_wanted(&mut self, from: u16, first: Seq) {
        self.on_asked(from);
        self.places_from = Some(self.places_from.unwrap_or(first).min(first));
    }

    /// These members are asked for an answer, bit by bit.
    pub const fn ask(&mut self, members: u128) {
        self.ask |= members;
    }

    /// A member is asked for packets of `of`, or for places.
    pub fn request(&mut self, to: usize, of: Option<u16>, ranges: &[RequestRange]) {
        self.requests.extend(ranges.iter().map(|range| FastRequest {
            to: to as u16,
            of,
            first: range.first,
            count: range.count,
        }));
    }

    /// These requests for bandwidth were applied here, by member.
    pub fn on_applied(&mut self, applied: &[u64]) {
        self.applied = applied.to_vec();
        self.applied_news = true;
    }

    /// Whether the leader has told all places up to `seq`.
    pub const fn has_told(&self, seq: Seq) -> bool {
        self.announced >= seq
    }

    /// These places left with their packets. A member that learns them learns that this one, which gives places only to
    /// packets it has, acknowledges all up to there.
    pub const fn told_places(&mut self, acked: Seq, places: FastPlaces) {
        self.announced = places.last();
        self.acked = acked;
        self.news_since = None;
    }

    fn told(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        control: &FastControl,
        patience: &mut RoundTrip,
    ) {
        self.acked = facts.known.acked();
        self.delivered = control.delivered;
        if let Some(last) = control.last().filter(|_| facts.is_leader()) {
            self.announced = self.announced.max(last);
            patience.begin(now, last);
        }
        self.last = Some(now);
        self.news_since = None;
        self.applied_news = false;
        (self.ask, self.answer, self.places_from) = (0, 0, None);
    }
}

/// What is due, and when.
impl ControlState {
    /// Whether a control datagram has to leave, with or without news.
    const fn is_urgent(&self) -> bool {
        let wanted = self.ask != 0 || !self.requests.is_empty() || self.places_from.is_some();
        wanted || self.applied_news
    }

    fn has_news(&self, facts: &Facts<'_>) -> bool {
        let order = facts.known.order();
        facts.known.acked() > self.acked
            || (facts.is_leader() && order.aru() > self.announced)
            || order.discarded() >= self.delivered + facts.own.quarter()
    }

    fn has_something_to_say(&self, facts: &Facts<'_>) -> bool {
        self.has_news(facts) || self.is_urgent()
    }

    /// The time of the next control datagram, if one is due.
    pub fn control_due_at(&self, facts: &Facts<'_>) -> Option<Time> {
        if facts.members() == 1 {
            return None;
        }
        if self.is_urgent() || self.answer != 0 {
            return Some(Time(0));
        }
        if !self.has_news(facts) {
            return None;
        }
        if facts.known.acked() - self.acked >= PACKETS * share(facts) {
            return Some(Time(0));
        }
        let spacing = SPACING_NANOS * share(facts);
        let due = self.last.map_or(Time(0), |last| last.after(spacing));
        let complete = match self.news_since {
            Some(since) if !self.flight_over => since.after(spacing),
            _ => Time(0),
        };
        Some(due.max(complete))
    }

    /// The approximate number of bytes that [`Self::ride`] would add to a burst.
    pub fn bytes_to_ride(&self, facts: &Facts<'_>) -> usize {
        if facts.members() == 1 || !self.has_something_to_say(facts) {
            return 0;
        }
        FastControl::bare_len(facts.members(), facts.config.seal_bytes)
            + FastControl::RUNS * FastControl::RUN_BYTES
    }
}

/// Control datagrams.
impl ControlState {
    /// The control datagram that leaves with a burst of packets, if there is anything to say and it
    /// fits: half the usual time after the one before, as it costs less there.
    pub fn ride(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        (burst, patience): (&mut BurstBuilder, &mut RoundTrip),
        counters: &mut FastCounters,
    ) {
        if facts.members() == 1 || !self.has_something_to_say(facts) {
            return;
        }
        let half = SPACING_NANOS * facts.members() as u64 / 2;
        let lately = self.last.is_some_and(|last| now < last.after(half));
        let due = self.control_due_at(facts).is_some_and(|due| now >= due);
        if lately && !due {
            return;
        }
        let seal_bytes = facts.config.seal_bytes;
        let least = FastControl::bare_len(facts.members(), seal_bytes);
        let Some(room) = burst.room_for_shorter(least) else {
            return;
        };
        let control = self.compose(now, facts, room, patience);
        let len = control.encoded_len(seal_bytes);
        burst.push_with(len, 1, |out| control.encode_into(out, seal_bytes));
        counters.fast_controls_riding += 1;
    }

    /// The control datagram that leaves alone, if it is time, and its bytes.
    pub fn send_control(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        patience: &mut RoundTrip,
        counters: &mut FastCounters,
    ) -> Option<(Output, usize)> {
        self.control_due_at(facts).filter(|due| now >= *due)?;
        let to = self.control_target(facts);
        if mutants::on(Mutant::F02) && !self.has_news(facts) && self.requests.is_empty() {
            (self.ask, self.answer) = (0, 0);
            self.places_from = None;
            return None;
        }
        let control = self.compose(now, facts, facts.config.datagram_bytes, patience);
        let seal_bytes = facts.config.seal_bytes;
        let mut bytes = Vec::with_capacity(control.encoded_len(seal_bytes));
        control.encode_into(&mut bytes, seal_bytes);
        counters.fast_controls_alone += 1;
        let class = match to {
            Target::Others => facts.config.control,
            Target::Node(_) => Class::Token,
        };
        let len = bytes.len();
        Some((send(class, to, Burst::single(bytes)), len))
    }

    /// The receivers of a control datagram: all, or one member for an answer that only that one has asked for.
    fn control_target(&self, facts: &Facts<'_>) -> Target {
        let asks = self.ask != 0 || !self.requests.is_empty();
        if asks || self.applied_news || self.has_news(facts) || self.answer.count_ones() != 1 {
            return Target::Others;
        }
        let one = self.answer.trailing_zeros() as usize;
        Target::Node(facts.view.members[one].node)
    }

    /// The next control datagram, of at most `room` bytes where that is possible.
    fn compose(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        room: usize,
        patience: &mut RoundTrip,
    ) -> FastControl {
        let seal_bytes = facts.config.seal_bytes;
        let again = self.ask != 0 || self.answer != 0;
        let applied = if again || self.applied_news {
            self.applied.clone()
        } else {
            Vec::new()
        };
        let fixed = FastControl::bare_len(facts.members(), seal_bytes) + 8 * applied.len();
        let room = room.saturating_sub(fixed);
        // A few runs always find room.
        let for_runs = FastControl::RUNS * FastControl::RUN_BYTES;
        let most = room.saturating_sub(for_runs) / FastControl::REQUEST_BYTES;
        let mut requests = core::mem::take(&mut self.requests);
        requests.truncate(most.max(1));
        let room = room.saturating_sub(requests.len() * FastControl::REQUEST_BYTES);
        let runs = (room / FastControl::RUN_BYTES).max(FastControl::RUNS);
        let (first, runs) = self.places_to_tell(facts, again, runs);
        let known = facts.known;
        let control = FastControl {
            cluster: facts.config.cluster,
            ring: facts.view.ring,
            sender: facts.view.members[facts.me()].node,
            acked: acked_to_tell(facts),
            delivered: known.order().discarded().min(known.acked()),
            ask: self.ask,
            have: known.all_packets().map(Buffer::aru).collect(),
            first,
            runs,
            requests,
            applied,
        };
        self.told(now, facts, &control, patience);
        control
    }

    /// The places that go into a control datagram: of the leader those it has not told, or, when it repeats itself, all
    /// that not all members have acknowledged; and those that another member has requested.
    fn places_to_tell(&self, facts: &Facts<'_>, again: bool, most: usize) -> (Seq, Vec<FastRun>) {
        let order = facts.known.order();
        let announced = if again {
            facts.acks.ready()
        } else {
            self.announced
        };
        let own = facts.is_leader().then_some(announced + 1);
        let wanted = self.places_from;
        let first = match (own, wanted) {
            (Some(own), Some(wanted)) => own.min(wanted),
            (one, other) => one.or(other).unwrap_or(0),
        };
        let first = first.max(order.discarded() + 1);
        let mut runs: Vec<FastRun> = Vec::new();
        for seq in first..=order.aru() {
            if own.is_none() && wanted.is_none() {
                break;
            }
            let Some(&sender) = order.get(seq) else {
                break;
            };
            let sender = mistaken(facts, sender, again);
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
}

/// Members that each control datagram makes up for: twice as many while packets wait for the rate, as it then leaves
/// with them.
const fn share(facts: &Facts<'_>) -> u64 {
    let members = facts.members() as u64;
    if facts.own.is_held() {
        2 * members
    } else {
        members
    }
}

fn acked_to_tell(facts: &Facts<'_>) -> Seq {
    if mutants::on(Mutant::F03) && !facts.known.lacks_places() {
        // As if packets alone were enough.
        return facts.known.top();
    }
    facts.known.acked()
}

/// The sender that the leader names for a place: always the same.
fn mistaken(facts: &Facts<'_>, sender: u16, again: bool) -> u16 {
    if mutants::on(Mutant::F04) && again {
        return (sender + 1) % facts.members() as u16;
    }
    sender
}

/// Datagrams for others.
pub(super) const fn send(class: Class, to: Target, burst: Burst) -> Output {
    Output::Send {
        class,
        channel: Channel(0),
        to,
        burst,
        after: None,
    }
}
