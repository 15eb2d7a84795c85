//! Dissemination: the ways of a value from its proposer to the coordinator, and to all others that need it.
//!
//! There are two, and nothing else tells U-Ring Paxos from Ring Paxos: *along the ring* ([`AlongRing`]) a value passes
//! from process to process up to the coordinator, and goes on with the proposal to those that have not had it; *by
//! multicast* ([`ByMulticast`]) its proposer sends it to all at once, in datagrams that may be lost, and the ring
//! carries names.
//!
//! Neither sends a message or knows a link: each step hands back what is to be done.

mod along_ring;
mod by_multicast;
mod late;
mod loss_window;
mod received;
mod sender;

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::Debug;

use super::context::Context;
use super::parts::Dropped;
use super::stream::Places;
use super::window::Window;
use super::word::Proposal;
use super::write::Writer;
use crate::{Instance, Proposers, Value, ValueId};
use along_ring::AlongRing;
use by_multicast::ByMulticast;
use rota_core::contract::{Process, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::Part;

/// The most values that are asked of the predecessor at once.
const MOST_LACKS: usize = 1000;

/// The value of a proposal, as far as it is here.
#[derive(Debug)]
pub enum Resolved {
    /// It is here; `true`: no process had it before.
    Known(Value, bool),
    /// The proposal waits for its value, or behind others that wait.
    Blocked,
    /// It is not here, as it was forgotten with a snapshot: the predecessor is to bring it.
    Forgotten,
    /// It is not here, or too many proposals wait.
    Refused,
}

/// The steps that are due for values that did not come in time.
#[derive(Debug, Default)]
pub struct Overdue {
    /// A value that is missing here is to be asked for.
    pub ask: Option<Ask>,
    /// This own value goes to the coordinator alone.
    pub own: Option<(ValueId, Bytes)>,
}

/// The processes that have a missing value.
#[derive(Debug)]
pub enum Ask {
    /// The predecessor, which has named it.
    Predecessor,
    /// Its proposer; of each process the counters of values that the coordinator lacks.
    Proposers(Vec<(Process, Vec<u64>)>),
}

/// A way of values, with those that are under way at one process of a ring.
pub trait Dissemination: Debug + Send {
    // Values on their way to the coordinator.

    /// Own values that may be under way, in bytes.
    fn own_window(&self, cx: &Context, places: &Places) -> usize;

    /// Puts a value on its way, if it is a member's and new: an own one, or one that has come. `false` if its proposer
    /// has more under way than it may.
    fn carry(&mut self, places: &Places, id: ValueId, frame: Bytes) -> bool;

    /// Whether a value may still count. `counted`: the last counter of its proposer that has; `table`: at the
    /// coordinator, the values that count when all proposals are decided.
    fn may_count(&self, id: ValueId, counted: Option<u64>, table: Option<&Proposers>) -> bool;

    /// The bytes of values that are here.
    fn bytes(&self) -> usize;

    /// Writes values that go along the ring into a batch.
    fn put_values(&mut self, places: &Places, batch: &mut Writer);

    /// Whether a value waits to go along the ring.
    fn has_unsent(&self) -> bool;

    /// The successor begins again: what goes along the ring is sent once more.
    fn send_again(&mut self);

    /// A value has come along the ring, or its proposer has no link to the coordinator: it goes on along the ring.
    fn goes_along(&mut self, places: &Places, id: ValueId);

    // Proposals.

    /// At the coordinator: the value that is to be proposed next.
    fn next_value(
        &mut self,
        places: &Places,
        window: &Window,
        table: &Proposers,
    ) -> Option<ValueId>;

    /// Takes the value that came by under this name, as it is proposed.
    fn take(&mut self, places: &Places, id: ValueId) -> Option<Bytes>;

    /// The proposal has brought the value.
    fn drop_value(&mut self, places: &Places, id: ValueId);

    /// The value of the next proposal, from its first instance on; or the proposal waits.
    fn on_proposal(&mut self, places: &Places, at: Instance, proposal: Proposal) -> Resolved;

    /// The next proposal that has waited for its value and need not any more. `next`: the first that is not here.
    fn release(&mut self, places: &Places, next: Instance) -> Option<(Instance, (Value, bool))>;

    /// The instance behind all proposals that wait, if any do.
    fn blocked_end(&self) -> Option<Instance>;

    /// The proposals that wait do not count any more.
    fn forget_blocked(&mut self);

    /// The predecessor begins again at `next`. Returns the instances in which it is to bring the values.
    fn begin_behind(&mut self, next: Instance) -> Vec<Instance>;

    /// Whether the successor gets the values of the process at this place otherwise than with proposals.
    fn successor_has(&self, places: &Places, place: Option<usize>) -> bool;

    /// Whether batches wait until all other input has come, as they bring names and votes, and many are small.
    fn gathers_batches(&self) -> bool;

    /// All acceptors of the ring have the proposals before `low`: takes notice of it, if the coordinator has to bound
    /// what they lack.
    fn pass(&self, window: &mut Window, low: &dyn Fn() -> Instance);

    // Values that count.

    /// A value counts, of these bytes.
    fn on_counted(&mut self, now: Time, places: &Places, value: (ValueId, usize));

    /// Values up to some counter of each process have counted before this instance, with a snapshot.
    fn forget_to(
        &mut self,
        places: &Places,
        next: Instance,
        counted: &dyn Fn(Process) -> Option<u64>,
    );

    // Datagrams.

    /// Takes a part of a value. Returns the whole value, if that was the last part and the value is not here yet.
    fn on_part(
        &mut self,
        now: Time,
        places: &Places,
        part: &Part<'_>,
    ) -> Result<Option<(ValueId, Bytes)>, Dropped>;

    /// Whether there is an own value to multicast, which waits for nothing.
    fn has_own(&self, places: &Places) -> bool;

    /// The next own value to multicast, if it may leave.
    fn next_own(&mut self, now: Time) -> Option<(ValueId, Bytes)>;

    /// A datagram of an own value leaves.
    fn leaves(&mut self, now: Time, bytes: usize);

    /// The rate that own values keep to, in bits per second.
    fn rate(&self) -> Option<u64>;

    // Values that do not come.

    /// Looks for missing values, so that they are asked for in time. `table`: at the coordinator; `begun`: the round
    /// has begun here.
    fn watch(&mut self, cx: &Context, places: &Places, round: (Option<&Proposers>, bool));

    /// The time at which something is to be asked for, or sent once more.
    fn overdue_at(&self) -> Option<Time>;

    /// The steps that are due by now.
    fn overdue(&mut self, cx: &Context, places: &Places, table: Option<&Proposers>) -> Overdue;

    /// A process was asked for values that are missing here: others send less.
    fn on_asked(&mut self, cx: &Context, places: &Places);

    /// By place in the ring: the number of times that values had to be asked for there.
    fn losses(&self) -> &[u64];

    /// The process at this place had to ask for values so many times. Returns whether there is such a process, and not
    /// this one.
    fn on_lost(&mut self, cx: &Context, places: &Places, lost: (usize, u64)) -> bool;

    /// Its invariants.
    fn check(&self, places: &Places);
}

/// The way that is set, in a ring that begins.
pub fn of(cx: &Context, places: &Places) -> Box<dyn Dissemination> {
    match &cx.settings.multicast {
        None => Box::new(AlongRing::new(&cx.settings, places)),
        Some(multicast) => Box::new(ByMulticast::new(cx, multicast, places)),
    }
}

/// The most bytes of values of one process that are on their way to the coordinator, beside one value: one window, and
/// one that has counted at its proposer and not here.
const fn most_carried(window_bytes: usize) -> usize {
    2 * window_bytes
}

/// The value of a proposal, and whether no process had it before; `None` if the value is not here. `take`: takes the
/// value of a name.
fn resolve(
    proposal: Proposal,
    take: impl FnOnce(ValueId) -> Option<Bytes>,
) -> Option<(Value, bool)> {
    Some(match proposal {
        Proposal::Named(id) => {
            let Some(frame) = take(id) else {
                return mutants::on(Mutant::U27).then_some((Value::Skip(1), false));
            };
            (Value::Packet { id, frame }, false)
        }
        Proposal::Packet { id, frame, whole } => (Value::Packet { id, frame }, whole),
        Proposal::Members(number, members) => (Value::Members(number, members), true),
        Proposal::Skip(count) => (Value::Skip(count), true),
    })
}
