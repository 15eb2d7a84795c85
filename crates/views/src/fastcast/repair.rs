//! Requests for missing packets, and retransmissions: fig. 2 l. 34 to 37, and the cases that the paper leaves to TCP or
//! to chance.

use alloc::vec::Vec;

use super::FastCounters;
use super::gap::Gap;
use super::in_view::{Facts, LEADER};
use super::known::{Known, Slot};
use super::patience::{RoundTrip, Watch};
use super::tell::ControlState;
use crate::fastcast::FastRequest;
use rota_core::buffer::Buffer;
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// Requests of others that wait to be answered.
const MOST_WANTED: usize = 256;

/// Packets of its own that a member sends again when nothing is heard of them: enough to show the members what they
/// lack. The other packets are requested.
const REPEATED: u64 = 8;

/// Packets that are sent again at once because others ask.
const RESENT: usize = 256;

/// Ranges that are asked for at once, of one sender.
const RANGES: usize = 8;

/// Requests to the member that made a packet, or to the leader, before others are asked.
const TRIES_AT_SOURCE: u32 = 2;

/// A packet to send again, and its receiver: one member, or all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Resend {
    pub to: Option<u16>,
    pub sender: u16,
    pub number: u64,
}

/// What a member waits for, and what others have asked it for.
#[derive(Debug)]
pub(super) struct Repair {
    /// By sender: the gap in its packets.
    gaps: Vec<Gap>,
    /// The gap in the places.
    order_gap: Gap,
    /// The watch over own packets that not all have acknowledged.
    own_watch: Watch,
    /// The watch over everything that is not ready to be delivered.
    watch: Watch,
    /// The number of others that have applied the increase of bandwidth that this member waits for, if it waits for
    /// one.
    applied_by: Option<usize>,
    /// The requests of others, each with its sender.
    wanted: Vec<(u16, FastRequest)>,
}

/// What has come.
impl Repair {
    /// Nothing is missing, in a view of so many members.
    pub fn new(members: usize) -> Self {
        Self {
            gaps: (0..members).map(|_| Gap::default()).collect(),
            order_gap: Gap::default(),
            own_watch: Watch::default(),
            watch: Watch::default(),
            applied_by: None,
            wanted: Vec::new(),
        }
    }

    /// Whether own packets are watched, as not all have acknowledged them.
    pub const fn waits_for_own(&self) -> bool {
        self.own_watch.is_on()
    }

    /// Whether a packet of a member was requested.
    pub fn has_asked(&self, of: usize, number: u64) -> bool {
        self.gaps[of].asked_for(number)
    }

    /// A packet has come. Returns whether it is the first of the last request that has.
    pub fn first_to_come(&mut self, of: usize, number: u64) -> bool {
        self.gaps[of].first_to_come(number)
    }

    /// A packet has come twice. Returns whether it is the first of the last request that has.
    pub fn first_to_come_twice(&mut self, of: usize, number: u64) -> bool {
        self.gaps[of].first_to_come_twice(number)
    }

    /// A member requests something of this one.
    pub fn on_request(&mut self, from: u16, request: FastRequest) {
        if self.wanted.len() < MOST_WANTED {
            self.wanted.push((from, request));
        }
    }

    /// The time at which there is something to do, if nothing else happens.
    pub fn due_at(&self, known: &Known, patience: &RoundTrip) -> Option<Time> {
        let gaps = self.gaps.iter().zip(known.all_packets());
        let gaps = gaps.filter_map(|(gap, packets)| gap.due_at(patience, has_hole(packets)));
        gaps.chain(self.order_gap.due_at(patience, has_hole(known.order())))
            .chain(self.own_watch.due_at(patience))
            .chain(self.watch.due_at(patience))
            .min()
    }

