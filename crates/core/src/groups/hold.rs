//! Holds: while a client reads too slowly, senders to its groups are made to wait.
//!
//! A daemon whose client has too much to read orders destinations to be *held*, each with the client that is the
//! reason. Every daemon that delivers this message lets those of its own clients wait that send to these destinations,
//! and nothing else waits. Each such message says all that the daemon holds from there on, and takes the place of the
//! one before; the last one says that the daemon holds nothing.
//!
//! # No destination is held for ever
//!
//! * A hold ends with the configuration, transitional or regular, in which it was ordered: a daemon that is still there
//!   and still needs it orders it anew. So no daemon has to tell others of holds when they meet.
//! * A hold that is ordered in a later configuration than it was sent for counts for nobody, like a request.
//! * A sender waits no longer than the hold says, whatever the daemon of the slow client does. The time runs on the
//!   clock of the sender's daemon, from when one of its clients first waited, and decides nothing in the order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::bytes::{put_destination, put_name};
use super::message::{HOLD, VERSION};
use super::name::{ClientName, Destination};
use crate::bytes::{Reader, put_ring};
use crate::contract::{Process, RingId, Time};
use crate::mutants::{self, Mutant};

/// The most destinations that a daemon holds: the message that orders them is no longer than a piece of state.
pub const MOST_HELD: usize = 256;

/// The longest time that a sender is made to wait, in milliseconds.
pub const MOST_HOLD_MS: u32 = 60_000;

/// The destinations that a daemon wants to be held, and the client that each is held for.
pub type HoldFor = BTreeMap<Destination, ClientName>;

/// A destination whose senders wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hold {
    /// Messages to this destination wait.
    pub to: Destination,
    /// The daemon that wants it.
    pub daemon: Process,
    /// Its client that reads too slowly.
    pub client: ClientName,
}

/// All that a daemon holds, as it is ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holding {
    /// No sender waits longer than this.
    pub most_ms: u32,
    pub to: HoldFor,
}

/// The state of a destination that is held.
#[derive(Debug)]
struct Held {
    client: ClientName,
    /// The time at which a sender first waited.
    since: Option<Time>,
    /// No sender waits for it any more.
    expired: bool,
}

#[derive(Debug, Default)]
struct Theirs {
    most_ms: u32,
    to: BTreeMap<Destination, Held>,
}

/// The destinations that this daemon wants to be held, and those that all daemons hold.
#[derive(Debug)]
pub(super) struct Holds {
    wanted: Holding,
    /// The destinations that the daemon has last ordered in this configuration; none at first.
    said: HoldFor,
    /// That message has not come back.
    under_way: bool,
    offered: Vec<u8>,
    held: BTreeMap<Process, Theirs>,
    changed: bool,
    pub expired: u64,
}

impl Default for Holds {
    fn default() -> Self {
        let nothing = Holding {
            most_ms: MOST_HOLD_MS,
            to: HoldFor::new(),
        };
        Self {
            wanted: nothing,
            said: HoldFor::new(),
            under_way: false,
            offered: Vec::new(),
            held: BTreeMap::new(),
            changed: false,
            expired: 0,
        }
    }
}

impl Holds {
    /// From here on the daemon wants these destinations to be held; those beyond [`MOST_HELD`] are left out.
    pub fn want(&mut self, mut to: HoldFor, most_ms: u32) {
        if let Some(end) = to.keys().nth(MOST_HELD).copied() {
            to.split_off(&end);
        }
        let most_ms = most_ms.clamp(1, MOST_HOLD_MS);
        self.wanted = Holding { most_ms, to };
    }

    /// Whether the others are to be told of a change: one message at a time, and no message for a change that was
    /// undone meanwhile.
    pub fn is_due(&self) -> bool {
        !self.under_way && self.wanted.to != self.said
    }

    /// The message to the others, for this ring.
    pub fn unsent(&mut self, ring: RingId) -> &[u8] {
        write(&self.wanted, ring, &mut self.offered);
        &self.offered
    }