    /// Its invariants, in a view of so many members.
    pub fn check(&self, members: usize) {
        assert_eq!(self.gaps.len(), members, "each member may have a gap");
        assert!(self.wanted.len() <= MOST_WANTED, "requests are bounded");
        self.own_watch.check();
        self.watch.check();
    }
}

/// What is due.
impl Repair {
    /// Takes note of what is missing. `applied_by`: see the field.
    pub fn update_watches(&mut self, now: Time, facts: &Facts<'_>, applied_by: Option<usize>) {
        let (known, acks, own) = (facts.known, facts.acks, facts.own);
        self.applied_by = applied_by;
        for (of, gap) in self.gaps.iter_mut().enumerate() {
            if of != facts.me() {
                gap.update(now, known.packets(of).aru(), known.heard(of));
            }
        }
        self.order_gap.update(now, known.order().aru(), known.top());
        let ready = acks.ready();
        self.own_watch.update(now, own.is_in_flight(), own.acked());
        let waiting = ready < known.top() || known.lacks_places() || own.is_blocked();
        let open = waiting || applied_by.is_some();
        let applied = applied_by.unwrap_or(0) as u64;
        let progress = ready + acks.released() + applied;
        self.watch.update(now, open, progress);
    }

    /// Asks for packets of others that are missing.
    pub fn ask_for_packets(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        (telling, patience): (&mut ControlState, &RoundTrip),
        counters: &mut FastCounters,
    ) {
        if mutants::on(Mutant::F05) {
            return;
        }
        for of in 0..facts.members() {
            let (packets, gap) = (facts.known.packets(of), &mut self.gaps[of]);
            if !is_due(gap, patience, has_hole(packets), now) {
                continue;
            }
            let mut ranges = Vec::new();
            let heard = facts.known.heard(of);
            counters.fast_packets_requested += packets.missing(heard, &mut ranges, RANGES);
            let first = packets.aru() + 1;
            let lacking = facts.acks.lacking(of, first);
            let to = whom_to_ask(facts, of, gap.tries(), lacking);
            telling.request(to, Some(of as u16), &ranges);
            gap.on_asked(now, heard, patience);
        }
    }

    /// Asks for places that are missing.
    pub fn ask_for_places(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        (telling, patience): (&mut ControlState, &RoundTrip),
        counters: &mut FastCounters,
    ) {
        let (order, top) = (facts.known.order(), facts.known.top());
        if !is_due(&self.order_gap, patience, has_hole(order), now) {
            return;
        }
        let mut ranges = Vec::new();
        counters.fast_places_requested += order.missing(top, &mut ranges, RANGES);
        let behind = facts.acks.behind(order.aru() + 1);
        let to = whom_to_ask(facts, LEADER, self.order_gap.tries(), behind);
        telling.request(to, None, &ranges);
        self.order_gap.on_asked(now, top, patience);
    }

    /// The own packets to send again, of which nothing is heard, to members that lack them (fig. 2 l. 34 to 37). Those
    /// are asked for an answer.
    pub fn repeat_own(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        (telling, patience): (&mut ControlState, &mut RoundTrip),
    ) -> Vec<Resend> {
        let mut resends = Vec::new();
        let due = self.own_watch.due_at(patience);
        if due.is_none_or(|due| now < due) {
            return resends;
        }
        self.own_watch.again(now);
        patience.spoil();
        let (me, sent, acks) = (facts.me(), facts.own.sent(), facts.acks);
        telling.ask(acks.lacking(me, sent) & !(1 << me));
        let others = (0..facts.members()).filter(|member| *member != me);
        let held = others.map(|member| acks.have(member, me)).min();
        let first = held.unwrap_or(0) + 1;
        for number in first..=sent.min(first + REPEATED - 1) {
            let lacking = acks.lacking(me, number) & !(1 << me);
            let one = (lacking.count_ones() == 1).then(|| lacking.trailing_zeros() as u16);
            resends.push(Resend {
                to: one,
                sender: me as u16,
                number,
            });
        }
        resends
    }

    /// Repeats the control datagram of this member, and asks the members whose word is missing.
    pub fn repeat_control(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        (telling, patience): (&mut ControlState, &mut RoundTrip),
        counters: &mut FastCounters,
    ) {
        let due = self.watch.due_at(patience);
        if due.is_none_or(|due| now < due) {
            return;
        }
        self.watch.again(now);
        patience.spoil();
        let mut ask = facts.acks.behind(facts.known.top());
        if facts.known.lacks_places() {
            ask |= 1 << LEADER;
        }
        if facts.own.is_blocked() {
            ask |= facts.acks.slowest();
        }
        if self.applied_by.is_some() {
            ask |= everybody(facts);
        }
        let ask = ask & !(1 << facts.me());
        if ask != 0 {
            telling.ask(ask);
            counters.fast_controls_repeated += 1;
        }
    }

    /// The packets that others have requested. Places that they have requested are told. `round_trip`: the time that an
    /// answer takes, in nanoseconds.
    pub fn answer(
        &mut self,
        now: Time,
        facts: &Facts<'_>,
        (telling, round_trip): (&mut ControlState, u64),
    ) -> Vec<Resend> {
        let mut resends = Vec::new();
        if self.wanted.is_empty() {
            return resends;
        }
        for (from, request) in core::mem::take(&mut self.wanted) {
            match request.of {
                None => telling.on_places_wanted(from, request.first),
                Some(of) => {
                    let packets = facts.known.packets(usize::from(of));
                    look_up(
                        (now, round_trip / 2),
                        packets,
                        (from, of, request),
                        &mut resends,
                    );
                }
            }
        }
        // One packet that several want goes to all.
        resends.sort_unstable_by_key(|resend| (resend.sender, resend.number));
        resends.dedup_by(|next, first| {
            let same = (next.sender, next.number) == (first.sender, first.number);
            if same && next.to != first.to {
                first.to = None;
            }
            same
        });
        resends
    }
}

/// Looks up the packets of a request that are here, and were not sent to the asking member in the last `quiet`
/// nanoseconds.
fn look_up(
    (now, quiet): (Time, u64),
    packets: &Buffer<Slot>,
    (from, of, request): (u16, u16, FastRequest),
    resends: &mut Vec<Resend>,
) {
    let first = request.first.max(packets.discarded() + 1);
    for number in first..=request.last().min(packets.high()) {
        if resends.len() == RESENT {
            return;
        }
        let Some(slot) = packets.get(number) else {
            continue;
        };
        let lately = slot.resent.filter(|(when, _)| now < when.after(quiet));
        let to = match lately {
            Some((_, None)) => continue,
            Some((_, Some(to))) if to == from => continue,
            Some((_, Some(_))) => None,
            None => Some(from),
        };
        resends.push(Resend {
            to,
            sender: of,
            number,
        });
    }
}

/// The member to ask: the source first; when it does not answer, the members that are known to have the packet, in
/// turn.
fn whom_to_ask(facts: &Facts<'_>, source: usize, tries: u32, lacking: u128) -> usize {
    let members = facts.members();
    let has = |member: &usize| *member != facts.me() && lacking & (1 << member) == 0;
    if tries < TRIES_AT_SOURCE || source == facts.me() {
        return source;
    }
    let start = source + tries as usize;
    (0..members)
        .map(|step| (start + step) % members)
        .find(has)
        .unwrap_or(source)
}

const fn everybody(facts: &Facts<'_>) -> u128 {
    u128::MAX >> (u128::BITS as usize - facts.members())
}

/// Whether something is here that was sent later than something that is missing.
const fn has_hole<S>(buffer: &Buffer<S>) -> bool {
    buffer.high() > buffer.aru()
}

fn is_due(gap: &Gap, patience: &RoundTrip, hole: bool, now: Time) -> bool {
    gap.due_at(patience, hole).is_some_and(|due| now >= due)
}