    /// The engine has taken the message, or never will.
    pub fn sent(&mut self, taken: bool) {
        self.said.clone_from(&self.wanted.to);
        self.under_way = taken;
    }

    /// The message of this daemon has its place.
    pub const fn returned(&mut self) {
        self.under_way = false;
    }

    /// The message of a daemon has its place.
    pub fn apply(&mut self, from: Process, holding: Holding) {
        self.changed = true;
        let mut before = self.held.remove(&from).unwrap_or_default().to;
        if holding.to.is_empty() {
            return;
        }
        let to = holding.to.into_iter().map(|(to, client)| {
            let held = before.remove(&to).unwrap_or(Held {
                client,
                since: None,
                expired: false,
            });
            (to, Held { client, ..held })
        });
        let most_ms = holding.most_ms;
        let to = to.collect();
        self.held.insert(from, Theirs { most_ms, to });
    }

    /// Daemons may have gone, or others have come that know of no hold.
    pub fn begin_anew(&mut self) {
        if !mutants::on(Mutant::G21) {
            self.said.clear();
        }
        self.under_way = false;
        if !mutants::on(Mutant::G19) {
            self.changed |= !self.held.is_empty();
            self.held.clear();
        }
    }

    /// The reason for which a message of this client to these destinations has to wait just now, if there is one. The
    /// times of all daemons that hold one of them run at once. No client waits for itself: a client that does not read
    /// before it has written would wait for ever.
    pub fn waits(
        &mut self,
        from: (Process, ClientName),
        to: &[Destination],
        now: Time,
    ) -> Option<Hold> {
        let mut first = None;
        for (&daemon, theirs) in &mut self.held {
            let most = u64::from(theirs.most_ms) * 1_000_000;
            for to in to {
                let Some(held) = theirs.to.get_mut(to) else {
                    continue;
                };
                if (daemon, held.client) == from {
                    continue;
                }
                let over = now.since(*held.since.get_or_insert(now)) >= most;
                self.expired += u64::from(over && !held.expired);
                held.expired |= over;
                let (to, client) = (*to, held.client);
                first = first.or((!over).then_some(Hold { to, daemon, client }));
            }
        }
        first
    }

    /// All holds.
    pub fn all(&self) -> impl Iterator<Item = Hold> {
        self.held.iter().flat_map(|(&daemon, theirs)| {
            let all = theirs.to.iter();
            all.map(move |(&to, held)| Hold {
                to,
                daemon,
                client: held.client,
            })
        })
    }

    /// Whether the held destinations have changed since the last call.
    pub const fn take_changed(&mut self) -> bool {
        core::mem::replace(&mut self.changed, false)
    }
}

pub(super) fn write(holding: &Holding, ring: RingId, message: &mut Vec<u8>) {
    message.clear();
    message.extend([VERSION, HOLD]);
    put_ring(message, ring);
    message.extend(holding.most_ms.to_le_bytes());
    message.extend((holding.to.len() as u16).to_le_bytes());
    for (to, client) in &holding.to {
        put_destination(message, to);
        put_name(message, client);
    }
}

/// Reads a whole message: destinations ascend, and clients are the daemon's own.
pub(super) fn read(from: Process, reader: &mut Reader<'_>) -> Option<Holding> {
    let most_ms = reader.u32()?;
    let count = usize::from(reader.u16()?);
    let fits = (1..=MOST_HOLD_MS).contains(&most_ms) && count <= MOST_HELD;
    fits.then_some(())?;
    let mut to = HoldFor::new();
    for _ in 0..count {
        let next = reader.destination()?;
        let ascends = to.keys().next_back().is_none_or(|last| *last < next);
        let own = !matches!(next, Destination::Client(_, node) if node != from.node);
        (ascends && own).then_some(())?;
        to.insert(next, reader.name()?);
    }
    reader.0.is_empty().then_some(Holding { most_ms, to })
}
